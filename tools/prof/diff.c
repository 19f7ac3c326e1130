/* prof diff A B: what changed between two sides of captures. src/analysis/compare.c decides,
   src/report/diff.c writes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/analysis/compare.h"
#include "../../src/report/internal.h"
#include "../../src/report/table.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum { WIDTH_MIN = 60, WIDTH_MAX = 1000, PASSES = 3 };

typedef enum diff_form { FORM_TEXT, FORM_JSON, FORM_CSV } diff_form;

typedef struct diff_words {
  prof_i_compare_options compare;
  prof_i_diff_options text;
  diff_form form;
  bool has_limit;
  double limit;
  filter_options filter;
  group_words by;
} diff_words;

/* "5%" or "5" */
static int read_percent(const char *option, const char *text, double *to) {
  char *end;
  const double value = strtod(text, &end);
  if (end != text && *end == '%') end++;
  if (end == text || *end || !(value >= 0 && value <= 10000)) {
    char wrong[64];
    snprintf(wrong, sizeof wrong, "%s takes a percentage such as 5%%, not", option);
    return refuse_words("diff", wrong, text);
  }
  *to = value / 100;
  return EXIT_OK;
}

static int set_form(diff_words *w, diff_form form) {
  if (w->form != FORM_TEXT && w->form != form)
    return refuse_words("diff", "takes --json or --csv, not both", NULL);
  w->form = form;
  return EXIT_OK;
}

static int read_keys(diff_words *w) {
  const uint32_t stacks = PROF_GROUP_STACK | PROF_GROUP_SCOPES, kernels = PROF_GROUP_KERNEL;
  const int status = group_words_set("diff", &w->by);
  if (status != EXIT_OK) return status;
  if (w->by.group & stacks)
    return refuse_words("diff", "--by: for stacks use --tree, not", w->by.text);
  if (w->by.group & kernels)
    return refuse_words("diff", "--by: work of devices has rows already, so leave out kernel of",
                        w->by.text);
  for (uint32_t i = 0; i < w->by.key_count; i++)
    w->text.titles[i] = prof_i_table_group_title(w->by.keys[i], w->by.arg_key);
  w->text.title_count = w->by.key_count;
  return EXIT_OK;
}

static int read_words(int argc, char **argv, diff_words *w) {
  int status = EXIT_OK;
  command_width width = {0};
  for (int c; status == EXIT_OK && (c = command_option_next(&command_diff, argc, argv)) != -1;) {
    switch (c) {
      case 't':
        w->compare.is_by_path = true;
        break;
      case 'b':
        status = read_keys(w);
        break;
      case 'j':
        status = set_form(w, FORM_JSON);
        break;
      case 'c':
        status = set_form(w, FORM_CSV);
        break;
      case 'r':
        status = command_read_rows("diff", optarg, &w->text.rows_limit);
        break;
      case 'w':
        status = command_read_width("diff", optarg, WIDTH_MIN, WIDTH_MAX, &width);
        break;
      case 'l':
        status = read_percent("--threshold", optarg, &w->compare.threshold);
        break;
      case 'f':
        status = read_percent("--fail-on", optarg, &w->limit);
        w->has_limit = true;
        break;
      default:
        if (!filter_options_take(&w->filter, c)) return EXIT_USAGE;
    }
  }
  w->text.width = command_width_columns(&width);
  if (w->text.width && w->text.width < WIDTH_MIN) w->text.width = WIDTH_MIN;
  if (status == EXIT_OK && w->compare.is_by_path && w->by.text)
    return refuse_words(
        "diff", "--by groups rows, and --tree shows call paths: give only one of them", NULL);
  return status == EXIT_OK ? filter_options_finish("diff", &w->filter) : status;
}

static int add_captures(prof_i_comparison *comparison, const command_sides *sides) {
  const int status = sides_compare(sides, comparison);
  if (status != EXIT_OK) return status;
  const int finished = prof_i_comparison_finish(comparison);
  return finished == PROF_OK ? EXIT_OK : say_status("diff", finished);
}

static int print_comparison(const prof_i_comparison *comparison, const diff_words *w) {
  char *text = NULL;
  progress_end();
  const int status = w->form == FORM_JSON  ? prof_i_diff_json(comparison, &text)
                     : w->form == FORM_CSV ? prof_i_diff_csv(comparison, &text)
                                           : prof_i_diff_text(comparison, &w->text, &text);
  if (status != PROF_OK) return say_status("diff", status);
  if (w->form == FORM_TEXT)
    fputs(text, stdout);
  else
    print_data(&(data_printer){{0}, 0}, text, strlen(text));
  free(text);
  if (!comparison->line_count && w->filter.filter) return filter_says_nothing("diff");
  if (!comparison->line_count && w->by.text) return group_words_says_nothing("diff", &w->by);
  if (!comparison->line_count && !input_contents_opened()->has_scopes)
    input_says_nothing("diff", input_contents_opened(), false);
  if (!w->has_limit) return EXIT_OK;
  if (!comparison->tested_count) {
    say("prof diff: --fail-on has no row to judge: none has %d captures on both sides",
        PROF_I_VERDICT_RUNS_MIN);
    return EXIT_FAILED;
  }
  const uint32_t beyond = prof_i_comparison_beyond(comparison, w->limit);
  if (beyond)
    say("prof diff: %u row%s slower by more than %g%%", beyond, beyond == 1 ? " is" : "s are",
        w->limit * 100);
  return beyond ? EXIT_NO : EXIT_OK;
}

