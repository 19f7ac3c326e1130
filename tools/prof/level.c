/* prof level PID|FILE [N]: shows, or switches, the level of a running process, which need not do
   anything for it. */
#define _GNU_SOURCE
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "inputs.h"

static int parse_level(const char *word, long *number_out) {
  char *end = NULL;
  *number_out = strtol(word, &end, 10);
  return *word && !*end;
}

static int print_level(const char *path) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace *const trace = open_capture_file(path);
  if (!trace) return EXIT_FAILED;
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  printf("level %" PRIu32 "%s: ", info.level_now,
         info.is_live || info.is_elsewhere ? "" : ", nobody records");
  print_text(stdout, path, strlen(path));
  putchar('\n');
  return EXIT_OK;
}

static int execute_level(int argc, char **argv) {
  char path[PATH_MAX];
  long pid = 0, level = 0;
  int before = 0;
  if (argc != 2 && argc != 3)
    return refuse_words("level", "takes a process or its capture, and a level", NULL);
  if (argc == 3 && (!parse_level(argv[2], &level) || level < 0 || level > 2))
    return refuse_words("level", "the level is 0, 1 or 2, not", argv[2]);
  if (parse_level(argv[1], &pid)) {
    if (!input_of_process("level", pid, path, sizeof path)) return EXIT_FAILED;
  } else if (snprintf(path, sizeof path, "%s", argv[1]) >= (int)sizeof path) {
    return refuse_words("level", "the path is too long:", argv[1]);
  }
  if (argc == 2) return print_level(path);
  if (prof_trace_set_level(path, (int)level, &before) != PROF_OK) {
    say("prof level: %s", prof_last_error());
    return EXIT_FAILED;
  }
  printf("level %d, was %d: ", (int)level, before);
  print_text(stdout, path, strlen(path));
  putchar('\n');
  return EXIT_OK;
}

static const command_example examples[] = {
    {"prof level trace.prof", "the level of the process that writes this capture"}, {0}};

const prof_command command_level = {
    .name = "level",
    .summary = "shows or switches the level of a process that records",
    .words = "PID|FILE [N]",
    .about =
        "Shows or switches the level of a process that records into a file: 0 no scopes, 1 "
        "operators, 2 also the runtime. Memory is recorded at each of them, at 0 too.",
    .examples = examples,
    .execute = execute_level};
