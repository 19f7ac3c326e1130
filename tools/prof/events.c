/* prof events FILE: single scopes, in the order of time or those with the most time.
   src/analysis/single_scopes.c finds them, src/report/scope_list.c writes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/export/merge.h"
#include "../../src/report/internal.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

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
  return command_read_limit("events", "--top", optarg, &w->list.scopes.limit);
}

static int read_words(int argc, char **argv, events_words *w) {
  int status = EXIT_OK;
  uint32_t order = PROF_I_SCOPES_BY_START;
  command_width width = {0};
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
        status = command_read_width("events", optarg, WIDTH_MIN, WIDTH_MAX, &width);
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
  w->list.width = command_width_columns(&width);
  return status;
}

/* main() says why it could not be written. */
static int write_out(void *user, const char *bytes, size_t count) {
  print_data(user, bytes, count);
  return ferror(stdout) ? EXIT_FAILED : PROF_OK;
}

static int say_nothing(const prof_i_placed_trace *placed, uint32_t count, const events_words *w) {
  input_contents contents = {0};
  for (uint32_t i = 0; i < count; i++)
    input_contents_add(&contents, placed[i].trace, w->filter.filter);
  return input_says_nothing("events", &contents, w->filter.filter != NULL);
}

static int list_scopes(const prof_i_placed_trace *traces, const prof_i_scope_list_capture *captures,
                       uint32_t count, const events_words *w) {
  prof_i_scopes_result result;
  data_printer printer = {{0}, 0};
  const int status =
      prof_i_scope_list(traces, captures, count, &w->list, write_out, &printer, &result);
  if (status < 0) say_status("events", status);
  if (status != PROF_OK) return EXIT_FAILED;
  return result.given_count == 0 ? say_nothing(traces, count, w) : EXIT_OK;
}

static int list_one(const char *word, const events_words *w) {
  const prof_i_placed_trace placed = {.trace = open_capture(word)};
  const prof_i_scope_list_capture capture = {.label = NULL};
  const int status = placed.trace ? list_scopes(&placed, &capture, 1, w) : EXIT_FAILED;
  prof_trace_destroy((prof_trace *)placed.trace);
  return status;
}

/* Opens the captures of a merged file. False, after a message: one cannot be opened. */
static bool open_placed(const merge_files *list, prof_i_placed_trace *traces,
                        prof_i_scope_list_capture *captures) {
  const uint64_t start = prof_i_merge_start_unix_ns(list->captures, list->count);
  for (uint32_t i = 0; i < list->count; i++) {
    traces[i] = (prof_i_placed_trace){open_capture_file(list->files[i].path),
                                      list->captures[i].placed_unix_ns - start};
    captures[i] =
        (prof_i_scope_list_capture){list->captures[i].pid_offset, list->captures[i].label};
    if (!traces[i].trace) return false;
  }
  return true;
}

/* The captures stand on one time line. Of each, the file is open while the scopes are listed. */
static int list_merged(const char *word, const events_words *w) {
  merge_files list = {.command = "events"};
  int status = merge_files_add(&list, word);
  if (status == EXIT_OK)
    status =
        merge_files_place(&list, false, "prof merge --unaligned makes a file that can be read");
  prof_i_placed_trace *const traces = calloc(list.count + 1, sizeof *traces);
  prof_i_scope_list_capture *const captures = calloc(list.count + 1, sizeof *captures);
  if (!traces || !captures) {
    say("prof events: no memory for %u captures", list.count);
    status = EXIT_FAILED;
  }
  if (status == EXIT_OK)
    status = open_placed(&list, traces, captures) ? list_scopes(traces, captures, list.count, w)
                                                  : EXIT_FAILED;
  for (uint32_t i = 0; traces && i < list.count; i++)
    prof_trace_destroy((prof_trace *)traces[i].trace);
  free(traces);
  free(captures);
  merge_files_free(&list);
  return status;
}

static int execute_events(int argc, char **argv) {
  events_words w = {0};
  uint32_t part_count = 1;
  input_tell_parts();
  int status = read_words(argc, argv, &w);
  if (status == EXIT_OK && argc - optind != 1)
    status = refuse_words("events", "takes one capture", NULL);
  if (status == EXIT_OK)
    status = prof_trace_part_count(argv[optind], &part_count) == PROF_OK && part_count > 1
                 ? list_merged(argv[optind], &w)
                 : list_one(argv[optind], &w);
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
     .help = "columns of the text, 70 or more; 0: any (default: the terminal's; a pipe has any)",
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
        "capture. Of a merged capture, all captures are listed on one time "
        "line.\n" COMMAND_FILE_WORDS,
    .notes =
        "Depth is the number of scopes around it on its thread. A step counts as one, but has no "
        "line. An open scope had not ended: its duration is up to the end of the "
        "capture.\n\n" FILTER_NOTES,
    .statuses = FILTER_STATUSES,
    .options = options,
    .examples = examples,
    .execute = execute_events,
    .reads_captures = true};
