/* See internal.h: workloads in Python. */
#define _GNU_SOURCE
#include "internal.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

/* ---- what is Python ---- */

static bool word_is_module(const char *word) { return strncmp(word, "-m", 2) == 0; }

/* Moves "-m MODULE" or "-mMODULE", and what follows, to `to`. False: there is no module. */
static bool parse_module(const run_words *words, size_t at, run_words *to) {
  const char *const joined = words->items[at] + 2;
  if (!*joined && at + 1 >= words->count) return false;
  run_words_add(to, "-m");
  if (*joined) run_words_add(to, joined);
  while (++at < words->count) run_words_add(to, words->items[at]);
  return true;
}

/* Words of one of Python's options. 0: prof's package must not run this. `-c`, `-i`, `-V` and what
   is not known belong to Python alone. */
static size_t option_words(const char *word) {
  static const char without[] = "bBdEIOPqRsSuvx", with[] = "WX";
  if (strncmp(word, "--check-hash-based-pycs", 23) == 0) return word[23] == '=' ? 1 : 2;
  for (const char *at = word + 1; *at; at++) {
    if (strchr(with, *at)) return at[1] ? 1 : 2;
    if (!strchr(without, *at)) return 0;
  }
  return word[1] ? 1 : 0;
}

/* python3 [OPTION...] SCRIPT, or -m MODULE. False: something else, such as `python3 -c TEXT`. */
static bool split_command(const run_words *words, run_python *to) {
  size_t at = 1;
  run_words_add(&to->front, words->items[0]);
  while (at < words->count && words->items[at][0] == '-') {
    const char *const word = words->items[at];
    if (word_is_module(word)) return parse_module(words, at, &to->rest);
    const size_t count = option_words(word);
    if (count == 0 || at + count > words->count) return false;
    for (size_t end = at + count; at < end; at++) run_words_add(&to->front, words->items[at]);
  }
  for (; at < words->count; at++) run_words_add(&to->rest, words->items[at]);
  return to->rest.count > 0;
}

/* The script is there. */
static bool split_local_script(const run_words *words, run_python *to) {
  if (!split_command(words, to)) return false;
  return word_is_module(to->rest.items[0]) || access(to->rest.items[0], F_OK) == 0;
}

/* "#!/usr/bin/python3 OPTIONS", also behind env and env -S. Adds the words of Python to `front`.
   Returns whether the file has a first line of this kind; *names_python_out: of Python. */
static bool read_first_line(const char *path, run_words *front, bool *names_python_out) {
  char line[512] = "";
  const int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
  *names_python_out = false;
  if (fd < 0) return false;
  const ssize_t bytes = read(fd, line, sizeof line - 1);
  close(fd);
  if (bytes < 3 || strncmp(line, "#!", 2) != 0) return false;
  line[strcspn(line, "\n")] = '\0';
  run_words words = {0};
  run_words_split(&words, run_text("%s", line + 2));
  const bool has_env = words.count > 1 && strcmp(run_base_name(words.items[0]), "env") == 0;
  const bool has_option = has_env && words.count > 2 && strcmp(words.items[1], "-S") == 0;
  const size_t at = (size_t)has_env + (size_t)has_option;
  *names_python_out = at < words.count && run_python_is_interpreter(words.items[at]);
  for (size_t i = at; *names_python_out && i < words.count; i++)
    run_words_add(front, words.items[i]);
  return true;
}

/* An executable SCRIPT.py, as the shell would start it: its first line says by what. */
static bool word_is_script(const char *word) {
  struct stat is;
  return run_ends_in(word, ".py") && stat(word, &is) == 0 && S_ISREG(is.st_mode) &&
         access(word, X_OK) == 0;
}

static bool word_is_other_language(const char *word) {
  run_words front = {0};
  bool names_python;
  return word_is_script(word) && read_first_line(word, &front, &names_python) && !names_python;
}

/* Of a wheel's command the Python beside it, which has the package; else the first on PATH. */
static const char *usual_python(void) {
  static char path[PATH_MAX + 16];
  static const char name[] = "python3";
  const char *const folder = library_folder();
  if (!folder || !strstr(folder, "-packages/prof/lib")) return name;
  const ssize_t bytes = readlink("/proc/self/exe", path, PATH_MAX - 1);
  if (bytes <= 0) return name;
  path[bytes] = '\0';
  char *const slash = strrchr(path, '/');
  if (!slash) return name;
  memcpy(slash + 1, name, sizeof name);
  return access(path, X_OK) == 0 ? path : name;
}

