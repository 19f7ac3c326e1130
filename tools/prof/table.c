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

static const struct {
  const char *word;
  uint32_t value;
} groups[] = {{"name", PROF_GROUP_NAME},       {"category", PROF_GROUP_CATEGORY},
              {"device", PROF_GROUP_DEVICE},   {"thread", PROF_GROUP_THREAD},
              {"process", PROF_GROUP_PROCESS}, {"shape", PROF_GROUP_SHAPE},
              {"stack", PROF_GROUP_STACK},     {"scopes", PROF_GROUP_SCOPES},
              {"kernel", PROF_GROUP_KERNEL}},
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
             {"self-device", PROF_SORT_SELF_DEVICE}};

/* Each line has at most 80 columns. */
static const char help_text[] =
    "usage: prof table [OPTION...] FILE...\n"
    "\n"
    "Totals of a capture, or of several together (of a program's processes, say), as\n"
    "a text table.\n"
    "\n"
    "  -b, --by GROUPS        what is one row: name,category,device,thread,process,\n"
    "                         shape,stack,scopes,kernel; may be repeated\n"
    "                         (default name,category)\n"
    "  -s, --sort BY          total, self, calls, mean, max, name, memory,\n"
    "                         self-memory, first, device, self-device\n"
    "                         (default total)\n"
    "  -r, --rows N           at most so many rows; all, or -1: all of them\n"
    "                         (default 100)\n"
    "  -l, --level N          only scopes of this level, 1 or 2; 0: of both\n"
    "                         (default 0)\n"
    "  -c, --category C       only scopes of this category (default: of all)\n"
    "  -f, --stack-frames N   by stack or scopes: the innermost so many frames;\n"
    "                         0: all (default 0)\n"
    "  -F, --no-functions     traced functions, and calls of modules, have no rows,\n"
    "                         as in torch.profiler's tables\n"
    "  -h, --help             this text\n"
    "\n"
    "Numbers are sorted from the largest, name and first (call) from the front. By\n"
    "kernel, kernels and copies on devices have rows of their own. On a terminal the\n"
    "table is as wide as that: long names are cut in the middle, and a line below\n"
    "names the columns that had no room. A pipe or a file has all of them.\n";

static const char *who = "table"; /* whose options they are, for messages */

static int add_groups(char *words, uint32_t *to) {
  for (char *rest = words, *word; (word = strsep(&rest, ",")) != NULL;) {
    size_t i = 0;
    while (i < sizeof groups / sizeof *groups && strcmp(word, groups[i].word) != 0) i++;
    if (i == sizeof groups / sizeof *groups) return refuse_words(who, "--by: no such group:", word);
    *to |= groups[i].value;
  }
  /* its rows are kernels' names */
  if (*to & PROF_GROUP_KERNEL) *to |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  return EXIT_OK;
}

static int choose_sort(const char *word, uint32_t *to) {
  for (size_t i = 0; i < sizeof sorts / sizeof *sorts; i++) {
    if (strcmp(word, sorts[i].word) != 0) continue;
    *to = sorts[i].value;
    return EXIT_OK;
  }
  return refuse_words(who, "--sort: no such order:", word);
}

static int parse_number(const char *name, const char *text, unsigned long most, uint32_t *to) {
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end || text[0] < '0' || text[0] > '9' || value > most) return refuse_words(who, name, text);
  *to = (uint32_t)value;
  return EXIT_OK;
}

static int read_rows(const char *text, uint32_t *to) {
  const char *const wrong = "--rows: no number of rows, nor all:";
  *to = UINT32_MAX;
  if (strcmp(text, "all") == 0 || strcmp(text, "-1") == 0) return EXIT_OK;
  const int status = parse_number(wrong, text, 1000000000, to);
  /* to the library 0 is as many as it shows by itself */
  return status == EXIT_OK && *to == 0 ? refuse_words(who, wrong, text) : status;
}

static int parse_options(int argc, char **argv, prof_aggregate_options *options) {
  static const struct option words[] = {{"by", 1, 0, 'b'},           {"sort", 1, 0, 's'},
                                        {"rows", 1, 0, 'r'},         {"level", 1, 0, 'l'},
                                        {"category", 1, 0, 'c'},     {"stack-frames", 1, 0, 'f'},
                                        {"no-functions", 0, 0, 'F'}, {0, 0, 0, 0}};
  int status = EXIT_OK;
  for (int c;
       status == EXIT_OK && (c = getopt_long(argc, argv, "b:s:r:l:c:f:F", words, NULL)) != -1;) {
    switch (c) {
      case 'b':
        status = add_groups(optarg, &options->group);
        break;
      case 's':
        status = choose_sort(optarg, &options->sort);
        break;
      case 'r':
        status = read_rows(optarg, &options->rows_limit);
        break;
      case 'l':
        status = parse_number("--level: not 0, 1 or 2:", optarg, 2, &options->level);
        break;
      case 'c':
        options->category = optarg;
        break;
      case 'f':
        status = parse_number("--stack-frames: not a number:", optarg, 1000000000,
                              &options->stack_frames);
        break;
      case 'F':
        options->leave_out |= PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES;
        break;
      default:
        return refuse_option(who, argc, argv);
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

void print_table_help(FILE *to) { fputs(help_text, to); }

int command_table(int argc, char **argv) {
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
