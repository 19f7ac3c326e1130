/* prof table FILE...: totals as text, JSON or CSV. src/analysis/aggregate.c adds up one or
   several captures, src/report/table.c writes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../../src/report/table_columns.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum { OPTION_WIDTH = 256, OPTION_COLUMNS, OPTION_JSON, OPTION_CSV, OPTION_NO_TRACED, PASSES = 2 };
enum { WIDTH_MIN = 40, WIDTH_MAX = 100000 };

typedef struct table_words {
  prof_aggregate_options options;
  prof_i_table_form form;
  const char *columns; /* their words */
  const char *level;   /* as it was given */
  command_width width;
  group_words by;
  filter_options filter;
} table_words;

static const command_choice column_choices[] = {
#define COLUMN_CHOICE(word, title, kind, value, group, width, keep) {word, COLUMN_##kind},
    PROF_I_TABLE_COLUMN_LIST(COLUMN_CHOICE)
#undef COLUMN_CHOICE
        {NULL, 0}};

static const char *who = "table"; /* whose options they are, for messages */

static int read_number(const char *option, uint64_t most, uint32_t *to) {
  uint64_t value = 0;
  const int status = command_read_number(who, option, optarg, 0, most, &value);
  *to = (uint32_t)value;
  return status;
}

/* A group's column needs the group: its rows have no value of it otherwise. */
static int refuse_group(const char *column) {
  char text[128];
  snprintf(text, sizeof text, "--columns: %s is of rows --by", column);
  return refuse_words(who, text, strcmp(column, "location") == 0 ? "name" : column);
}

/* Once the groups are known. */
static int add_columns(table_words *w) {
  uint32_t bits = w->by.group;
  if (!(bits & ~(uint32_t)PROF_GROUP_KERNEL)) bits |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  char *const words = strdup(w->columns);
  int status = words ? EXIT_OK : EXIT_FAILED;
  for (char *rest = words, *word; status == EXIT_OK && (word = strsep(&rest, ",")) != NULL;) {
    uint32_t column = 0, groups_of;
    status = command_read_choice(who, "--columns", word, column_choices, &column);
    if (status != EXIT_OK) break;
    prof_i_table_column_word(column, &groups_of);
    bool is_twice = w->form.column_count == PROF_I_TABLE_COLUMNS_MAX;
    for (size_t i = 0; i < w->form.column_count; i++) is_twice |= w->form.columns[i] == column;
    if (is_twice)
      status = refuse_words(who, "--columns has twice", word);
    else if (groups_of && !(groups_of & bits))
      status = refuse_group(word);
    else
      w->form.columns[w->form.column_count++] = column;
  }
  free(words);
  return status;
}

static int set_kind(table_words *w, prof_i_table_kind kind) {
  if (w->form.kind != PROF_I_TABLE_TEXT && w->form.kind != kind)
    return refuse_words(who, "takes --json or --csv, not both", NULL);
  w->form.kind = kind;
  return EXIT_OK;
}

static int parse_options(int argc, char **argv, table_words *w) {
  prof_aggregate_options *const options = &w->options;
  int status = EXIT_OK;
  for (int c; status == EXIT_OK && (c = command_option_next(&command_table, argc, argv)) != -1;) {
    switch (c) {
      case 'b':
        status = group_words_add(who, &w->by, optarg);
        break;
      case 's':
        status = command_read_choice(who, "--sort", optarg, sort_choices, &options->sort);
        break;
      case 'r':
        status = command_read_rows(who, optarg, &options->rows_limit);
        break;
      case 'l':
        filter_options_set(&w->filter, &w->level);
        status = read_number("--level", 2, &options->level);
        break;
      case 'c':
        filter_options_set(&w->filter, &options->category);
        break;
      case 'f':
        status = read_number("--stack-frames", 1000000000, &options->stack_frames);
        break;
      case 'F':
        options->leave_out |= PROF_LEAVE_OUT_FUNCTIONS | PROF_LEAVE_OUT_MODULES;
        break;
      case OPTION_NO_TRACED:
        options->leave_out |= PROF_LEAVE_OUT_FUNCTIONS;
        break;
      case OPTION_WIDTH:
        status = command_read_width(who, optarg, WIDTH_MIN, WIDTH_MAX, &w->width);
        break;
      case OPTION_COLUMNS:
        w->columns = optarg;
        break;
      case OPTION_JSON:
        status = set_kind(w, PROF_I_TABLE_JSON);
        break;
      case OPTION_CSV:
        status = set_kind(w, PROF_I_TABLE_CSV);
        break;
      default:
        if (!filter_options_take(&w->filter, c)) return EXIT_USAGE;
    }
  }
  if (status == EXIT_OK) status = filter_options_finish(who, &w->filter);
  w->form.more.filter = w->filter.filter;
  options->group = w->by.group & ~(uint32_t)PROF_I_GROUP_FURTHER;
  w->form.more.group = w->by.group & PROF_I_GROUP_FURTHER;
  w->form.more.arg_key = w->by.arg_key;
  return status == EXIT_OK && w->columns ? add_columns(w) : status;
}