const char *run_python_program(void) {
  const char *const told = getenv("PROF_PYTHON_PROGRAM");
  return told && *told ? told : usual_python();
}

/* The interpreter of SCRIPT.py and -m MODULE. */
static void add_interpreter(const char *script, run_words *front) {
  const char *const told = getenv("PROF_PYTHON_PROGRAM");
  bool names_python = false;
  if (told && *told)
    run_words_add(front, told);
  else if (word_is_script(script))
    (void)read_first_line(script, front, &names_python);
  if (front->count == 0) run_words_add(front, usual_python());
}

/* SCRIPT.py and -m MODULE need an interpreter in front. `python -m prof run` has told its own, and
   runs all that python does: a folder, an archive, "-". */
static bool split_bare_script(const run_request *r, run_python *to) {
  const char *const first = r->workload.items[0];
  const bool is_told = r->interpreter.count > 0;
  if (!is_told && !word_is_module(first) && !run_ends_in(first, ".py")) return false;
  if (is_told)
    run_words_add_all(&to->front, &r->interpreter);
  else
    add_interpreter(first, &to->front);
  if (!word_is_module(first))
    run_words_add_all(&to->rest, &r->workload);
  else if (!parse_module(&r->workload, 0, &to->rest))
    run_fail("-m needs the name of a module");
  return true;
}

/* An installed program in Python, as torchrun. */
static bool split_by_first_line(const run_words *words, run_python *to) {
  const char *const path = run_program_find(words->items[0]);
  bool names_python;
  if (!read_first_line(path, &to->front, &names_python) || !names_python) return false;
  run_words_add(&to->rest, path);
  for (size_t i = 1; i < words->count; i++) run_words_add(&to->rest, words->items[i]);
  return true;
}

/* ---- the package ---- */

/* Imports prof's package as `-m prof._run` does, with the interpreter's own options, and records
   nothing. Another package of that name is not imported. */
static bool python_has_package(const run_python *python) {
  static const char looks[] =
      "import sys, os.path, importlib.util as u\n"
      "s = u.find_spec('prof')\n"
      "p = s.submodule_search_locations or () if s else ()\n"
      "if not any(os.path.exists(os.path.join(x, '_run_script.py')) for x in p): sys.exit(1)\n"
      "for x in 'PROF_LEVEL', 'PROF_OUTPUT': os.environ.pop(x, None)\n"
      "import prof._run\n";
  run_words words = {0};
  run_words_add_all(&words, &python->front);
  run_words_add(&words, "-c");
  run_words_add(&words, looks);
  return run_ends_well(words.items);
}

/* ---- the workload ---- */

static bool word_is_stdin(const char *word) { return strcmp(word, "-") == 0; }

/* is_told: `python -m prof run`, which executes no other programs. */
static void check_script(const run_python *python, bool is_told) {
  const char *const script = python->rest.items[0];
  if (word_is_module(script) || word_is_stdin(script) || access(script, F_OK) == 0) return;
  const bool is_program = is_told && !strchr(script, '/') && run_program_find(script);
  say("prof run: there is no script '%s'%s%s%s", script,
      is_program ? "; python -m prof run executes Python only: type prof run " : "",
      is_program ? script : "", is_program ? " for the program" : "");
  exit(RUN_NOT_FOUND);
}

static _Noreturn void refuse_package(const run_python *python) {
  run_fail(
      "%s cannot import prof's Python package, which records programs in Python: pip install "
      "libprof (PyPI's prof is another program), or add its folder to PYTHONPATH. "
      "PROF_PYTHON_PROGRAM names another Python for "
      "SCRIPT.py and -m MODULE. To see why: %s -c 'import prof._run'",
      python->front.items[0], run_words_quoted(&python->front));
}

/* The last one of an option counts. */
static run_words table_options_of_script(const run_words *given) {
  run_words all = {0};
  run_words_add(&all, "--rows=30");
  run_words_add_all(&all, given);
  return all;
}

