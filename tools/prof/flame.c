/* prof flame FILE...: a flame graph as an SVG, or folded stacks; of one side, or the difference of
   two. src/report/flame.c draws. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/report/internal.h"
#include "../../src/sink/sink.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

typedef struct flame_words {
  prof_i_flame_options flame;
  const char *output; /* NULL: the standard output */
  bool is_folded;
  filter_options filter;
} flame_words;

static const command_choice kinds[] = {{"host", PROF_I_FLAME_HOST},
                                       {"device", PROF_I_FLAME_DEVICE},
                                       {"memory", PROF_I_FLAME_MEMORY},
                                       {0}};

static int read_words(int argc, char **argv, flame_words *w) {
  int status = EXIT_OK;
  for (int c; status == EXIT_OK && (c = command_option_next(&command_flame, argc, argv)) != -1;) {
    uint32_t kind = 0;
    switch (c) {
      case 'k':
        status = command_read_choice("flame", "--of", optarg, kinds, &kind);
        w->flame.kind = (prof_i_flame_kind)kind;
        break;
      case 'o':
        w->output = optarg;
        break;
      case 'f':
        w->is_folded = true;
        break;
      case 't':
        w->flame.title = optarg;
        break;
      default:
        if (!filter_options_take(&w->filter, c)) return EXIT_USAGE;
    }
  }
  if (status == EXIT_OK) status = filter_options_finish("flame", &w->filter);
  const char *const dot = w->output ? strrchr(w->output, '.') : NULL;
  w->is_folded |= dot && strcmp(dot, ".folded") == 0;
  struct stat file;
  const bool is_special = w->output && stat(w->output, &file) == 0 && !S_ISREG(file.st_mode);
  if (status == EXIT_OK && w->output && !w->is_folded && !is_special &&
      !(dot && strcmp(dot, ".svg") == 0))
    return refuse_words("flame", "-o: the ending is not .svg or .folded:", w->output);
  return status;
}

/* The paths of both sides. */
typedef struct flame_sides {
  prof_i_paths paths;
  uint32_t left_out[PROF_I_SIDES]; /* captures whose processes the filter leaves out: no runs */
} flame_sides;

static int add_paths(void *to, uint32_t side, const prof_trace *trace) {
  flame_sides *const both = to;
  both->left_out[side] += !prof_i_filter_takes_trace(both->paths.filter, trace);
  return prof_i_paths_add(&both->paths, trace, (prof_i_side)side, NULL, NULL);
}

static int merge_paths(void *to, void *from) {
  prof_i_paths *const paths = &((flame_sides *)to)->paths, *const newer =
                                                               &((flame_sides *)from)->paths;
  uint32_t *const rows = calloc(newer->row_count + 1, sizeof *rows), *const numbers =
                                                                         calloc(newer->count + 1,
                                                                                sizeof *numbers);
  const bool is_merged =
      rows && numbers && prof_i_paths_merge(paths, newer, PROF_I_SIDE_NEW, rows, numbers);
  free(rows);
  free(numbers);
  return is_merged ? PROF_OK : PROF_E_NO_MEMORY;
}

static void fini_paths(void *both) { prof_i_paths_fini(&((flame_sides *)both)->paths); }

static const sides_reader reader = {
    .bytes = sizeof(flame_sides), .add = add_paths, .merge = merge_paths, .fini = fini_paths};

static int write_text(const flame_words *w, const char *text) {
  if (!w->output) return fputs(text, stdout) < 0 ? EXIT_FAILED : EXIT_OK;
  prof_i_sink sink;
  int status = prof_i_sink_open_file(&sink, w->output, false, false);
  if (status == PROF_OK) {
    prof_i_sink_text(&sink, text);
    status = prof_i_sink_commit(&sink);
  }
  return status == PROF_OK ? EXIT_OK : say_status("flame", status);
}

static int say_nothing(const prof_i_paths *paths, const flame_words *w) {
  static const char *const whats[] = {"host scopes", "work of a device", "allocations"};
  char others[64] = "";
  for (const command_choice *kind = kinds; kind->word; kind++) {
    prof_i_flame_options other = w->flame;
    const size_t used = strlen(others);
    other.kind = (prof_i_flame_kind)kind->value;
    if (prof_i_flame_total(paths, &other) > 0)
      snprintf(others + used, sizeof others - used, "%s--of %s", used ? " or " : "; try ",
               kind->word);
  }
  say("prof flame: nothing to draw: no %s with time or bytes%s", whats[w->flame.kind], others);
  return EXIT_NO;
}

