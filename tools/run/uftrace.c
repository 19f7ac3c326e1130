/* See internal.h. uftrace.data/task.txt has a line for each program that was executed:
   SESS timestamp=T pid=P sid=S exename="PATH". */
#define _GNU_SOURCE
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compose.h"
#include "interpreter.h"
#include "text.h"

/* What gcc and clang call at the begin of a function: -pg, -mfentry, -finstrument-functions. */
static const char *const hooks[] = {"mcount", "__fentry__", "__cyg_profile_func_enter"};

/* True, too, if it cannot be read. */
static bool file_has_hook(const char *path) {
  if (access(path, R_OK) != 0) return true;
  for (size_t i = 0; i < sizeof hooks / sizeof *hooks; i++)
    if (run_program_mentions(path, hooks[i], strlen(hooks[i]) + 1)) return true;
  return false;
}

/* The programs, without prof itself, which starts the first one. */
static run_words task_programs(char *tasks) {
  static const char mark[] = "exename=\"";
  run_words programs = {0};
  char *state = NULL;
  for (char *line = strtok_r(tasks, "\n", &state); line; line = strtok_r(NULL, "\n", &state)) {
    char *const name = strncmp(line, "SESS ", 5) == 0 ? strstr(line, mark) : NULL;
    char *const end = name ? strrchr(name, '"') : NULL;
    if (!end || end < name + sizeof mark - 1) continue;
    *end = '\0';
    const char *const path = name + sizeof mark - 1;
    if (strcmp(path, run_own_path()) != 0 && run_words_find(&programs, path) < 0)
      run_words_add(&programs, path);
  }
  return programs;
}

const char *run_uftrace_hint(const char *folder) {
  enum { TASKS_BYTES = 16 << 20, NAMES_MAX = 3 };
  size_t bytes;
  const char *const path = run_text("%s/uftrace.data/task.txt", folder);
  char *const tasks = run_file_read(path, TASKS_BYTES, &bytes);
  if (!tasks) return NULL;
  const run_words programs = task_programs(tasks);
  const char *names = "";
  for (size_t i = 0; i < programs.count; i++) {
    const char *const program = programs.items[i];
    if (file_has_hook(program)) return NULL;
    if (i < NAMES_MAX) names = run_text("%s%s%s", names, i ? ", " : "", run_base_name(program));
  }
  if (programs.count == 0) return NULL;
  return run_text(
      "uftrace has few calls or none: %s%s %s not built with -pg or "
      "-finstrument-functions",
      names, programs.count > NAMES_MAX ? " and others" : "", programs.count == 1 ? "was" : "were");
}
