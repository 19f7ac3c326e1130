/* prof table FILE ...: totals as text; of several captures, of a program's processes say, together.
   Its options and their help are those of `python -m prof table` (bindings/python/prof/_table.py);
   tests/python/test_table.py holds both beside each other. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "commands.h"

static const command_choice groups[] =
    {{"name", PROF_GROUP_NAME},       {"category", PROF_GROUP_CATEGORY},
     {"device", PROF_GROUP_DEVICE},   {"thread", PROF_GROUP_THREAD},
     {"process", PROF_GROUP_PROCESS}, {"shape", PROF_GROUP_SHAPE},
     {"stack", PROF_GROUP_STACK},     {"scopes", PROF_GROUP_SCOPES},
     {"kernel", PROF_GROUP_KERNEL},   {NULL, 0}},
                            sorts[] = {{"total", PROF_SORT_TOTAL},
                                       {"self", PROF_SORT_SELF},
                                       {"calls", PROF_SORT_CALLS},
                                       {"mean", PROF_SORT_MEAN},
                                       {"max", PROF_SORT_MAX},
                                       {"name", PROF_SORT_NAME},
                                       {"memory", PROF_SORT_MEMORY},
                                       {"self-memory", PROF_SORT_SELF_MEMORY},
                                       {"first", PROF_SORT_FIRST},
                                       {"device", PROF_SORT_DEVICE},
                                       {"self-device", PROF_SORT_SELF_DEVICE},
                                       {NULL, 0}};

static const char *who = "table"; /* whose options they are, for messages */

static int add_groups(const char *words, uint32_t *to) {
  const int status = command_read_choices(who, "--by", words, groups, to);
  /* its rows are kernels' names */
  if (*to & PROF_GROUP_KERNEL) *to |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  return status;
}

static int read_number(const char *option, uint64_t most, uint32_t *to) {
  uint64_t value = 0;
  const int status = command_read_number(who, option, optarg, 0, most, &value);
  *to = (uint32_t)value;
  return status;
}

static int parse_options(int argc, char **argv, prof_aggregate_options *options) {
  int status = EXIT_OK;
  for (int c; status == EXIT_OK && (c = command_option_next(&command_table, argc, argv)) != -1;) {
    switch (c) {
      case 'b':
        status = add_groups(optarg, &options->group);
        break;
      case 's':
        status = command_read_choice(who, "--sort", optarg, sorts, &options->sort);
        break;
      case 'r':
        status = command_read_rows(who, optarg, &options->rows_limit);
        break;
      case 'l':
        status = read_number("--level", 2, &options->level);
        break;
      case 'c':
        options->category = optarg;
        break;
      case 'f':
        status = read_number("--stack-frames", 1000000000, &options->stack_frames);
        break;
      case 'F':
        options->leave_out |= PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES;
        break;
      default:
        return EXIT_USAGE;
    }
  }
  return status;
}

int check_table_options(const char *command, int argc, char **argv) {
  prof_aggregate_options options = {.size = sizeof options};
  who = command;
  optind = 0; /* as at a first call */
  const int status = parse_options(argc, argv, &options);
  who = "table";
  optind = 0;
  return status;
}

static int execute_table(int argc, char **argv) {
  prof_aggregate_options options = {.size = sizeof options};
  const int status = parse_options(argc, argv, &options);
  if (status != EXIT_OK) return status;
  const size_t count = (size_t)(argc - optind);
  if (count == 0) return refuse_words("table", "takes captures", NULL);
  prof_trace **const traces = calloc(count, sizeof *traces);
  size_t opened = 0;
  char *text = NULL;
  while (traces && opened < count &&
         (traces[opened] = open_capture(argv[optind + (int)opened])) != NULL)
    opened++;
  int result = EXIT_FAILED;
  options.text_width = terminal_columns(STDOUT_FILENO);
  if (traces && opened == count) {
    const int said = prof_traces_table((const prof_trace *const *)traces, count, &options, &text);
    result = said == PROF_OK ? EXIT_OK : EXIT_FAILED;
    if (said == PROF_OK)
      fputs(text, stdout);
    else
      say("prof table: %s: %s", prof_status_text(said), prof_last_error());
  }
  prof_free(text);
  while (opened > 0) prof_trace_destroy(traces[--opened]);
  free(traces);
  return result;
}

static const command_option options_of_table[] = {
    {"by", 'b', "GROUPS",
     .help =
         "what is one row: name,category,device,thread,process, shape,stack,scopes,kernel; may be "
         "repeated (default name,category)",
     .choices = groups, .is_list = true},
    {"sort", 's', "BY",
     .help = "total, self, calls, mean, max, name, memory, self-memory, first, device, self-device "
             "(default total)",
     .choices = sorts},
    {"rows", 'r', "N", .help = "at most so many rows; all, or -1: all of them (default 100)"},
    {"level", 'l', "N", .help = "only scopes of this level, 1 or 2; 0: of both (default 0)"},
    {"category", 'c', "C", .help = "only scopes of this category (default: of all)"},
    {"stack-frames", 'f', "N",
     .help = "by stack or scopes: the innermost so many frames; 0: all (default 0)"},
    {"no-functions", 'F', NULL,
     .help = "traced functions, and calls of modules, have no rows, as in torch.profiler's tables"},
    {0}};

static const command_example examples[] = {
    {"prof table trace.prof", "the scopes that took most of the time"},
    {"prof table --by thread --sort self trace.prof", "what each thread did itself"},
    {"prof table --by kernel --rows 10 trace.prof", "the ten longest kernels and copies"},
    {0}};

const prof_command command_table = {
    .name = "table",
    .summary = "totals by name, category, device, thread, shape or stack",
    .words = "[OPTION...] FILE...",
    .about =
        "Totals of a capture, or of several together (of a program's processes, say), as a "
        "text table.",
    .notes =
        "Numbers are sorted from the largest, name and first (call) from the front. By "
        "kernel, kernels and copies on devices have rows of their own. On a terminal the "
        "table is as wide as that: long names are cut in the middle, and a line below names "
        "the columns that had no room. A pipe or a file has all of them.",
    .options = options_of_table,
    .examples = examples,
    .execute = execute_table};