/* False, after a message: --fail-on has too few captures for a verdict. */
static bool can_fail(const prof_i_comparison *c, const diff_words *w) {
  if (!w->has_limit || prof_i_comparison_has_verdicts(c)) return true;
  say("prof diff: --fail-on needs %d captures of each side; base has %u, new %u",
      PROF_I_VERDICT_RUNS_MIN, c->options.runs_count[0], c->options.runs_count[1]);
  return false;
}

static int compare_sides(const command_sides *sides, diff_words *w) {
  prof_i_comparison comparison;
  for (uint32_t side = 0; side < PROF_I_SIDES; side++)
    w->compare.runs_count[side] = (uint32_t)sides->sides[side].count;
  prof_i_comparison_init(&comparison, &w->compare);
  comparison.paths.filter = w->filter.filter;
  memcpy(comparison.paths.keys, w->by.keys, sizeof w->by.keys);
  comparison.paths.key_count = w->by.key_count;
  comparison.paths.arg_key = w->by.arg_key;
  if (w->compare.is_by_path) comparison.paths.depth_max = PROF_I_PATHS_DEPTH_MAX;
  int status = EXIT_FAILED;
  if (can_fail(&comparison, w)) status = add_captures(&comparison, sides);
  /* A filter may have left captures out. */
  if (status == EXIT_OK && !can_fail(&comparison, w)) status = EXIT_FAILED;
  if (status == EXIT_OK) status = print_comparison(&comparison, w);
  prof_i_comparison_fini(&comparison);
  return status;
}

static int execute_diff(int argc, char **argv) {
  diff_words w = {.compare.threshold = 0.02, .text.rows_limit = PROF_I_DIFF_ROWS_DEFAULT};
  command_sides sides = {.command = "diff"};
  progress_begin("diff", PASSES);
  int status = sides_take(&sides, &argc, argv);
  if (status == EXIT_OK) status = read_words(argc, argv, &w);
  if (status == EXIT_OK) status = sides_finish(&sides, argc, argv, true);
  if (status == EXIT_OK) status = compare_sides(&sides, &w);
  filter_options_free(&w.filter);
  group_words_free(&w.by);
  sides_free(&sides);
  return status;
}

static const command_option options[] = {
    {.name = "base", .argument = "A...", .help = "captures of the first side", .id = 'B'},
    {.name = "new", .argument = "B...", .help = "captures of the second side", .id = 'N'},
    {.name = "tree", .help = "a line for each call path, as a tree", .id = 't'},
    {.name = "by",
     .argument = "GROUPS",
     .help = "what is one row: name, category, device, thread, process, rank, shape, line, or "
             "arg:KEY, an argument's value; several with commas (default name,category)",
     .choices = group_choices,
     .is_list = true,
     .id = 'b'},
    {.name = "threshold",
     .argument = "PERCENT",
     .help = "a verdict needs an interval outside of this (2%)",
     .id = 'l'},
    {.name = "fail-on",
     .argument = "PERCENT",
     .help = "end with 3 if a row is slower by more, with its whole interval",
     .id = 'f'},
    {.name = "rows", .argument = "N|all", .help = "rows of the text (40)", .id = 'r'},
    {.name = "width",
     .argument = "COLUMNS",
     .help = "of the text, 60 or more; 0: any (the terminal's; a pipe or a file has any)",
     .id = 'w'},
    {.name = "json", .help = "all rows as JSON", .id = 'j'},
    {.name = "csv", .help = "all rows as CSV", .id = 'c'},
    {.more = filter_option_list},
    {0}};

static const command_example examples[] = {
    {"prof diff before.prof after.prof", "two runs: changes without a verdict"},
    {"prof diff before after", "two folders of runs"},
    {0}};

const prof_command command_diff = {
    .name = "diff",
    .summary = "compares two captures, or two sets of captures",
    .words = "[OPTION...] A B | --base A... --new B...",
    .about =
        "A side is a capture, a folder of captures, or a quoted glob. A verdict needs four "
        "captures of each side.",
    .statuses =
        "Exit status: 0 done, 1 it could not be done, 2 wrong words, 3 --fail-on was passed, or "
        "no scope passed the filter, or none has the argument or line that --by names.",
    .options = options,
    .examples = examples,
    .execute = execute_diff,
    .reads_captures = true};
