/* prof memory FILE: where memory went, as a report with a plot, as a picture, or as RAF's text.
   Sums: src/analysis/memory_state.c. Output: src/report/memory_text.c and memory_svg.c. */
#define _GNU_SOURCE
#include <getopt.h>
#include <limits.h>
#include <prof/memory.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/analysis/internal.h"
#include "../../src/report/memory_text.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum { WIDTH_MIN = 40, WIDTH_MAX = 500, WIDTH_USUAL = 80 };

typedef struct memory_words {
  prof_memory_text_options text;
  const char *capture, *svg;
  bool is_raf;
  filter_options filter;
} memory_words;

/* ---- the terminal ---- */

static bool parse_number(const char *text, unsigned long least, unsigned long most, uint32_t *to) {
  char *end;
  const unsigned long value = strtoul(text, &end, 10);
  if (*end || text[0] < '0' || text[0] > '9' || value < least || value > most) return false;
  *to = (uint32_t)value;
  return true;
}

/* What the terminal is wide, or its user says. */
static uint32_t find_width(void) {
  struct winsize size;
  uint32_t width = WIDTH_USUAL;
  const char *const columns = getenv("COLUMNS");
  if (!(columns && parse_number(columns, 1, UINT_MAX, &width)) &&
      ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
    width = size.ws_col;
  return width < WIDTH_MIN ? WIDTH_MIN : width > WIDTH_MAX ? WIDTH_MAX : width;
}

/* ---- the words ---- */

/* Refuses --min and other options that apply to scopes only. */
static int refuse_scope_option(void) {
  const char *const name = command_option_found()->name;
  char text[128];
  snprintf(text, sizeof text, "--%s applies to scopes only: an allocation has %s", name,
           strcmp(name, "min") == 0 ? "no duration" : "no such value");
  return refuse_words("memory", text, NULL);
}

static int read_words(int argc, char **argv, memory_words *w) {
  for (int c; (c = command_option_next(&command_memory, argc, argv)) != -1;) {
    switch (c) {
      case 'p':
        if (!parse_number(optarg, 1, 1000000000, &w->text.pool))
          return refuse_words("memory", "--pool takes a pool's number in the report, not", optarg);
        break;
      case 'r':
        if (command_read_rows("memory", optarg, &w->text.rows_limit) != EXIT_OK) return EXIT_USAGE;
        break;
      case 'w':
        if (!parse_number(optarg, WIDTH_MIN, WIDTH_MAX, &w->text.width))
          return refuse_words("memory", "--width takes 40 to 500 columns, not", optarg);
        break;
      case 's':
        w->svg = optarg;
        break;
      case 'f':
        w->is_raf = true;
        break;
      case 'n':
        return refuse_scope_option();
      default:
        if (!filter_options_take(&w->filter, c)) return EXIT_USAGE;
    }
  }
  const int status = filter_options_finish("memory", &w->filter);
  if (status != EXIT_OK) return status;
  if (w->filter.filter && (w->svg || w->is_raf))
    return refuse_words("memory",
                        "--svg and --raf show whole pools, which --pool selects: they accept no "
                        "filter",
                        NULL);
  if (argc - optind != 1) return refuse_words("memory", "takes one capture", NULL);
  w->capture = argv[optind];
  if (w->svg && w->is_raf) return refuse_words("memory", "--svg or --raf, not both", NULL);
  if (w->svg && strcmp(w->svg, "-") == 0)
    return refuse_words("memory", "for the standard output give --svg /dev/stdout, not", w->svg);
  if (!w->svg) return EXIT_OK;
  if (output_is_input(w->svg, w->capture))
    return refuse_words("memory", "would write over the capture itself:", w->svg);
  return output_follow_link("memory", &w->svg);
}

/* ---- what is made ---- */

static int print_report(const prof_memory *memory, const memory_words *w) {
  char *text = NULL;
  uint64_t live_count;
  const int status = prof_i_memory_text(memory, &w->text, &text, &live_count);
  if (status != PROF_OK) return say_status("memory", status);
  fputs(text, stdout);
  prof_free(text);
  return !w->filter.filter || live_count > 0 ? EXIT_OK : EXIT_NO;
}

/* Does a draw before b? Of the last session, then what is exact, then what goes higher. */
static bool pool_is_better(const prof_memory_info *a, const prof_memory_info *b) {
  if (a->session != b->session) return a->session > b->session;
  if (a->source != b->source) return a->source == PROF_MEMORY_POOL;
  return a->peak_allocated.allocated_bytes > b->peak_allocated.allocated_bytes ||
         (a->peak_allocated.allocated_bytes == b->peak_allocated.allocated_bytes &&
          a->peak_used.used_bytes > b->peak_used.used_bytes);
}

static uint32_t choose_pool(const prof_memory *memory) {
  uint32_t best = 0;
  prof_memory_info highest = {.size = sizeof highest};
  prof_memory_pool_get(memory, 0, &highest);
  for (uint32_t i = 1; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    prof_memory_pool_get(memory, i, &info);
    if (!pool_is_better(&info, &highest)) continue;
    highest = info;
    best = i;
  }
  return best;
}

static int draw_memory(const prof_memory *memory, const memory_words *w) {
  const uint32_t count = prof_memory_pool_count(memory), index = w->text.pool ? w->text.pool - 1
                                                                 : count      ? choose_pool(memory)
                                                                              : 0;
  if (count == 0) {
    say("prof memory: there is nothing to draw: '%s' has no memory; prof memory without --svg says "
        "what to do",
        w->capture);
    return EXIT_FAILED;
  }
  if (index >= count) {
    say("prof memory: there is no pool %u to draw: the capture has %u", index + 1, count);
    return EXIT_FAILED;
  }
  const int status = prof_memory_svg_dump(memory, index, w->svg);
  if (status != PROF_OK) return say_status("memory", status);
  if (count > 1 && !w->text.pool)
    say("prof memory: of %u pools number %u is drawn; --pool chooses", count, index + 1);
  return EXIT_OK;
}

static bool pool_is_first_of_device(const prof_memory *memory, uint32_t index, prof_device device) {
  for (uint32_t i = 0; i < index; i++) {
    prof_memory_info info = {.size = sizeof info};
    prof_memory_pool_get(memory, i, &info);
    if (info.source == PROF_MEMORY_QUERY && info.device.type == device.type &&
        info.device.index == device.index)
      return false;
  }
  return true;
}

static uint32_t count_of_devices(const prof_memory *memory) {
  uint32_t count = 0;
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    prof_memory_pool_get(memory, i, &info);
    count += info.source == PROF_MEMORY_QUERY && pool_is_first_of_device(memory, i, info.device);
  }
  return count;
}

