/* prof import, from the file to the capture; see import.h. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../src/format/layout.h"
#include "database.h"
#include "internal.h"

enum { READ_BYTES = 256 << 10, QUIET_S = 2 };

/* ---- what is said of it ---- */

static bool note_input_end(const import_result *r, char to[IMPORT_NOTE_BYTES]) {
  const unsigned long long at = r->at;
  if (r->end != IMPORT_CUT_SHORT && r->end != IMPORT_DAMAGED) return false;
  const char *const what =
      r->end == IMPORT_CUT_SHORT ? "ends in the middle, behind" : "is damaged near";
  snprintf(to, IMPORT_NOTE_BYTES, "not taken: what follows, for the trace %s byte %llu%s", what, at,
           r->was_packed ? ", unpacked" : "");
  return true;
}

/* What the capture had lost from which prof exported this trace. */
static bool note_original(const import_counts *c, char to[IMPORT_NOTE_BYTES]) {
  snprintf(to, IMPORT_NOTE_BYTES, "the capture from which prof exported this: %s", c->original);
  return c->original[0] != 0;
}

/* Whether the trace lacks scopes of its capture on purpose. */
static bool note_part(const import_counts *c, char to[IMPORT_NOTE_BYTES]) {
  char filtered[64] = "";
  if (c->filtered)
    snprintf(filtered, sizeof filtered, "a filter left out %llu scopes",
             (unsigned long long)c->filtered);
  snprintf(to, IMPORT_NOTE_BYTES,
           PROF_I_NOTE_PART "%s%s%s. Self times include the scopes inside that it lacks", filtered,
           c->filtered && c->is_span ? ", and " : "", c->is_span ? "it has a time span only" : "");
  return c->filtered || c->is_span;
}

bool import_note(const import_result *result, int index, char to[IMPORT_NOTE_BYTES]) {
  static const char *const misses[] = {
#define IMPORT_TEXT_OF(name, text) text,
      IMPORT_MISS_LIST(IMPORT_TEXT_OF)};
  static const char *const changes[] = {IMPORT_CHANGE_LIST(IMPORT_TEXT_OF)
#undef IMPORT_TEXT_OF
  };
  const import_counts *const c = &result->counts;
  const int change = index - IMPORT_MISS_COUNT;
  if (change > IMPORT_CHANGE_COUNT + 1) return note_input_end(result, to);
  if (change == IMPORT_CHANGE_COUNT + 1) return note_part(c, to);
  if (change >= IMPORT_CHANGE_COUNT) return note_original(c, to);
  const bool is_miss = change < 0;
  const unsigned long long count = is_miss ? c->missed[index] : c->changed[change];
  const char *const first = index == IMPORT_MISS_TIME        ? c->outlier
                            : index == IMPORT_MISS_METADATA  ? c->metadata
                            : index == IMPORT_MISS_TABLE     ? c->table
                            : change == IMPORT_CHANGE_MEMBER ? c->member
                                                             : "";
  if (count == 0) return false;
  const int used =
      snprintf(to, IMPORT_NOTE_BYTES, "%s %llu %s", is_miss ? "not taken:" : "taken:", count,
               is_miss ? misses[index] : changes[change]);
  if (*first && used > 0 && used < IMPORT_NOTE_BYTES)
    snprintf(to + used, (size_t)(IMPORT_NOTE_BYTES - used), " (the first: %s)", first);
  return true;
}

void *import_make(size_t bytes) {
  void *const made = calloc(1, bytes);
  if (!made) import_fail("no memory for %zu bytes", bytes);
  return made;
}

void *import_make_room(void *array, size_t *room, size_t count, size_t element_bytes) {
  if (count <= *room) return array;
  size_t more = *room ? *room : 8;
  while (more < count) more *= 2;
  void *const larger = realloc(array, more * element_bytes);
  if (!larger) import_fail("no memory for %zu bytes", more * element_bytes);
  *room = more;
  return larger;
}

/* ---- progress ---- */

typedef struct progress {
  time_t began, said;
  bool is_shown;
} progress;

static bool has_other_line;

void import_has_other_line(bool has) { has_other_line = has; }

/* On a terminal, once it takes longer than two seconds; once a second. */
static void show_progress(progress *p, const import_input *input) {
  const time_t now = time(NULL);
  if (has_other_line) return;
  if (now - p->began < QUIET_S || now == p->said || !isatty(STDERR_FILENO)) return;
  p->said = now;
  p->is_shown = true;
  fprintf(stderr, "\rprof import: %u %%", import_input_share(input) / 10);
  fflush(stderr);
}

static void hide_progress(const progress *p) {
  if (p->is_shown) fputs("\r\x1b[K", stderr);
}

/* ---- the way ---- */

static void on_event(void *user, const import_event *event) { import_kineto_event(user, event); }
static void on_frame(void *user, const import_event *frame) {
  import_frames_add(&((import_state *)user)->frames, frame);
}
static void on_other(void *user) {
  ((import_state *)user)->counts->missed[IMPORT_MISS_NOT_OBJECT]++;
}
static void on_metadata(void *user, import_text key, const import_value *value, import_text text) {
  import_kineto_metadata(user, key, value, text);
}

/* Of text that is not UTF-8, by its mark or by the zeros beside its first character; NULL: it may
   be. */