void run_python_prepare(run_request *r) {
  const char *const option = r->python_options.count > 0 ? r->python_options.items[0] : NULL;
  const bool records = run_stack_records(&r->stack);
  run_python *const python = run_make(1, sizeof *python);
  const char *const first = r->workload.items[0];
  const bool is_told = r->interpreter.count > 0;
  const bool is_other = !is_told && word_is_other_language(first);
  if (is_other && !strchr(first, '/')) r->workload.items[0] = run_text("./%s", first);
  const bool is_bare = !is_other && split_bare_script(r, python);
  if (!is_bare) *python = (run_python){0};
  const bool is_whole = !is_bare && records && run_python_is_interpreter(r->workload.items[0]) &&
                        split_local_script(&r->workload, python);
  const bool is_program =
      !is_bare && !is_whole && records && option && split_by_first_line(&r->workload, python);
  if (is_bare) {
    check_script(python, is_told);
    r->workload = (run_words){0};
    run_words_add_all(&r->workload, &python->front);
    run_words_add_all(&r->workload, &python->rest);
  }
  if (!records) return;
  if (!is_bare && !is_whole && !is_program) {
    const int option_length = option ? (int)strcspn(option, "=") : 0; /* without its value */
    if (option && run_python_is_interpreter(r->workload.items[0]))
      run_fail(
          "%.*s needs a script or a module behind '%s': -c TEXT, a script on stdin and no "
          "script are not recorded, and a script must be there",
          option_length, option, r->workload.items[0]);
    if (option)
      run_fail(
          "%.*s is for programs in Python, and '%s' is not one: prof run SCRIPT.py, -m MODULE, or "
          "python3 SCRIPT.py",
          option_length, option, r->workload.items[0]);
    return;
  }
  if (!run_program_find(python->front.items[0])) return; /* the check says so */
  if (is_told || python_has_package(python))
    r->python = python;
  else if (is_bare || option)
    refuse_package(python);
  else
    r->lacks_package = true;
  if (r->python) r->table_options = table_options_of_script(&r->table_options);
}

/* ---- names of processes ---- */

/* As prof's package has it, in bindings/python/prof/_script.py. "." is called after the folder. */
static const char *path_title(const char *path) {
  size_t bytes = strlen(path);
  while (bytes > 0 && path[bytes - 1] == '/') bytes--;
  const char *const name = run_base_name(run_copy(path, bytes));
  if (*name && strcmp(name, ".") != 0 && strcmp(name, "..") != 0) return name;
  const char *const whole = realpath(path, NULL);
  return whole ? run_base_name(whole) : path;
}

/* The script's own name, or the module's. */
static const char *script_name(const run_words *rest) {
  if (word_is_stdin(rest->items[0])) return "stdin";
  return word_is_module(rest->items[0]) ? run_base_name(rest->items[1])
                                        : path_title(rest->items[0]);
}

/* Without a last word that is cut. */
static run_words whole_words(const char *words, size_t bytes) {
  run_words all = {0};
  for (size_t at = 0, length; at < bytes; at += length + 1) {
    length = strnlen(words + at, bytes - at);
    if (at + length == bytes) break; /* it is cut */
    run_words_add(&all, run_copy(words + at, length));
  }
  return all;
}

/* The name of the script or module that an interpreter with these words runs: each word ends in
   NUL, and the last one may be cut. NULL: none, such as `python3 -c TEXT`, or prof's
   own package. */
static const char *python_script(const char *words, size_t bytes) {
  const run_words all = whole_words(words, bytes);
  run_python python = {0};
  if (all.count == 0 || !split_command(&all, &python)) return NULL;
  const char *const name = script_name(&python.rest);
  const bool is_own = strcmp(name, "prof") == 0 || strcmp(name, "prof._run") == 0;
  return is_own && word_is_module(python.rest.items[0]) ? NULL : name;
}

/* The text of `python3 -c TEXT`, or NULL. A long one may be cut. */
static const char *command_text(const char *words, size_t bytes) {
  for (size_t at = strnlen(words, bytes) + 1; at < bytes;) {
    const char *const word = words + at;
    const size_t length = strnlen(word, bytes - at);
    if (at + length >= bytes || *word != '-') return NULL;
    if (word[1] != '-' && word[length - 1] == 'c')
      return at + length + 1 < bytes ? word + length + 1 : NULL;
    const size_t count = option_words(word);
    if (count == 0) return NULL;
    at += length + 1;
    if (count == 2 && at < bytes) at += strnlen(words + at, bytes - at) + 1;
  }
  return NULL;
}

