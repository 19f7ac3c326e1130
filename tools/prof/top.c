/* prof top PID|FILE: the table of a process that records, again and again. Each table is of the
   capture as it is then. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../src/base/display.h"
#include "../../src/report/table.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum {
  LINES_BESIDE_ROWS = 12, /* heading, titles, and what is below the rows */
  ROWS_MIN = 5,
  ROWS_USUAL = 20 /* not on a terminal */
};

typedef struct top_words {
  prof_aggregate_options options;
  filter_options filter;
  uint64_t interval_ns, last_ns, count; /* last_ns, count 0: all */
  bool has_rows;
} top_words;

static int read_words(int argc, char **argv, top_words *w) {
  int status = EXIT_OK;
  for (int c; status == EXIT_OK && (c = command_option_next(&command_top, argc, argv)) != -1;) {
    switch (c) {
      case 'i':
        status = command_read_time("top", "--interval", optarg, &w->interval_ns);
        break;
      case 'l':
        status = command_read_time("top", "--last", optarg, &w->last_ns);
        break;
      case 'n':
        status = command_read_number("top", "--count", optarg, 1, 1000000000, &w->count);
        break;
      case 's':
        status = command_read_choice("top", "--sort", optarg, sort_choices, &w->options.sort);
        break;
      case 'r':
        status = command_read_rows("top", optarg, &w->options.rows_limit);
        w->has_rows = true;
        break;
      default:
        if (!filter_options_take(&w->filter, c)) return EXIT_USAGE;
    }
  }
  return status == EXIT_OK ? filter_options_finish("top", &w->filter) : status;
}

/* The file of the process, or the word itself. */
static bool find_path(const char *word, char *path, size_t room) {
  long pid;
  if (input_word_is_process(word, &pid)) return input_of_process("top", pid, path, room);
  if (snprintf(path, room, "%s", word) < (int)room) return true;
  say("prof top: the path '%s' is too long", word);
  return false;
}

static void print_heading(const prof_trace_info *info) {
  char time[64];
  prof_i_put_time(time, sizeof time, info->duration_ns, 0);
  print_text(stdout, info->process_name, strlen(info->process_name));
  printf(" (%llu): %s, level %u%s\n", (unsigned long long)info->pid, time,
         info->is_live ? info->level_now : info->level, info->is_live ? "" : "; it has ended");
}

static void fit_to_terminal(top_words *w) {
  const unsigned lines = terminal_lines(STDOUT_FILENO);
  w->options.text_width = terminal_columns(STDOUT_FILENO);
  if (w->has_rows) return;
  w->options.rows_limit = lines > LINES_BESIDE_ROWS + ROWS_MIN ? lines - LINES_BESIDE_ROWS
                          : lines                              ? ROWS_MIN
                                                               : ROWS_USUAL;
}

/* The capture of the first table is of no process that runs. */
static void say_how_to_follow(const char *word) {
  long pid;
  if (input_word_is_process(word, &pid)) return;
  say("prof top: no process records into '%s' any more, so it has one table: prof table has more "
      "options, and prof top PID follows a process that runs",
      word);
}

/* One table. *is_over_out: the process has ended. */
static int print_table(const char *path, top_words *w, bool is_first, bool *is_over_out) {
  /* a process that ends gives the file its final name, or removes it */
  *is_over_out = !is_first && access(path, F_OK) != 0;
  if (*is_over_out) return EXIT_OK;
  prof_trace *const trace = open_capture_file(path);
  if (!trace) {
    *is_over_out = !is_first && access(path, F_OK) != 0; /* meanwhile */
    return *is_over_out ? EXIT_OK : EXIT_FAILED;
  }
  prof_trace_info info = {.size = sizeof info};
  prof_i_table_form form = {.more = {.filter = w->filter.filter}};
  const prof_trace *const traces[] = {trace};
  char *text = NULL;
  prof_trace_info_get(trace, &info);
  *is_over_out = !info.is_live && (info.was_clean || info.is_copy || !info.is_elsewhere);
  fit_to_terminal(w);
  w->options.from_ns =
      w->last_ns && info.duration_ns > w->last_ns ? info.duration_ns - w->last_ns : 0;
  const int status = prof_i_traces_table(traces, 1, &w->options, &form, &text);
  if (status == PROF_OK) {
    fputs(isatty(STDOUT_FILENO) ? "\x1b[H\x1b[J" : is_first ? "" : "\n", stdout);
    print_heading(&info);
    fputs(text, stdout);
  } else {
    say_status("top", status);
  }
  free(text);
  prof_trace_destroy(trace);
  /* the reader of a pipe may be gone: main() says so */
  return status == PROF_OK && fflush(stdout) == 0 ? EXIT_OK : EXIT_FAILED;
}

static void wait_for(uint64_t ns) {
  struct timespec left = {.tv_sec = (time_t)(ns / 1000000000), .tv_nsec = (long)(ns % 1000000000)};
  while (nanosleep(&left, &left) != 0 && errno == EINTR) {
  }
}

static int execute_top(int argc, char **argv) {
  char path[PATH_MAX];
  top_words w = {.options = {.size = sizeof w.options, .sort = PROF_SORT_SELF},
                 .interval_ns = 1000000000};
  int status = read_words(argc, argv, &w);
  if (status == EXIT_OK && argc - optind != 1)
    status = refuse_words("top", "takes one process or its capture", NULL);
  if (status == EXIT_OK && !find_path(argv[optind], path, sizeof path)) status = EXIT_FAILED;
  bool is_over = false;
  for (uint64_t i = 0; status == EXIT_OK && !is_over && (w.count == 0 || i < w.count); i++) {
    if (i) wait_for(w.interval_ns);
    status = print_table(path, &w, i == 0, &is_over);
    if (status == EXIT_OK && is_over && i == 0) say_how_to_follow(argv[optind]);
  }
  filter_options_free(&w.filter);
  return status;
}

static const command_option options[] = {
    {.name = "interval",
     .letter = 'i',
     .argument = "TIME",
     .help = "between two tables, as 500ms (default 1s)"},
    {.name = "last",
     .argument = "TIME",
     .help = "only scopes that began in this time before the table (default all)",
     .id = 'l'},
    {.name = "count",
     .letter = 'n',
     .argument = "N",
     .help = "so many tables (default: until the process ends)"},
    {.name = "sort",
     .letter = 's',
     .argument = "BY",
     .help = "as prof table has it (default self)",
     .choices = sort_choices},
    {.name = "rows",
     .letter = 'r',
     .argument = "N",
     .help = "at most so many rows (default: the terminal's; a pipe has 20)"},
    {.more = filter_option_list},
    {0}};

static const command_example examples[] = {
    {"prof top --count 1 trace.prof", "one table of a capture"},
    {"prof top --count 2 --interval 100ms --last 5s trace.prof", "what took the last five seconds"},
    {0}};

const prof_command command_top = {
    .name = "top",
    .summary = "prints the table of a running process again and again",
    .words = "[OPTION...] PID|FILE",
    .about =
        "The table of a process that records into a file: the scopes that took most of the time. "
        "It ends with the process, or with Ctrl-C.",
    .notes = FILTER_NOTES,
    .options = options,
    .examples = examples,
    .execute = execute_top,
    .reads_captures = true};