static int make_flame(const prof_i_paths *paths, const flame_words *w) {
  if (prof_i_flame_total(paths, &w->flame) <= 0) return say_nothing(paths, w);
  char *text = NULL;
  int status = w->is_folded ? prof_i_flame_folded(paths, &w->flame, &text)
                            : prof_i_flame_svg(paths, &w->flame, &text);
  if (status != PROF_OK) return say_status("flame", status);
  status = write_text(w, text);
  free(text);
  return status;
}

/* A difference has the time of one run. */
static void count_runs(flame_words *w, const command_sides *sides, const flame_sides *both) {
  for (uint32_t side = 0; side < PROF_I_SIDES; side++) {
    const uint32_t count = (uint32_t)sides->sides[side].count - both->left_out[side];
    w->flame.runs_count[side] = count ? count : 1;
  }
}

/* "a.prof", or "a.prof and 4 more". Returns the bytes, as snprintf(). */
static int put_side(char *to, size_t room, const side_captures *side) {
  if (side->count == 1) return snprintf(to, room, "%s", side->paths[0]);
  return snprintf(to, room, "%s and %zu more", side->paths[0], (size_t)side->count - 1);
}

/* Names the captures, of a difference both sides. */
static void make_title(char *to, size_t room, const command_sides *sides) {
  static const char between[] = ", against ";
  const size_t used = (size_t)put_side(to, room, &sides->sides[PROF_I_SIDE_NEW]);
  if (!sides->is_named || used + sizeof between >= room) return;
  memcpy(to + used, between, sizeof between);
  put_side(to + used + strlen(between), room - used - strlen(between),
           &sides->sides[PROF_I_SIDE_BASE]);
}

static int execute_flame(int argc, char **argv) {
  char title[2 * PATH_MAX];
  flame_words w = {0};
  flame_sides both = {.paths.depth_max = PROF_I_PATHS_DEPTH_MAX};
  command_sides sides = {.command = "flame"};
  input_tell_parts();
  int status = sides_take(&sides, &argc, argv);
  if (status == EXIT_OK) status = read_words(argc, argv, &w);
  if (status == EXIT_OK) status = sides_finish(&sides, argc, argv, false);
  if (status == EXIT_OK && w.output) status = sides_check_output(&sides, &w.output);
  if (status == EXIT_OK) {
    w.flame.is_difference = sides.is_named;
    make_title(title, sizeof title, &sides);
    if (!w.flame.title) w.flame.title = title;
    both.paths.filter = w.filter.filter;
    status = sides_read(&sides, &reader, w.filter.filter != NULL, &both);
    count_runs(&w, &sides, &both);
  }
  if (status == EXIT_OK) status = make_flame(&both.paths, &w);
  prof_i_paths_fini(&both.paths);
  filter_options_free(&w.filter);
  sides_free(&sides);
  return status;
}

static const command_option options[] = {
    {.name = "output", .letter = 'o', .argument = "FILE", .help = "FILE.svg or FILE.folded"},
    {.name = "of",
     .argument = "KIND",
     .help = "host: self time (usual); device: its work by launch; memory: allocated bytes",
     .id = 'k'},
    {.name = "folded", .help = "folded stacks instead of an SVG", .id = 'f'},
    {.name = "title",
     .argument = "TEXT",
     .help = "of the picture (default: the captures)",
     .id = 't'},
    {.name = "base", .argument = "A...", .help = "with --new: a difference", .id = 'B'},
    {.name = "new", .argument = "B...", .help = "the side that widths are of", .id = 'N'},
    {.more = filter_option_list},
    {0}};

static const command_example examples[] = {
    {"prof flame -o flame.svg trace.prof", "a picture for a browser"},
    {"prof flame --folded trace.prof", "for flamegraph.pl or speedscope"},
    {0}};

const prof_command command_flame = {
    .name = "flame",
    .summary = "draws a flame graph, or the difference of two",
    .words = "[OPTION...] FILE... | --base A... --new B...",
    .about = "Several captures are added up. A difference has their mean.",
    .options = options,
    .examples = examples,
    .execute = execute_flame,
    .reads_captures = true};
