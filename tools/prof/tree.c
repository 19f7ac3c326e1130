/* prof tree FILE...: the call tree of captures. src/analysis/trace_paths.c adds up,
   src/report/tree.c writes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/report/internal.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum { WIDTH_MIN = 60, WIDTH_MAX = 100000, DEPTH_MAX = 1000000 };
static const double share_usual = 0.001;

static const command_choice orders[] = {{"total", PROF_I_TREE_BY_TOTAL},
                                        {"self", PROF_I_TREE_BY_SELF},
                                        {"calls", PROF_I_TREE_BY_CALLS},
                                        {"name", PROF_I_TREE_BY_NAME},
                                        {0}};

typedef struct tree_words {
  prof_i_tree_options tree;
  filter_options filter;
  bool has_share;
} tree_words;

/* "1%": of paths. Else it is the filter's, of single scopes. */
static int read_least_share(tree_words *w, int option) {
  char *end;
  if (!strchr(optarg, '%')) {
    filter_options_take(&w->filter, option);
    return EXIT_OK;
  }
  const double share = strtod(optarg, &end) / 100;
  if (end == optarg || strcmp(end, "%") != 0 || !(share >= 0 && share <= 1))
    return refuse_words("tree", "--min takes a percentage such as 1%, or a time, not", optarg);
  if (w->has_share) return refuse_words("tree", "accepts --min only once as a percentage", NULL);
  w->tree.min_share = share;
  w->has_share = true;
  return EXIT_OK;
}

static int read_words(int argc, char **argv, tree_words *w) {
  int status = EXIT_OK;
  uint64_t depth = 0;
  uint32_t order = PROF_I_TREE_BY_TOTAL;
  command_width width = {0};
  for (int c; status == EXIT_OK && (c = command_option_next(&command_tree, argc, argv)) != -1;) {
    switch (c) {
      case 's':
        status = command_read_choice("tree", "--sort", optarg, orders, &order);
        break;
      case 'd':
        status = command_read_number("tree", "--depth", optarg, 1, DEPTH_MAX, &depth);
        break;
      case 'j':
        w->tree.is_json = true;
        break;
      case 'a':
        w->tree.is_ascii = true;
        break;
      case 'w':
        status = command_read_width("tree", optarg, WIDTH_MIN, WIDTH_MAX, &width);
        break;
      default:
        if (c == FILTER_MIN)
          status = read_least_share(w, c);
        else if (!filter_options_take(&w->filter, c))
          return EXIT_USAGE;
    }
  }
  if (status == EXIT_OK) status = filter_options_finish("tree", &w->filter);
  if (!w->has_share && !w->filter.filter) w->tree.min_share = share_usual;
  w->tree.depth = (uint32_t)depth;
  w->tree.order = (prof_i_tree_order)order;
  w->tree.width = command_width_columns(&width);
  return status;
}

/* A capture of which no path is shown may have short or open scopes. */
static int say_nothing(const input_captures *captures, const tree_words *w) {
  input_contents contents = {0};
  for (size_t i = 0; i < captures->count; i++)
    input_contents_add(&contents, captures->items[i], w->filter.filter);
  return input_says_nothing("tree", &contents, w->filter.filter != NULL);
}

static int print_tree(const input_captures *captures, const tree_words *w) {
  prof_i_paths paths = {.filter = w->filter.filter, .depth_max = PROF_I_PATHS_DEPTH_MAX};
  char *text = NULL;
  uint32_t path_count = 0;
  int status = PROF_OK;
  for (size_t i = 0; i < captures->count && status == PROF_OK; i++)
    status = prof_i_paths_add(&paths, captures->items[i], PROF_I_SIDE_NEW, NULL, NULL);
  if (status == PROF_OK) status = prof_i_tree(&paths, &w->tree, &text, &path_count);
  if (status == PROF_OK) fputs(text, stdout);
  free(text);
  prof_i_paths_fini(&paths);
  if (status != PROF_OK) return say_status("tree", status);
  return path_count == 0 ? say_nothing(captures, w) : EXIT_OK;
}

static int execute_tree(int argc, char **argv) {
  tree_words w = {.tree.is_ascii = !locale_is_utf8()};
  input_captures captures = {0};
  input_tell_parts();
  int status = read_words(argc, argv, &w);
  if (status == EXIT_OK && argc == optind) status = refuse_words("tree", "takes captures", NULL);
  if (status == EXIT_OK)
    status = input_captures_open("tree", (size_t)(argc - optind), argv + optind, &captures);
  if (status == EXIT_OK) status = print_tree(&captures, &w);
  input_captures_close(&captures);
  filter_options_free(&w.filter);
  return status;
}

static const command_option options[] = {
    {.name = "sort",
     .letter = 's',
     .argument = "BY",
     .help = "total, self, calls or name, of the paths below one path (default total)",
     .choices = orders},
    {.name = "depth", .letter = 'd', .argument = "N", .help = "at most so many levels"},
    {.name = "json", .help = "JSON: an object a line for each path; times in ns", .id = 'j'},
    {.name = "ascii", .help = "lines of the tree in ASCII", .id = 'a'},
    {.name = "width",
     .argument = "N",
     .help = "columns of the text, 60 or more; 0: any (default: the terminal's; a pipe has any)",
     .id = 'w'},
    {.more = filter_option_list},
    {0}};

static const command_example examples[] = {
    {"prof tree trace.prof", "which scopes are inside of which, and their time"},
    {"prof tree --depth 2 --min 1% trace.prof", "the large parts alone"},
    {"prof tree --sort self trace.prof", "the scopes with the most self time first"},
    {"prof tree --name '^inner$' trace.prof", "where a scope is called from"},
    {0}};

const prof_command command_tree = {
    .name = "tree",
    .summary = "prints the call tree: calls, total and self time of each path",
    .words = "[OPTION...] FILE...",
    .about =
        "The call tree of a capture, or of several together: the longest path first, or in the "
        "order of --sort. Work of a "
        "device is below the scope that launched it.\n" COMMAND_FILE_WORDS,
    .notes =
        "Numbers are sorted in descending order, names in ascending order.\n\n"
        "Shares are of the time in all scopes of the threads and times that a filter names; of "
        "work on devices, of their time. --min 1% leaves out paths with a smaller share (default "
        "0.1%; with a filter 0), --min 10us single scopes that are shorter. Lines are ASCII where "
        "LC_ALL, LC_CTYPE "
        "and LANG say no UTF-8.\n\n" FILTER_NOTES
        " A path whose scopes do not pass has no numbers, and is shown only above others.",
    .statuses = FILTER_STATUSES,
    .options = options,
    .examples = examples,
    .execute = execute_tree,
    .reads_captures = true};