/* Each device that was asked; with --pool that pool's. Of several, each says which it is. */
static int print_raf(const prof_trace *trace, const prof_memory *memory, const memory_words *w) {
  const bool has_titles = !w->text.pool && count_of_devices(memory) > 1;
  uint32_t shown = 0;
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info info = {.size = sizeof info};
    char *text = NULL;
    prof_memory_pool_get(memory, i, &info);
    if (w->text.pool
            ? i + 1 != w->text.pool
            : info.source != PROF_MEMORY_QUERY || !pool_is_first_of_device(memory, i, info.device))
      continue;
    const int status = prof_memory_trace_text(trace, info.device, &text);
    if (status != PROF_OK) return say_status("memory", status);
    if (has_titles)
      printf("%s# device %d:%d\n", shown ? "\n" : "", info.device.type, info.device.index);
    shown++;
    fputs(text, stdout);
    prof_free(text);
  }
  if (shown) return EXIT_OK;
  if (w->text.pool)
    say("prof memory: there is no pool %u: the capture has %u", w->text.pool,
        prof_memory_pool_count(memory));
  else
    say("prof memory: '%s' has no samples: set prof_memory_set_query(), and let PROFILE_MEMORY() "
        "run while memory is recorded",
        w->capture);
  return EXIT_FAILED;
}

/* "Capture 2, rank 1: process train.py (77)" */
static void print_part_title(const prof_trace *trace, uint32_t number) {
  prof_trace_info info = {.size = sizeof info};
  char title[256], rank[32] = "";
  prof_trace_info_get(trace, &info);
  if (prof_i_world_has_ranks(info.world_size)) snprintf(rank, sizeof rank, "rank %d: ", info.rank);
  snprintf(title, sizeof title, "Capture %u, %sprocess %s (%u)", number, rank, info.process_name,
           info.pid);
  if (number > 1) putchar('\n');
  print_text(stdout, title, strlen(title));
  putchar('\n');
}

