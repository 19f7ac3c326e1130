/* The two sides of a comparison: the words that name their captures, and the reading of them, by
   two threads if that is possible. See inputs.h. */
#define _GNU_SOURCE
#include "inputs.h"

#include <getopt.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "../../src/analysis/compare.h"
#include "../../src/base/port.h"
#include "commands.h"

enum { CAPTURES_MAX = 100 };

/* ---- words ---- */

int sides_add(command_sides *sides, uint32_t side, const char *word) {
  side_captures *const to = &sides->sides[side];
  const int status = input_paths_add(sides->command, to, word, true);
  if (status != EXIT_OK || to->count <= CAPTURES_MAX) return status;
  say("prof %s: a side has more than %d captures, with '%s'", sides->command, CAPTURES_MAX,
      to->paths[CAPTURES_MAX]);
  return EXIT_FAILED;
}

int sides_take(command_sides *sides, int *argc, char **argv) {
  int kept = 1;
  for (int i = 1; i < *argc;) {
    const int side = strcmp(argv[i], "--base") == 0 ? 0 : strcmp(argv[i], "--new") == 0 ? 1 : -1;
    if (side < 0) {
      argv[kept++] = argv[i++];
      continue;
    }
    const char *const option = argv[i++];
    const int first = i;
    for (; i < *argc && argv[i][0] != '-'; i++) {
      const int status = sides_add(sides, (uint32_t)side, argv[i]);
      if (status != EXIT_OK) return status;
    }
    if (i == first) return refuse_words(sides->command, "names no capture:", option);
    sides->is_named = 1;
  }
  argv[kept] = NULL;
  *argc = kept;
  return EXIT_OK;
}

int sides_finish(command_sides *sides, int argc, char **argv, bool is_pair) {
  const int count = argc - optind;
  const bool is_right = sides->is_named ? count == 0 : is_pair ? count == 2 : count > 0;
  if (!is_right)
    return refuse_words(sides->command,
                        is_pair ? "takes A and B, or --base A... --new B..."
                                : "takes captures, or --base A... --new B...",
                        NULL);
  for (int i = 0; i < count; i++) {
    const uint32_t side = is_pair && i == 0 ? 0 : 1;
    const int status = sides_add(sides, side, argv[optind + i]);
    if (status != EXIT_OK) return status;
  }
  for (uint32_t side = 0; side < 2; side++)
    for (size_t i = 0; i < sides->sides[side].count; i++)
      progress_expect(sides->sides[side].paths[i]);
  const bool has_both = sides->sides[0].count && sides->sides[1].count;
  return has_both || (!sides->is_named && !is_pair)
             ? EXIT_OK
             : refuse_words(sides->command, "needs both --base and --new", NULL);
}

int sides_check_output(const command_sides *sides, const char **output) {
  for (uint32_t side = 0; side < 2; side++)
    for (size_t i = 0; i < sides->sides[side].count; i++)
      if (output_is_input(*output, sides->sides[side].paths[i]))
        return refuse_words(sides->command, "would write over the capture itself:", *output);
  return output_follow_link(sides->command, output);
}

enum { LARGE_SIDE_BYTES = 4 << 20 }; /* about 250 000 scopes, which are read in some 15 ms */

/* ---- reading: one thread ---- */

static int read_in_turn(const command_sides *sides, const sides_reader *reader, void *to) {
  for (uint32_t side = 0; side < 2; side++)
    for (size_t i = 0; i < sides->sides[side].count; i++) {
      prof_trace *const trace = open_capture(sides->sides[side].paths[i]);
      if (!trace) return EXIT_FAILED;
      const int status = reader->add(to, side, trace);
      const int result = status == PROF_OK ? EXIT_OK : say_status(sides->command, status);
      prof_trace_destroy(trace);
      if (result != EXIT_OK) return result;
    }
  return EXIT_OK;
}

/* ---- reading: two threads ---- */

