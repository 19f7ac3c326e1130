/* prof events FILE: single scopes, in the order of time or those with the most time.
   src/analysis/single_scopes.c finds them, src/report/scope_list.c writes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "../../src/report/scope_list.h"
#include "commands.h"
#include "filter_options.h"

enum { WIDTH_MIN = 70, WIDTH_MAX = 100000, TOP_USUAL = 10 };

static const command_choice orders[] = {{"start", PROF_I_SCOPES_BY_START},
                                        {"duration", PROF_I_SCOPES_BY_DURATION},
                                        {"self", PROF_I_SCOPES_BY_SELF},
                                        {0}};

typedef struct events_words {
  prof_i_scope_list_options list;
  filter_options filter;
  bool has_limit;
} events_words;

static int set_form(events_words *w, prof_i_scope_list_form form) {
  if (w->list.form != PROF_I_SCOPE_LIST_TEXT && w->list.form != form)
    return refuse_words("events", "takes --json or --csv, not both", NULL);
  w->list.form = form;
  return EXIT_OK;
}

static int read_limit(events_words *w) {
  w->has_limit = true;
  w->list.scopes.limit = UINT64_MAX;
  if (strcmp(optarg, "all") == 0) return EXIT_OK;
  return command_read_number("events", "--top (or all)", optarg, 1, 1000000000,
                             &w->list.scopes.limit);
}

static int read_words(int argc, char **argv, events_words *w) {
  int status = EXIT_OK;
  uint32_t order = PROF_I_SCOPES_BY_START;
  uint64_t width = 0;
  for (int c; status == EXIT_OK && (c = command_option_next(&command_events, argc, argv)) != -1;) {
    switch (c) {
      case 's':
        status = command_read_choice("events", "--sort", optarg, orders, &order);
        break;
      case 'n':
        status = read_limit(w);
        break;
      case 'j':
        status = set_form(w, PROF_I_SCOPE_LIST_JSON);
        break;
      case 'c':
        status = set_form(w, PROF_I_SCOPE_LIST_CSV);
        break;
      case 'w':
        status = command_read_number("events", "--width", optarg, WIDTH_MIN, WIDTH_MAX, &width);
        break;
      default:
        if (!filter_options_take(&w->filter, c)) return EXIT_USAGE;
    }
  }
  if (status == EXIT_OK) status = filter_options_finish("events", &w->filter);
  w->list.scopes.order = (prof_i_scopes_order)order;
  w->list.scopes.filter = w->filter.filter;
  if (!w->has_limit)
    w->list.scopes.limit = order == PROF_I_SCOPES_BY_START ? UINT64_MAX : TOP_USUAL;
  w->list.width = width ? (uint32_t)width : terminal_columns(STDOUT_FILENO);
  return status;
}

/* main() says why it could not be written. */
static int write_out(void *user, const char *bytes, size_t count) {
  print_data(user, bytes, count);
  return ferror(stdout) ? EXIT_FAILED : PROF_OK;
}

static int list_scopes(const prof_trace *trace, const events_words *w) {
  prof_i_scopes_result result;
  data_printer printer = {{0}, 0};
  const int status = prof_i_scope_list(trace, &w->list, write_out, &printer, &result);
  if (status < 0) say_status("events", status);
  if (status != PROF_OK) return EXIT_FAILED;
  return result.given_count == 0 && w->filter.filter ? filter_says_nothing("events") : EXIT_OK;
}

static int execute(int argc, char **argv) {
  events_words w = {0};
  int status = read_words(argc, argv, &w);
  if (status == EXIT_OK && argc - optind != 1)
    status = refuse_words("events", "takes one capture", NULL);
  if (status == EXIT_OK) {
    prof_trace *const trace = open_capture(argv[optind]);
    status = trace ? list_scopes(trace, &w) : EXIT_FAILED;
    prof_trace_destroy(trace);
  }
  filter_options_free(&w.filter);
  return status;
}

static const command_option options[] = {
    {.name = "sort",
     .letter = 's',
     .argument = "BY",
     .help = "start, duration, or self: the longest first (default start)",
     .choices = orders},
    {.name = "top",
     .letter = 'n',
     .argument = "N",
     .help = "at most so many, or all (default 10; by start all)"},
    {.name = "csv", .help = "CSV (RFC 4180) with a heading; times in ns", .id = 'c'},
    {.name = "json", .help = "JSON: an object a line; times in ns", .id = 'j'},
    {.name = "width",
     .argument = "N",
     .help = "columns of the text, 70 or more (default: the terminal's; a pipe has any)",
     .id = 'w'},
    {.more = filter_option_list},
    {0}};

static const command_example examples[] = {
    {"prof events --sort duration --top 5 trace.prof", "the five longest scopes"},
    {"prof events --name '^convolution$' --sort duration trace.prof", "the slowest calls of one"},
    {"prof events --from 2ms --to 3ms trace.prof", "what happened in that time"},
    {"prof events --json --arg step=7 trace.prof", "for a program, with arguments"},
    {0}};

const prof_command command_events = {
    .name = "events",
    .summary = "lists single scopes, in the order of time or the longest first",
    .words = "[OPTION...] FILE",
    .about =
        "Single scopes of a capture, with their arguments. Times are from the start of the "
        "capture.\n" COMMAND_FILE_WORDS,
    .notes =
        "Depth is the number of scopes around it on its thread. An open scope had not ended: its "
        "duration is up to the end of the capture.\n\n" FILTER_NOTES,
    .statuses = FILTER_STATUSES,
    .options = options,
    .examples = examples,
    .execute = execute,
    .reads_captures = true};
