/* prof report FILE...: one HTML file with a table, a time line and flame graphs; with --base also
   the difference that `prof diff` prints. src/report/html.c writes it. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/analysis/compare.h"
#include "../../src/report/internal.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum { DIFFERENCE_WIDTH = 160, DIFFERENCE_ROWS = 200, PASSES = 6 };

typedef struct report_words {
  prof_i_html_options html;
  const char *output;
  filter_options filter;
  group_words by;
} report_words;

static int read_words(int argc, char **argv, report_words *w) {
  for (int c; (c = command_option_next(&command_report, argc, argv)) != -1;) {
    if (c == 'o')
      w->output = optarg;
    else if (c == 't')
      w->html.title = optarg;
    else if (c == 'b' ? group_words_set("report", &w->by) != EXIT_OK
                      : !filter_options_take(&w->filter, c))
      return EXIT_USAGE;
  }
  const int status = filter_options_finish("report", &w->filter);
  w->html.filter = w->filter.filter;
  w->html.group = w->by.group;
  if (w->by.text) {
    memcpy(w->html.keys, w->by.keys, sizeof w->by.keys);
    w->html.key_count = w->by.key_count;
  }
  w->html.arg_key = w->by.arg_key;
  return status;
}

/* What the page has of both sides. Begins as zeros. */
typedef struct report_difference {
  char *text;
  prof_i_paths paths;
  prof_i_html_difference html;
} report_difference;

/* Takes the paths of the comparison. */
static void keep_difference(report_difference *d, prof_i_comparison *comparison) {
  d->paths = comparison->paths;
  comparison->paths = (prof_i_paths){0};
  d->html = (prof_i_html_difference){.text = d->text, .paths = &d->paths};
  for (uint32_t side = 0; side < PROF_I_SIDES; side++) {
    const uint32_t count = comparison->options.runs_count[side];
    d->html.runs_count[side] = count ? count : 1;
  }
}

static int make_difference(const command_sides *sides, const report_words *w,
                           report_difference *d) {
  const prof_i_compare_options options = {
      .runs_count = {(uint32_t)sides->sides[0].count, (uint32_t)sides->sides[1].count},
      .threshold = 0.02};
  const prof_i_diff_options form = {.width = DIFFERENCE_WIDTH, .rows_limit = DIFFERENCE_ROWS};
  prof_i_comparison comparison;
  prof_i_comparison_init(&comparison, &options);
  comparison.paths.filter = w->filter.filter;
  int status = sides_compare(sides, &comparison);
  if (status == EXIT_OK && (prof_i_comparison_finish(&comparison) != PROF_OK ||
                            prof_i_diff_text(&comparison, &form, &d->text) != PROF_OK))
    status = say_status("report", PROF_E_NO_MEMORY);
  if (status == EXIT_OK) keep_difference(d, &comparison);
  prof_i_comparison_fini(&comparison);
  return status;
}

static int say_nothing(const report_words *w) {
  return w->filter.filter ? filter_says_nothing("report")
                          : group_words_says_nothing("report", &w->by);
}

static int write_report(const command_sides *sides, const report_words *w) {
  const side_captures *const captures = &sides->sides[PROF_I_SIDE_NEW];
  prof_trace **const traces = calloc(captures->count, sizeof *traces);
  size_t opened = 0;
  int result = EXIT_FAILED;
  while (traces && opened < captures->count &&
         (traces[opened] = open_capture(captures->paths[opened])) != NULL)
    opened++;
  if (traces && opened == captures->count) {
    bool is_empty;
    const int status = prof_i_html_write((const prof_trace *const *)traces, opened, &w->html,
                                         w->output, &is_empty);
    result = status != PROF_OK ? say_status("report", status) : is_empty ? say_nothing(w) : EXIT_OK;
    if (result == EXIT_OK) say("prof report: %s written", w->output);
  }
  while (opened > 0) prof_trace_destroy(traces[--opened]);
  free(traces);
  return result;
}

static int execute_report(int argc, char **argv) {
  report_words w = {.output = "report.html",
                    .html = {.keys = {PROF_GROUP_NAME, PROF_GROUP_CATEGORY}, .key_count = 2}};
  command_sides sides = {.command = "report"};
  report_difference difference = {0};
  progress_begin("report", PASSES);
  int status = sides_take(&sides, &argc, argv);
  if (status == EXIT_OK) status = read_words(argc, argv, &w);
  if (status == EXIT_OK) status = sides_finish(&sides, argc, argv, false);
  if (status == EXIT_OK) status = sides_check_output(&sides, &w.output);
  if (status == EXIT_OK && sides.is_named) status = make_difference(&sides, &w, &difference);
  if (difference.text) w.html.difference = &difference.html;
  if (status == EXIT_OK) status = write_report(&sides, &w);
  free(difference.text);
  prof_i_paths_fini(&difference.paths);
  filter_options_free(&w.filter);
  group_words_free(&w.by);
  sides_free(&sides);
  return status;
}

static const command_option options[] = {
    {.name = "output", .letter = 'o', .argument = "FILE", .help = "(default report.html)"},
    {.name = "title", .argument = "TEXT", .help = "of the page (default: the process)", .id = 't'},
    {.name = "base", .argument = "A...", .help = "with --new: what changed since these", .id = 'B'},
    {.name = "new", .argument = "B...", .help = "the captures that the page is of", .id = 'N'},
    {.name = "by",
     .argument = "GROUPS",
     .help = "what is one row of the table: prof table's groups, such as line or name,arg:KEY "
             "(default name,category)",
     .choices = group_choices,
     .is_list = true,
     .id = 'b'},
    {.more = filter_option_list},
    {0}};

static const command_example examples[] = {
    {"prof report -o trace.html trace.prof", "then open trace.html in a browser"}, {0}};

const prof_command command_report = {
    .name = "report",
    .summary = "writes one HTML file with table, time line and flame graphs",
    .words = "[OPTION...] FILE... | --base A... --new B...",
    .about =
        "Writes one HTML file, which needs no network and no other file. Several captures, or "
        "those of a folder, are shown together.",
    .notes =
        FILTER_NOTES " The page says how many are left out. Memory and devices are not filtered.",
    .statuses = FILTER_STATUSES,
    .options = options,
    .examples = examples,
    .execute = execute_report,
    .reads_captures = true};