int check_table_options(const char *command, int argc, char **argv) {
  table_words w = {.options.size = sizeof w.options};
  who = command;
  optind = 0; /* as at a first call */
  const int status = parse_options(argc, argv, &w);
  filter_options_free(&w.filter);
  group_words_free(&w.by);
  who = "table";
  optind = 0;
  return status;
}

/* May the text have colours? https://no-color.org */
static bool is_colored(void) {
  const char *const no_color = getenv("NO_COLOR"), *const terminal = getenv("TERM");
  return !(no_color && *no_color) && isatty(STDOUT_FILENO) && terminal &&
         strcmp(terminal, "dumb") != 0;
}

/* Do the options leave scopes out? */
static bool has_filter(const table_words *w) {
  return w->options.category || w->options.level || w->options.leave_out || w->form.more.filter;
}

/* Without a filter, captures without scopes have an empty table. */
static int say_nothing(const input_captures *captures, const table_words *w) {
  const uint32_t group = w->form.more.group;
  input_contents contents = {0};
  if (!has_filter(w) && group & (PROF_I_GROUP_ARG | PROF_I_GROUP_LINE))
    return group_words_says_nothing("table", &w->by);
  for (size_t i = 0; i < captures->count; i++)
    input_contents_add(&contents, captures->items[i], w->form.more.filter);
  return input_says_nothing("table", &contents, has_filter(w));
}

/* Without scopes, the rows are work of devices. */
static void say_rows_of_devices(const input_captures *captures) {
  say("prof table: %s no scopes of the host; the rows are work of devices, which prof events lists",
      captures->count == 1 ? "the capture has" : "the captures have");
}

static int print_table(const input_captures *captures, table_words *w) {
  char *text = NULL;
  const int said = prof_i_traces_table((const prof_trace *const *)captures->items, captures->count,
                                       &w->options, &w->form, &text);
  progress_end();
  if (said != PROF_OK) return say_status("table", said);
  if (w->form.kind == PROF_I_TABLE_TEXT)
    fputs(text, stdout);
  else
    print_data(&(data_printer){{0}, 0}, text, strlen(text));
  free(text);
  if (w->form.group_count == 0) return say_nothing(captures, w);
  if (w->form.scope_count == 0 && !has_filter(w)) say_rows_of_devices(captures);
  return EXIT_OK;
}

static int execute_table(int argc, char **argv) {
  table_words w = {.options.size = sizeof w.options};
  input_captures captures = {0};
  int status = parse_options(argc, argv, &w);
  if (status == EXIT_OK && argc == optind) status = refuse_words("table", "takes captures", NULL);
  w.options.text_width = command_width_columns(&w.width);
  w.form.is_colored = is_colored();
  w.form.has_whole_names = !w.options.text_width;
  progress_begin("table", PASSES);
  if (status == EXIT_OK)
    status = input_captures_open("table", (size_t)(argc - optind), argv + optind, &captures);
  if (status == EXIT_OK) status = print_table(&captures, &w);
  input_captures_close(&captures);
  filter_options_free(&w.filter);
  group_words_free(&w.by);
  return status;
}