typedef struct side_work {
  const sides_reader *reader;
  uint32_t side;
  const char *path;
  void *object; /* has this side alone */
  prof_trace *trace;
  bool is_done;
} side_work;

/* Prints nothing, and blocks no signal: SIGBUS must reach its handler (main.c). */
static void *read_side(void *user) {
  side_work *const w = user;
  w->is_done = prof_trace_open(w->path, &w->trace) == PROF_OK &&
               w->reader->add(w->object, w->side, w->trace) == PROF_OK;
  return NULL;
}

/* A large capture that is read where it is. Others take room for what is unpacked or imported. */
static bool is_large_plain_file(const char *path) {
  struct stat file;
  if (stat(path, &file) != 0 || !S_ISREG(file.st_mode) || file.st_size < LARGE_SIDE_BYTES)
    return false;
  const input_begin begin = input_begin_read(path);
  return begin.header.magic == PROF_I_MAGIC && begin.packed.magic != PROF_I_PACKED_MAGIC;
}

/* Not with a filter: regexec() has a lock. */
static bool are_for_threads(const command_sides *sides, bool has_filter) {
  return sides->sides[0].count == 1 && sides->sides[1].count == 1 && !has_filter &&
         is_large_plain_file(sides->sides[0].paths[0]) &&
         is_large_plain_file(sides->sides[1].paths[0]) && prof_i_port_processor_count() > 1;
}

/* Starts a thread for the new side, and reads the base. False: something failed. */
static bool run_both(side_work *base, side_work *newer) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, read_side, newer) != 0) return false;
  read_side(base);
  pthread_join(thread, NULL);
  return base->is_done && newer->is_done &&
         base->reader->merge(base->object, newer->object) == PROF_OK;
}

/* False: something failed. Then nothing was printed, and the object is still empty. */
static bool read_both(const command_sides *sides, const sides_reader *reader, void *to) {
  void *const objects = malloc(2 * reader->bytes);
  if (!objects) return false;
  memcpy(objects, to, reader->bytes);
  memcpy((char *)objects + reader->bytes, to, reader->bytes);
  side_work base = {reader, 0, sides->sides[0].paths[0], objects, NULL, false},
            newer = {reader, 1,    sides->sides[1].paths[0], (char *)objects + reader->bytes,
                     NULL,   false};
  const bool is_done = run_both(&base, &newer);
  if (is_done) {
    input_look_at(base.path, base.trace);
    input_look_at(newer.path, newer.trace);
    memcpy(to, base.object, reader->bytes);
  } else {
    reader->fini(base.object);
  }
  reader->fini(newer.object);
  prof_trace_destroy(base.trace);
  prof_trace_destroy(newer.trace);
  free(objects);
  return is_done;
}

int sides_read(const command_sides *sides, const sides_reader *reader, bool has_filter, void *to) {
  if (are_for_threads(sides, has_filter) && read_both(sides, reader, to)) return EXIT_OK;
  return read_in_turn(sides, reader, to);
}

/* ---- comparisons ---- */

static int add_to_comparison(void *to, uint32_t side, const prof_trace *trace) {
  return prof_i_comparison_add(to, (prof_i_side)side, trace);
}

static int merge_comparisons(void *to, void *from) {
  return prof_i_comparison_merge(to, from, PROF_I_SIDE_NEW);
}

static void fini_comparison(void *comparison) { prof_i_comparison_fini(comparison); }

int sides_compare(const command_sides *sides, prof_i_comparison *comparison) {
  static const sides_reader reader = {.bytes = sizeof *comparison,
                                      .add = add_to_comparison,
                                      .merge = merge_comparisons,
                                      .fini = fini_comparison};
  return sides_read(sides, &reader, comparison->paths.filter != NULL, comparison);
}

void sides_free(command_sides *sides) {
  for (uint32_t side = 0; side < 2; side++) input_paths_free(&sides->sides[side]);
}
