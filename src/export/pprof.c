/* pprof's profile.proto. A sample is a call path: how often it was called, and its self time
   (path_tree.c). The thread is a label of the sample. A frame is a location and a function, whose
   numbers are that of the frame: 1 and up. In a merged file, the captures' messages come one after
   the other, and their numbers continue. */
#include <stdlib.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "internal.h"
#include "protobuf.h"

/* Field numbers of pprof's messages. */
enum {
  PROFILE_SAMPLE_TYPE = 1,
  PROFILE_SAMPLE = 2,
  PROFILE_LOCATION = 4,
  PROFILE_FUNCTION = 5,
  PROFILE_STRING = 6,
  PROFILE_TIME = 9,
  PROFILE_DURATION = 10,
  PROFILE_DEFAULT_TYPE = 14,
  TYPE_TYPE = 1,
  TYPE_UNIT = 2,
  SAMPLE_LOCATIONS = 1,
  SAMPLE_VALUES = 2,
  SAMPLE_LABEL = 3,
  LABEL_KEY = 1,
  LABEL_TEXT = 2,
  LOCATION_ID = 1,
  LOCATION_LINE = 4,
  LINE_FUNCTION = 1,
  LINE_LINE = 2,
  FUNCTION_ID = 1,
  FUNCTION_NAME = 2,
  FUNCTION_SYSTEM_NAME = 3,
  FUNCTION_FILE = 4
};

/* Places in the table of strings. Names and files of the frames follow, then names of threads. */
enum { TEXT_NONE, TEXT_SCOPES, TEXT_COUNT, TEXT_TIME, TEXT_NANOSECONDS, TEXT_THREAD, TEXT_FIRST };
static const char *const texts[TEXT_FIRST] = {"",     "scopes",      "count",
                                              "time", "nanoseconds", "thread"};

/* Frames and texts of the captures before. What the captures of a merged file share. */
typedef struct pprof_counts {
  uint64_t frames, texts;
} pprof_counts;

typedef struct pprof_writer {
  prof_i_path_tree tree; /* first: internal.h */
  prof_i_protobuf pb;    /* the message at hand */
  pprof_counts before;
} pprof_writer;

static uint64_t frame_number(const pprof_writer *w, uint32_t frame) {
  return w->before.frames + frame;
}
static uint64_t name_place(const pprof_writer *w, uint32_t frame) {
  return TEXT_FIRST + w->before.texts + 2 * (uint64_t)(frame - 1);
}
static uint64_t file_place(const pprof_writer *w, uint32_t frame) {
  return name_place(w, frame) + 1;
}
static uint64_t thread_place(const pprof_writer *w, uint32_t thread) {
  return TEXT_FIRST + w->before.texts + 2 * (uint64_t)w->tree.paths.row_count + thread;
}

static size_t begin_message(pprof_writer *w, uint32_t field) {
  w->pb.used = 0;
  return prof_i_protobuf_begin(&w->pb, field);
}

static void end_message(prof_i_export *run, size_t at) {
  pprof_writer *const w = run->state;
  prof_i_protobuf_end(&w->pb, at);
  if (!w->pb.has_failed) prof_i_sink_bytes(run->sink, w->pb.bytes, w->pb.used);
}

static void put_type(prof_i_export *run, uint64_t type, uint64_t unit) {
  pprof_writer *const w = run->state;
  const size_t at = begin_message(w, PROFILE_SAMPLE_TYPE);
  prof_i_protobuf_number(&w->pb, TYPE_TYPE, type);
  prof_i_protobuf_number(&w->pb, TYPE_UNIT, unit);
  end_message(run, at);
}

/* The inner frames first. */
static void put_sample(prof_i_export *run, uint32_t path) {
  pprof_writer *const w = run->state;
  const prof_i_path *const items = w->tree.paths.items, *outer = &items[path];
  const prof_i_path_sums *const sums = prof_i_path_tree_sums(&w->tree, path);
  const size_t at = begin_message(w, PROFILE_SAMPLE);
  const size_t locations = prof_i_protobuf_begin(&w->pb, SAMPLE_LOCATIONS);
  for (; outer->thread == 0; outer = &items[outer->parent])
    prof_i_protobuf_varint(&w->pb, frame_number(w, outer->row + 1));
  prof_i_protobuf_end(&w->pb, locations);
  const size_t values = prof_i_protobuf_begin(&w->pb, SAMPLE_VALUES);
  prof_i_protobuf_varint(&w->pb, sums->calls_count);
  prof_i_protobuf_varint(&w->pb, sums->self_ns);
  prof_i_protobuf_end(&w->pb, values);
  const size_t label = prof_i_protobuf_begin(&w->pb, SAMPLE_LABEL);
  prof_i_protobuf_number(&w->pb, LABEL_KEY, TEXT_THREAD);
  prof_i_protobuf_number(&w->pb, LABEL_TEXT, thread_place(w, outer->thread - 1));
  prof_i_protobuf_end(&w->pb, label);
  end_message(run, at);
}

