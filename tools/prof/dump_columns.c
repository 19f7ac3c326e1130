/* prof dump to Parquet and Arrow, see commands.h. The child process is Python, which calls
   _arrow.main() of the package. It opens the capture, so this process holds no trace meanwhile. */
#define _GNU_SOURCE
#include "commands.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/export/merge.h"
#include "../run/internal.h"
#include "inputs.h"
#include "shared_options.h"

enum { FIXED_WORDS = 9, FILTER_WORDS = 16, NOT_EXECUTED = 127 };

/* Removes the current folder from sys.path, because the user's files there are not packages. */
static const char program[] =
    "import sys\n"
    "if sys.path and sys.path[0] == '': del sys.path[0]\n"
    "try:\n"
    "    from prof import _arrow\n"
    "except ImportError as e:\n"
    "    sys.exit(f'prof dump: {sys.argv[3]}: {sys.executable} has no package libprof, which "
    "Parquet '\n"
    "             f'and Arrow need: {e}. Type: {sys.executable} -m pip install "
    "\\'libprof[arrow]\\'; '\n"
    "             f'or set PROF_PYTHON_PROGRAM to another Python')\n"
    "sys.exit(_arrow.main(sys.argv[1:]))\n";

typedef struct columns_words {
  char **items; /* NULL behind the last */
  size_t count;
  bool is_short_of_memory;
} columns_words;

/* Adds a text and owns it. NULL: there was no memory for it. */
static void words_add(columns_words *words, char *text) {
  if (text)
    words->items[words->count++] = text;
  else
    words->is_short_of_memory = true;
}

static void words_add_pair(columns_words *words, const char *name, const char *value) {
  char *text = NULL;
  words_add(words, asprintf(&text, "%s=%s", name, value) < 0 ? NULL : text);
}

static void words_add_number(columns_words *words, uint64_t number) {
  char *text = NULL;
  words_add(words, asprintf(&text, "%" PRIu64, number) < 0 ? NULL : text);
}

static void words_add_filter(columns_words *words, const filter_options *filter) {
  prof_i_filter_words options = filter->words;
  const char *name, **word;
  for (size_t i = 0; (word = prof_i_filter_word(&options, i, &name)) != NULL; i++)
    if (*word) words_add_pair(words, name, *word);
  for (size_t i = 0; i < options.arg_count; i++) words_add_pair(words, "arg", options.args[i]);
}

/* "part=OFFSET:PID_OFFSET:LABEL:PATH", for each capture. The offset of a process may be negative.
   The label of a host may have a colon. */
static void words_add_parts(columns_words *words, const merge_files *merged) {
  const uint64_t start = prof_i_merge_start_unix_ns(merged->captures, merged->count);
  for (uint32_t i = 0; i < merged->count; i++) {
    const prof_i_merge_capture *const c = &merged->captures[i];
    char label[sizeof c->label], *text = NULL;
    memcpy(label, c->label, sizeof label);
    for (char *at = label; (at = strchr(at, ':')) != NULL;) *at = ' ';
    const int bytes =
        asprintf(&text, "part=%" PRIu64 ":%" PRId64 ":%s:%s", c->placed_unix_ns - start,
                 (int64_t)c->pid_offset, label, merged->files[i].path);
    words_add(words, bytes < 0 ? NULL : text);
  }
}

static void words_make(columns_words *words, const columns_request *r) {
  const size_t part_count = r->merged ? r->merged->count : 0;
  words->items =
      calloc(FIXED_WORDS + FILTER_WORDS + FILTER_ARGS_MAX + part_count + 1, sizeof *words->items);
  words->is_short_of_memory = !words->items;
  if (!words->items) return;
  words_add(words, strdup(run_python_program()));
  words_add(words, strdup("-c"));
  words_add(words, strdup(program));
  words_add(words, strdup(r->input));
  words_add(words, strdup(r->to));
  words_add(words, strdup(r->shown));
  words_add(words, strdup(r->format));
  words_add_number(words, r->from_ns);
  words_add_number(words, r->to_ns);
  words_add_filter(words, r->filter);
  if (r->merged) words_add_parts(words, r->merged);
}

/* Executes Python, which ends if this process ends, and does not record itself. */
static _Noreturn void execute(char **words, pid_t parent) {
  static const char *const recording[] = {"PROF_LEVEL", "PROF_MEMORY", "PROF_OUTPUT", "PROF_TORCH",
                                          "PROF_PYTHON"};
  for (size_t i = 0; i < sizeof recording / sizeof *recording; i++) unsetenv(recording[i]);
  prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (getppid() == parent) execvp(words[0], words);
  say("prof dump: cannot execute '%s', which Parquet and Arrow need: %s; install Python and type: "
      "pip install 'libprof[arrow]'; or set PROF_PYTHON_PROGRAM to a Python",
      words[0], strerror(errno));
  _exit(NOT_EXECUTED);
}

static int wait_for(pid_t child, const char *name) {
  int status;
  while (waitpid(child, &status, 0) < 0)
    if (errno != EINTR) return EXIT_FAILED;
  if (WIFSIGNALED(status)) {
    say("prof dump: %s ended by signal %d: %s", name, WTERMSIG(status),
        strsignal(WTERMSIG(status)));
    return EXIT_FAILED;
  }
  const int code = WEXITSTATUS(status);
  return code == EXIT_OK || code == EXIT_NO ? code : EXIT_FAILED;
}

int dump_columns(const columns_request *request) {
  columns_words words = {.count = 0};
  int status = EXIT_FAILED;
  words_make(&words, request);
  const pid_t parent = getpid(), child = words.is_short_of_memory ? -1 : fork();
  if (child == 0) execute(words.items, parent);
  if (child > 0)
    status = wait_for(child, words.items[0]);
  else
    say("prof dump: cannot start Python for '%s': %s", request->shown, strerror(errno));
  while (words.count > 0) free(words.items[--words.count]);
  free(words.items);
  return status;
}