/* The name of a process with these words: as above, or "python-c" of `python3 -c TEXT`; NULL. */
static const char *python_title(const char *words, size_t bytes) {
  const char *const script = python_script(words, bytes);
  if (script) return script;
  return command_text(words, bytes) ? "python-c" : NULL;
}

/* A worker of multiprocessing, or a process that starts them: it runs the script of the process
   that has started it. */
static bool python_is_worker(const char *words, size_t bytes) {
  static const char begin[] = "from multiprocessing.";
  const char *const text = command_text(words, bytes);
  const size_t left = text ? bytes - (size_t)(text - words) : 0;
  return left >= sizeof begin && strncmp(text, begin, sizeof begin - 1) == 0;
}

const char *run_process_title(const run_process_tree *process_tree, const run_process *member,
                              const char *workload) {
  enum { DEEPEST = 8 };
  const run_process *m = member;
  for (int i = 0; i < DEEPEST && m && m->words; i++) {
    if (!python_is_worker(m->words, m->words_bytes)) {
      const char *const title = python_title(m->words, m->words_bytes);
      return title ? title : workload;
    }
    m = run_process_tree_find(process_tree, m->parent_pid);
  }
  return NULL;
}

/* ---- its words and files ---- */

const char *run_python_name(const run_python *python) {
  return run_program_name(script_name(&python->rest));
}

const char *run_python_capture(const run_request *r, const char *folder) {
  const char *const rank = run_output_rank();
  const char *const name = run_python_name(r->python);
  const char *const stem = run_output_escaped(run_text("%s/%s", folder, name));
  return run_text("%s%s%s.%%p.prof", stem, rank ? ".rank-" : "", rank ? rank : "");
}

run_words run_python_words(const run_request *r, const char *captures, const char *output) {
  run_words words = {0};
  run_words_add_all(&words, &r->python->front);
  run_words_split(&words, "-m prof._run");
  run_words_add(&words, run_text("--level=%u", r->level));
  if (r->has_memory) run_words_add(&words, "--memory");
  if (r->has_devices) run_words_add(&words, "--devices");
  if (r->is_quiet) run_words_add(&words, "--quiet");
  if (r->is_packed && r->file) run_words_add(&words, "--pack");
  run_words_add(&words, run_text("--captures-in=%s", captures));
  run_words_add_all(&words, &r->table_options);
  run_words_add_all(&words, &r->python_options);
  if (output) run_words_add(&words, run_text("--output=%s", output));
  if (output && !r->file) run_words_add(&words, "--output-in-folder");
  run_words_add(&words, "--");
  run_words_add_all(&words, &r->python->rest);
  return words;
}

/* ---- what prof's package has not reported ---- */

/* As bindings/python/prof/_run_script.py names it. */
#define MARK ".unreported-"

/* The capture whose path a mark has in its second line, if it is gone. */
static const char *gone_capture(const char *mark) {
  const char *const at = mark ? strchr(mark, '\n') : NULL;
  const bool is_gone = at && at[1] && access(at + 1, F_OK) != 0 && errno == ENOENT;
  return is_gone ? run_text("%s", at + 1) : NULL;
}

run_python_rest run_python_parse_rest(const char *folder, const char **gone_out) {
  const run_words names = run_folder_names(folder);
  run_python_rest rest = RUN_PYTHON_REPORTED;
  for (size_t i = 0; i < names.count; i++) {
    if (strncmp(names.items[i], MARK, sizeof MARK - 1) != 0) continue;
    const char *const path = run_text("%s/%s", folder, names.items[i]);
    size_t bytes = 0;
    char *const text = run_file_read(path, sizeof "files\n" + PATH_MAX, &bytes);
    const run_python_rest told =
        text && strncmp(text, "files", 5) == 0 ? RUN_PYTHON_FILES : RUN_PYTHON_ALL;
    const char *const gone = gone_capture(text);
    if (gone) *gone_out = gone;
    free(text);
    unlink(path);
    if (told > rest) rest = told;
  }
  return rest;
}