static const char *wide_encoding(const char *bytes, size_t count) {
  static const struct {
    const char *name, *mark;
    size_t mark_bytes, width;
  } all[] = {{"UTF-32", "\xff\xfe\0\0", 4, 4},
             {"UTF-32", "\0\0\xfe\xff", 4, 4},
             {"UTF-16", "\xff\xfe", 2, 2},
             {"UTF-16", "\xfe\xff", 2, 2}};
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    const size_t width = all[i].width;
    if (count < 4) return NULL;
    if (memcmp(bytes, all[i].mark, all[i].mark_bytes) == 0) return all[i].name;
    const bool is_big = bytes[0] == '\0'; /* the character's byte is the last one */
    size_t zeros = 0;
    for (size_t b = 0; b < width; b++) zeros += bytes[b] == '\0';
    if (zeros == width - 1 && (is_big ? bytes[width - 1] : bytes[0]) != '\0') return all[i].name;
  }
  return NULL;
}

import_json *import_state_json(import_state *state) {
  const import_json_handlers handlers = {state, on_event, on_frame, on_other, on_metadata};
  return import_json_create(&handlers);
}

void import_state_note_cleaned(import_state *state, const import_json_cleaner *cleaner) {
  state->counts->changed[IMPORT_CHANGE_NOT_NUMBER] += cleaner->not_number_count;
  state->counts->changed[IMPORT_CHANGE_CONTROL] += cleaner->control_count;
  state->counts->changed[IMPORT_CHANGE_SURROGATE] += cleaner->surrogate_count;
  state->counts->changed[IMPORT_CHANGE_CUT] += cleaner->cut_count;
}

static void read_input(import_state *state, import_input *input, import_result *result) {
  static const char mark[] = "\xef\xbb\xbf"; /* of UTF-8; no JSON, and there are who write it */
  import_json *const json = import_state_json(state);
  char *const bytes = import_make(READ_BYTES), *const clean =
                                                   import_make(import_json_clean_room(READ_BYTES));
  import_json_cleaner cleaner = {0};
  progress shown = {.began = time(NULL)};
  bool goes_on = true, is_database = false;
  const char *what = NULL; /* the file is, if it cannot be JSON */
  for (size_t count, read = 0; goes_on && (count = import_input_read(input, bytes, READ_BYTES)) > 0;
       read += count) {
    const char *const encoding = read == 0 ? wide_encoding(bytes, count) : NULL;
    is_database = read == 0 && import_input_begins_database(bytes, count);
    if (is_database) break;
    what = read == 0 && !encoding ? import_sniff(bytes, count) : NULL;
    if (what) break;
    if (encoding) {
      import_json_refuse(json, encoding);
      goes_on = false;
      break;
    }
    const size_t skipped = read == 0 && count >= 3 && memcmp(bytes, mark, 3) == 0 ? 3 : 0;
    goes_on = import_json_read(
        json, clean, import_json_clean(&cleaner, bytes + skipped, count - skipped, clean));
    show_progress(&shown, input);
  }
  if (goes_on && !what) import_json_read(json, clean, import_json_clean_end(&cleaner, clean));
  import_json_end(json, result);
  if (is_database) {
    result->end = IMPORT_REFUSED;
    snprintf(result->error, sizeof result->error,
             "is a compressed SQLite database; gunzip it first");
  }
  if (what) {
    result->end = IMPORT_REFUSED;
    snprintf(result->error, sizeof result->error, "is no JSON and no database, but %s; %s", what,
             import_kinds);
  }
  hide_progress(&shown);
  import_json_destroy(json);
  free(bytes);
  free(clean);
  import_state_note_cleaned(state, &cleaner);
}

static bool counts_are_empty(const import_counts *counts) {
  return counts->scopes + counts->device_scopes + counts->instants + counts->counters +
             counts->flow_ends + counts->memory_events + counts->step_marks ==
         0;
}

void import_run(const char *from, const char *to, bool must_be_new, import_result *result_out) {
  import_output output;
  import_result *const result = result_out;
  *result = (import_result){.end = IMPORT_CUT_SHORT};
  import_input *const input = import_input_open(from);
  if (import_input_is_capture(input)) {
    result->end = IMPORT_CAPTURE;
    import_input_close(input);
    return;
  }
  import_state *const state = import_make(sizeof *state);
  state->counts = &result->counts;
  state->result = result;
  state->rank = -1;
  state->world_size = 1;
  state->names = import_names_create();
  import_output_open(&output, to, must_be_new);
  import_spool_open(&state->spool, output.folder);
  import_spool_open(&state->deferred.spool, output.folder);
  if (import_input_is_database(input))
    import_database_read(state, from, output.folder, result);
  else
    read_input(state, input, result);
  result->was_packed = import_input_is_packed(input);
  result->counts.missed[IMPORT_MISS_BEHIND] += import_input_trailing_bytes(input);
  result->is_packing_cut = import_input_is_cut(input);
  if (result->is_packing_cut && result->end == IMPORT_WHOLE) result->end = IMPORT_CUT_SHORT;
  import_kineto_end(state);
  import_spool_close(&state->spool);
  if (result->end == IMPORT_NO_TRACE || result->end == IMPORT_REFUSED ||
      (counts_are_empty(state->counts) && result->end != IMPORT_WHOLE)) {
    import_output_abandon(&output);
  } else {
    import_capture_write(state, &output);
    import_output_commit(&output);
  }
  import_input_close(input);
  import_spool_fini(&state->spool);
  import_deferred_fini(&state->deferred);
  import_devices_fini(&state->devices);
  import_graphs_fini(&state->graphs);
  import_frames_fini(&state->frames);
  import_threads_fini(&state->threads);
  import_pools_fini(&state->pools);
  import_names_destroy(state->names);
  free(state->launches.all);
  free(state);
}