static const command_option options_of_table[] = {
    {"by", 'b', "GROUPS",
     .help =
         "what is one row: name, category, device, thread, process, rank, shape, stack, scopes, "
         "kernel, line, or arg:KEY, an argument's value; several with commas (default "
         "name,category)",
     .choices = group_choices, .is_list = true},
    {"sort", 's', "BY",
     .help = "total, self, calls, mean, median, p99, max, name, first, memory, self-memory, "
             "device, self-device, device-mean, self-net, total-net, open, open-for, skipped "
             "(default total)",
     .choices = sort_choices},
    {"rows", 'r', "N", .help = "at most so many rows; all, or -1: all of them (default 100)"},
    {"level", 'l', "N", .help = "only scopes of this level, 1 or 2; 0: of both (default 0)"},
    {"category", 'c', "C", .help = "only scopes of this category (default: of all)"},
    {"stack-frames", 'f', "N",
     .help = "by stack or scopes: the innermost so many frames; 0: all (default 0)"},
    {"no-functions", 'F', NULL,
     .help = "traced functions, and calls of modules, have no rows, as in torch.profiler's tables"},
    {"no-traced", 0, NULL, .help = "", .id = OPTION_NO_TRACED, .is_hidden = true}, /* of prof run */
    {.more = filter_option_list_of_table},
    {"width", 0, "N",
     .help = "columns of the text, 40 or more; 0: any (default: the terminal's; a pipe or a file "
             "has all)",
     .id = OPTION_WIDTH, .group = "What it prints"},
    {"columns", 0, "COLUMNS",
     .help = "these alone, in this order. Of the row: name, category, device, rank, process, "
             "thread, arg, location, "
             "shape, stack, calls, open, open-for, skipped. Times: self-percent, self, self-net, "
             "total-percent, total, total-net, mean, median, p99, max. On devices: self-device, "
             "self-device-percent, device-total, device-mean. Memory: cpu-mem, self-cpu-mem, "
             "device-mem, "
             "self-device-mem",
     .id = OPTION_COLUMNS, .choices = column_choices, .is_list = true},
    {"json", 0, NULL, .help = "JSON: each row an object; times in ns, sizes in bytes",
     .id = OPTION_JSON},
    {"csv", 0, NULL, .help = "CSV (RFC 4180) with a heading; times in ns, sizes in bytes",
     .id = OPTION_CSV},
    {0}};

static const command_example examples[] = {
    {"prof table trace.prof", "the scopes that took most of the time"},
    {"prof table --by thread --sort self trace.prof", "what each thread did itself"},
    {"prof table --by kernel --rows 10 trace.prof", "the ten longest kernels and copies"},
    {"prof table --columns name,median,p99,calls --sort p99 trace.prof", "the slowest calls"},
    {"prof table --by arg:step --rows 5 trace.prof", "the steps that took most of the time"},
    {"prof table --csv --rows all trace.prof > totals.csv", "for a spreadsheet"},
    {"prof table --name 'load|inner' --from 1ms --to 10ms trace.prof", "some scopes of some time"},
    {"prof table trace.json", "a trace of another tool"},
    {0}};

const prof_command command_table = {
    .name = "table",
    .summary = "totals by name, category, device, thread, shape or stack",
    .words = "[OPTION...] FILE...",
    .about =
        "Totals of a capture, or of several together (of a program's processes, say), as a "
        "table.\n" COMMAND_FILE_WORDS,
    .notes =
        "Numbers are sorted in descending order, name and first (call) in ascending order. name "
        "is the group of a row: with --by thread, the thread. By "
        "kernel, kernels and copies on devices have rows of their own. On a terminal the "
        "table is as wide as that. Empty columns are left out, and long names are cut in the "
        "middle. A line below names the columns with values that had no room. A terminal has bold "
        "letters, unless NO_COLOR is set.\n\n" FILTER_NOTES
        " Shares are of all scopes in the threads and times that it names.",
    .statuses = FILTER_STATUSES,
    .options = options_of_table,
    .examples = examples,
    .execute = execute_table,
    .reads_captures = true};
