/* The scripts of a stack: set-up and tear-down. See run.h. */
#define _GNU_SOURCE
#include "run.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../prof/commands.h"

/* The first line of a file, at most this long. */
enum { LINE_BYTES = 256 };

static bool program_is_shell(const char *program) {
  static const char *const shells[] = {"sh", "bash", "dash"};
  const char *const name = run_base_name(program);
  for (size_t i = 0; i < sizeof shells / sizeof *shells; i++)
    if (strcmp(name, shells[i]) == 0) return true;
  return false;
}

/* "#!/usr/bin/env -S python3 -u": python3. NULL: there is none. */
static const char *line_interpreter(const char *line) {
  run_words words = {0};
  run_words_split(&words, run_copy(line + 2, strcspn(line + 2, "\n")));
  if (words.count == 0) return NULL;
  if (strcmp(run_base_name(words.items[0]), "env") != 0) return words.items[0];
  for (size_t i = 1; i < words.count; i++)
    if (*words.items[i] != '-' && !strchr(words.items[i], '=')) return words.items[i];
  return words.items[0];
}

/* Its mode allows it, and it is a program or a script of another language than a shell's. */
static bool script_is_executable(const char *path) {
  char line[LINE_BYTES + 1] = "";
  struct stat is;
  if (stat(path, &is) != 0 || !S_ISREG(is.st_mode) || access(path, X_OK) != 0) return false;
  const int fd = open(path, O_RDONLY | O_CLOEXEC);
  if (fd < 0) return true; /* it can be executed, but not read */
  const ssize_t bytes = read(fd, line, LINE_BYTES);
  close(fd);
  if (bytes >= 4 && memcmp(line,
                           "\x7f"
                           "ELF",
                           4) == 0)
    return true;
  if (bytes < 2 || memcmp(line, "#!", 2) != 0) return false;
  const char *const interpreter = line_interpreter(line);
  return interpreter && !program_is_shell(interpreter);
}

/* A shell looks for a name without a slash on PATH, and takes a=b/c for a variable. */
static const char *as_program(const char *path) {
  const bool is_plain = *path == '/' || strncmp(path, "./", 2) == 0 || strncmp(path, "../", 3) == 0;
  return is_plain ? path : run_text("./%s", path);
}

const char *run_script_text(const run_script *script) {
  const bool is_own = script_is_executable(script->path);
  run_words path = {0};
  run_words_add(&path, is_own ? as_program(script->path) : script->path);
  return run_text("%s%s%s%s", is_own ? "" : "bash ", run_words_quoted(&path),
                  *script->arguments ? " " : "", script->arguments);
}

/* folder: of the tool's files, or NULL. */
static int run_script_now(const char *text, const char *folder, const run_stream_watch *watch) {
  run_command command = {0};
  if (folder) run_folder_export(&command.variables, folder);
  run_words_add(&command.words, "/bin/sh");
  run_words_add(&command.words, "-c");
  run_words_add(&command.words, run_text(RUN_SHELL_OUTLIVES "%s", text));
  return run_child(&command, watch).status;
}

/* Runs all of them in order. is_before: stops at the first that fails, or if a signal has requested
   the end. Returns the status. */
static int run_scripts_now(const run_scripts *scripts, const run_stream_watch *watch,
                           bool is_before, const char *of, const char *folder,
                           run_summary *summary) {
  for (size_t i = 0; i < scripts->count; i++) {
    if (is_before && run_signals_interrupt()) return RUN_FAILED;
    const char *const text = run_script_text(&scripts->items[i]); /* the script may change itself */
    const int status = run_script_now(text, folder, watch);
    run_summary_add_script(summary, of, is_before, text, status);
    if (status == 0) continue;
    say("prof run: %s-script of %s ended with status %d: %s", is_before ? "pre" : "post", of,
        status, text);
    if (is_before) return status;
  }
  return 0;
}

int run_scripts_before(const run_stack *stack, const run_stream_watch *watch,
                       run_summary *summary) {
  for (size_t i = stack->count; i > 0; i--) {
    const run_tool *const tool = &stack->tools[i - 1];
    const int status =
        run_scripts_now(&tool->before, watch, true, tool->name, tool->folder, summary);
    if (status != 0) return status;
  }
  return run_scripts_now(&stack->before, watch, true, "the context", NULL, summary);
}

void run_scripts_after(const run_stack *stack, const run_stream_watch *watch,
                       run_summary *summary) {
  run_scripts_now(&stack->after, watch, false, "the context", NULL, summary);
  for (size_t i = 0; i < stack->count; i++)
    run_scripts_now(&stack->tools[i].after, watch, false, stack->tools[i].name,
                    stack->tools[i].folder, summary);
}

bool run_scripts_follow(const run_stack *stack) {
  size_t count = stack->after.count;
  for (size_t i = 0; i < stack->count; i++) count += stack->tools[i].after.count;
  return count > 0;
}