/* part: the number of the capture in a merged one, or 0. */
static int show_memory(const memory_words *w, const char *capture, uint32_t part) {
  prof_trace *const trace = open_capture_for(capture, w->svg);
  prof_memory *memory = NULL;
  if (!trace) return EXIT_FAILED;
  if (part) print_part_title(trace, part);
  int status = prof_memory_read(trace, &memory);
  if (status == PROF_OK && w->filter.filter)
    status = prof_i_memory_set_filter(memory, w->filter.filter);
  const int result = status != PROF_OK ? say_status("memory", status)
                     : w->svg          ? draw_memory(memory, w)
                     : w->is_raf       ? print_raf(trace, memory, w)
                                       : print_report(memory, w);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  return result;
}

/* ---- merged captures ---- */

typedef struct parts_shown {
  const memory_words *words;
  uint32_t count;
  bool has_passed; /* an allocation of a capture has passed the filter */
} parts_shown;

static int show_part(void *user, const char *path) {
  parts_shown *const parts = user;
  const int status = show_memory(parts->words, path, ++parts->count);
  if (status == EXIT_OK) parts->has_passed = true;
  return status == EXIT_NO ? EXIT_OK : status;
}

/* Pools have numbers of their own in each capture, and a picture is of one. */
static int check_parts(const memory_words *w, uint32_t count) {
  const char *const option = w->svg         ? "--svg"
                             : w->is_raf    ? "--raf"
                             : w->text.pool ? "--pool"
                                            : NULL;
  if (!option) return EXIT_OK;
  say("prof memory: %s takes one capture, and '%s' has %u: give one, as '%s#1'", option, w->capture,
      count, w->capture);
  return EXIT_USAGE;
}

static int say_no_allocation(void) {
  say("prof memory: no allocation passed the filter");
  return EXIT_NO;
}

static int show_all(const memory_words *w) {
  uint32_t count = 1;
  parts_shown parts = {.words = w};
  int status;
  if (prof_trace_part_count(w->capture, &count) != PROF_OK || count < 2) {
    status = show_memory(w, w->capture, 0);
    return status == EXIT_NO ? say_no_allocation() : status;
  }
  status = check_parts(w, count);
  if (status == EXIT_OK) status = input_each_capture("memory", w->capture, show_part, &parts);
  return status == EXIT_OK && !parts.has_passed ? say_no_allocation() : status;
}

static int execute_memory(int argc, char **argv) {
  memory_words w = {.text = {.size = sizeof w.text}};
  int status = read_words(argc, argv, &w);
  if (!w.text.width) w.text.width = find_width();
  w.text.ascii = !locale_is_utf8();
  if (status == EXIT_OK) status = show_all(&w);
  filter_options_free(&w.filter);
  return status;
}

static const command_option options_of_memory[] = {
    {"pool", 'p', "N", .help = "this pool alone, by its number in the report"},
    {"rows", 'r', "N", .help = "of each table at most so many rows; all: all of them (default 10)"},
    {"width", 'w', "N", .help = "columns, 40 to 500 (default: the terminal's)"},
    {"svg", 's', "OUT.svg", .help = "writes the plot alone, as a picture"},
    {"raf", 'f', NULL, .help = "the samples of PROFILE_MEMORY() as RAF prints them"},
    {.name = "category", .argument = "C", .help = "", .id = 'n', .is_hidden = true},
    {.name = "level", .argument = "N", .help = "", .id = 'n', .is_hidden = true},
    {.name = "min", .argument = "TIME", .help = "", .id = 'n', .is_hidden = true},
    {.name = "arg", .argument = "KEY=VALUE", .help = "", .id = 'n', .is_hidden = true},
    {.more = filter_option_list_of_memory},
    {0}};

static const command_example examples[] = {
    {"prof memory trace.prof", "a plot over time, both peaks, and who held what"}, {0}};

const prof_command command_memory = {
    .name = "memory",
    .summary = "where memory went: a plot, both peaks, who held what",
    .words = "[OPTION...] FILE",
    .about =
        "Prints where memory went: a plot over time, both peaks, who held what, and what was "
        "wrong. Of a merged capture, each capture has its report.",
    .notes =
        "The plot is ASCII where LC_ALL, LC_CTYPE and LANG say no UTF-8.\n\nA filter selects "
        "the allocations in the tables of live memory, by their thread and time, the name of the "
        "innermost scope, and the pool's device. Plots, peaks and counts still include all "
        "allocations.",
    .statuses =
        "Exit status: 0 done, 1 it could not be done, 2 wrong words, 3 no allocation "
        "passed the filter.",
    .options = options_of_memory,
    .examples = examples,
    .execute = execute_memory,
    .reads_captures = true};