static void put_frame(prof_i_export *run, uint32_t frame) {
  pprof_writer *const w = run->state;
  const prof_i_site_info *const site =
      prof_i_trace_site(run->trace, w->tree.paths.rows[frame - 1].site);
  size_t at = begin_message(w, PROFILE_LOCATION);
  prof_i_protobuf_number(&w->pb, LOCATION_ID, frame_number(w, frame));
  const size_t line = prof_i_protobuf_begin(&w->pb, LOCATION_LINE);
  prof_i_protobuf_number(&w->pb, LINE_FUNCTION, frame_number(w, frame));
  if (site && site->line) prof_i_protobuf_number(&w->pb, LINE_LINE, site->line);
  prof_i_protobuf_end(&w->pb, line);
  end_message(run, at);
  at = begin_message(w, PROFILE_FUNCTION);
  prof_i_protobuf_number(&w->pb, FUNCTION_ID, frame_number(w, frame));
  prof_i_protobuf_number(&w->pb, FUNCTION_NAME, name_place(w, frame));
  prof_i_protobuf_number(&w->pb, FUNCTION_SYSTEM_NAME, name_place(w, frame));
  prof_i_protobuf_number(&w->pb, FUNCTION_FILE, file_place(w, frame));
  end_message(run, at);
}

static void put_text(prof_i_export *run, prof_i_text text) {
  pprof_writer *const w = run->state;
  const size_t at = begin_message(w, PROFILE_STRING);
  prof_i_protobuf_text_part(&w->pb, text.data, (size_t)text.bytes);
  end_message(run, at);
}

static void put_texts(prof_i_export *run) {
  const pprof_writer *const w = run->state;
  for (int i = 0; i < TEXT_FIRST && prof_i_export_is_first(run); i++)
    put_text(run, (prof_i_text){texts[i], strlen(texts[i])});
  for (uint32_t i = 0; i < w->tree.paths.row_count && run->sink->status == PROF_OK; i++) {
    const prof_i_path_row *const frame = &w->tree.paths.rows[i];
    const prof_i_site_info *const site = prof_i_trace_site(run->trace, frame->site);
    put_text(run, prof_i_path_frame_name(frame));
    put_text(run, site ? site->file : (prof_i_text){"", 0});
  }
  for (uint32_t i = 0; i < run->info.thread_count; i++) {
    char name[PROF_I_THREAD_TEXT_ROOM];
    put_text(run, (prof_i_text){name, prof_i_path_thread_text(run, i, name, sizeof name)});
  }
}

static void put_number(prof_i_export *run, uint32_t field, uint64_t value) {
  pprof_writer *const w = run->state;
  w->pb.used = 0;
  prof_i_protobuf_number(&w->pb, field, value);
  if (!w->pb.has_failed) prof_i_sink_bytes(run->sink, w->pb.bytes, w->pb.used);
}

static int pprof_begin(prof_i_export *run) {
  pprof_writer *const w = run->state;
  if (run->options->place) w->before = *(pprof_counts *)run->options->place->shared;
  return prof_i_path_tree_begin(run);
}

static void count_numbers(prof_i_export *run) {
  const pprof_writer *const w = run->state;
  pprof_counts *const counts = run->options->place->shared;
  counts->frames += w->tree.paths.row_count;
  counts->texts += 2 * (uint64_t)w->tree.paths.row_count + run->info.thread_count;
}

/* Once in a file. */
static void put_times(prof_i_export *run) {
  const prof_i_export_place *const place = run->options->place;
  const uint64_t start_ns = run->info.start_unix_ns - (place ? place->offset_ns : 0);
  put_number(run, PROFILE_TIME, start_ns);
  put_number(run, PROFILE_DURATION, place ? place->duration_ns : run->info.duration_ns);
  put_number(run, PROFILE_DEFAULT_TYPE, TEXT_TIME);
}

static int pprof_end(prof_i_export *run) {
  const pprof_writer *const w = run->state;
  if (prof_i_export_is_first(run)) {
    put_type(run, TEXT_SCOPES, TEXT_COUNT);
    put_type(run, TEXT_TIME, TEXT_NANOSECONDS);
  }
  for (uint32_t i = 1; i < w->tree.paths.count && run->sink->status == PROF_OK; i++)
    if (w->tree.paths.items[i].sums[PROF_I_SIDE_NEW].calls_count > 0) put_sample(run, i);
  for (uint32_t i = 1; i <= w->tree.paths.row_count && run->sink->status == PROF_OK; i++)
    put_frame(run, i);
  put_texts(run);
  if (prof_i_export_is_last(run)) put_times(run);
  if (run->options->place) count_numbers(run);
  if (!w->pb.has_failed) return PROF_OK;
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a call path of the profile");
}

static void pprof_destroy(prof_i_export *run) {
  const pprof_writer *const w = run->state;
  free(w->pb.bytes);
  prof_i_path_tree_destroy(run);
}

const prof_i_exporter prof_i_pprof_exporter = {
    .name = "pprof",
    .format = PROF_FORMAT_PPROF,
    .suffixes = {".pb.gz", ".pb"},
    .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_MERGED,
    .shared_bytes = sizeof(pprof_counts),
    .order = PROF_I_ORDER_TIME,
    .takes_left_out = true,
    .has_self_times = true,
    .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN),
    .state_bytes = sizeof(pprof_writer),
    .begin = pprof_begin,
    .thread = prof_i_path_tree_thread,
    .event = prof_i_path_tree_event,
    .end = pprof_end,
    .destroy = pprof_destroy};
