/* RPD: what is before and after the rows of events. Opens the database, and writes its metadata. In
   a merged file the captures share the database, and the numbers of their rows continue. Called by
   rpd.c. */
#include <stdio.h>
#include <stdlib.h>

#include "../base/log.h"
#include "../reader/capture.h"
#include "rpd_schema.h"
#include "rpd_writer.h"

/* ---- metadata ---- */

static void put_tag(prof_i_rpd_writer *w, const char *tag, prof_i_text value) {
  prof_i_insert_put_text(w->inserts.metadata, prof_i_text_from(tag));
  prof_i_insert_put_text(w->inserts.metadata, prof_i_event_text_clean(&w->texts, value));
  prof_i_insert_row(w->inserts.metadata);
}

static void put_tag_number(prof_i_rpd_writer *w, const char *tag, uint64_t value) {
  char digits[32];
  snprintf(digits, sizeof digits, "%llu", (unsigned long long)value);
  put_tag(w, tag, prof_i_text_from(digits));
}

static void put_losses(prof_i_rpd_writer *w, const uint64_t *counts) {
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    char tag[64];
    snprintf(tag, sizeof tag, "prof_lost_%s", prof_loss_name(i));
    if (counts[i]) put_tag_number(w, tag, counts[i]);
  }
}

static void put_metadata(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  const uint64_t before_ns = run->options->place ? run->options->place->offset_ns : 0;
  put_tag(w, "gpu_stride", prof_i_text_from("1000"));
  put_tag(w, "pid_stride", prof_i_text_from("10000000"));
  put_tag(w, "schema_version", prof_i_text_from("3"));
  put_tag(w, "session_count", prof_i_text_from("1"));
  put_tag(w, "prof_version", prof_i_text_from(prof_version()));
  put_tag_number(w, "prof_pid", run->info.pid);
  put_tag_number(w, "prof_start_ns", run->info.start_ns - before_ns);
  put_tag_number(w, "prof_start_unix_ns", run->info.start_unix_ns - before_ns);
  put_tag_number(w, "prof_epoch_ns", prof_i_event_text_epoch_ns(&w->texts) - before_ns);
  if (w->shared) return;
  put_losses(w, run->info.lost_count);
  put_tag(w, "prof_head", prof_i_event_text_head(&w->texts));
}

/* The first capture creates the tables. */
static int open_database(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  const int status = prof_i_sqlite_open(run->sink, &w->database);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, rpd_tables);
#define PREPARE(name, columns, count) \
  w->inserts.name = prof_i_insert_begin(w->database, columns, count);
  PROF_I_RPD_INSERTS(PREPARE)
#undef PREPARE
  if (!w->shared) return PROF_OK;
  w->shared->database = w->database;
  w->shared->inserts = w->inserts;
  return PROF_OK;
}

/* Of a further capture. */
static void take_database(prof_i_rpd_writer *w) {
  w->database = w->shared->database;
  w->inserts = w->shared->inserts;
  w->before = w->shared->counts;
  w->argument_count = w->before.arguments;
  w->api_id = w->before.apis;
  w->op_id = w->before.ops;
  w->gpus = w->shared->gpus;
  w->gpu_room = w->shared->gpu_room;
  w->shared->gpus = NULL; /* until count_rows() */
}

/* The next capture's numbers are behind those of this one. */
static void count_rows(prof_i_rpd_writer *w) {
  w->shared->counts = (prof_i_rpd_counts){.strings = w->before.strings + w->string_ids.count,
                                          .ustrings = w->before.ustrings + w->ustring_ids.count,
                                          .arguments = w->argument_count,
                                          .apis = w->api_id,
                                          .ops = w->op_id};
  w->shared->gpus = w->gpus;
  w->shared->gpu_room = w->gpu_room;
  w->gpus = NULL;
  w->gpu_room = 0;
}

static int begin_texts(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  int status = prof_i_event_text_init(&w->texts, run, w->shared ? &w->shared->texts : NULL);
  if (status == PROF_OK) status = prof_i_work_links_init(&w->links, run->trace);
  if (status != PROF_OK) return status;
  w->sites = calloc((size_t)prof_i_trace_site_count(run->trace) + 1, sizeof *w->sites);
  w->works = calloc((size_t)w->links.launches.count + 1, sizeof *w->works);
  return w->sites && w->works ? PROF_OK : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

int prof_i_rpd_export_begin(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  const bool is_first = prof_i_export_is_first(run);
  int status = PROF_OK;
  w->shared = run->options->place ? run->options->place->shared : NULL;
  if (is_first)
    status = open_database(run);
  else
    take_database(w);
  if (status == PROF_OK) status = begin_texts(run);
  if (status != PROF_OK) return status;
  if (is_first) put_metadata(run);
  if (w->shared) prof_i_merged_texts_add_head(&w->shared->texts, &w->texts);
  for (int i = 0; i < PROF_LOSS_COUNT && w->shared; i++)
    w->shared->lost_count[i] += run->info.lost_count[i];
  w->empty = prof_i_rpd_string_id(w, prof_i_text_from(""));
  w->marker = prof_i_rpd_string_id(w, prof_i_text_from("UserMarker"));
  w->empty_argument = prof_i_rpd_ustring_id(w, prof_i_text_from(""));
  return w->empty && w->marker && w->empty_argument
             ? prof_i_rpd_writer_status(w)
             : prof_i_sqlite_fail_no_memory(run->sink->target.path);
}

static void put_gpus(prof_i_rpd_writer *w) {
  for (uint32_t i = 0; i < w->gpu_room; i++) {
    char tag[64];
    snprintf(tag, sizeof tag, "prof_gpu_%u", i);
    if (w->gpus[i].device.type) put_tag_number(w, tag, w->gpus[i].pid);
  }
}

/* The end of the file. */
static int finish_database(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  put_gpus(w);
  if (w->shared) {
    put_losses(w, w->shared->lost_count);
    put_tag(w, "prof_head", prof_i_merged_head(&w->shared->texts));
    put_tag(w, "prof_tail", prof_i_merged_tail(&w->shared->texts));
  } else {
    put_tag(w, "prof_tail", prof_i_event_text_tail(&w->texts, &w->counts, run->findings));
  }
  const int status = prof_i_rpd_writer_status(w);
  if (status != PROF_OK) return status;
  prof_i_sqlite_run(w->database, rpd_views);
  prof_i_sqlite *const database = w->database;
  w->database = NULL;
  if (w->shared) w->shared->database = NULL;
  return prof_i_sqlite_commit(database);
}

int prof_i_rpd_export_end(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  int status = prof_i_rpd_put_links(run);
  if (w->shared)
    prof_i_merged_texts_add_tail(&w->shared->texts, &w->texts, &w->counts, run->findings);
  if (status == PROF_OK) status = prof_i_rpd_writer_status(w);
  if (status == PROF_OK && prof_i_export_is_last(run)) status = finish_database(run);
  if (w->shared) count_rows(w);
  return status;
}

void prof_i_rpd_export_destroy_shared(void *user) {
  prof_i_rpd_shared *const shared = user;
  prof_i_sqlite_abandon(shared->database);
  prof_i_merged_texts_fini(&shared->texts);
  free(shared->gpus);
}

void prof_i_rpd_export_destroy(prof_i_export *run) {
  prof_i_rpd_writer *const w = run->state;
  if (!w->shared) prof_i_sqlite_abandon(w->database);
  prof_i_event_text_fini(&w->texts);
  prof_i_work_links_fini(&w->links);
  prof_i_name_ids_fini(&w->string_ids);
  prof_i_name_ids_fini(&w->ustring_ids);
  free(w->sites);
  free(w->works);
  free(w->gpus);
}
