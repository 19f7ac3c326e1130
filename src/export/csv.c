/* CSV as RFC 4180 has it: a head, then a line for each scope, step, instant and counter value, by
   thread and time. Texts are in quotes, and are valid UTF-8. Times are ns from the capture's start.
   A merged file has one more column, the process. */
#include <math.h>
#include <stdio.h>

#include "../base/text.h"
#include "exporter.h"

typedef struct csv_writer {
  uint64_t pid, tid;
  char thread_name[64];
} csv_writer;

static void csv_put_number(prof_i_sink *sink, uint64_t value) {
  prof_i_sink_u64(sink, value);
  prof_i_sink_bytes(sink, ",", 1);
}

static const char *csv_kind(const prof_event *event) {
  switch (event->kind) {
    case PROF_EVENT_OPEN:
      return "unfinished,";
    case PROF_EVENT_STEP:
      return "step,";
    case PROF_EVENT_INSTANT:
      return "instant,";
    case PROF_EVENT_COUNTER:
      return "counter,";
  }
  return event->flags & PROF_EVENT_ON_DEVICE ? "device," : "scope,";
}

static int csv_begin(prof_i_export *run) {
  if (!prof_i_export_is_first(run)) return PROF_OK;
  prof_i_sink_text(run->sink,
                   "kind,pid,tid,thread,start_ns,duration_ns,self_ns,depth,value,category,name");
  prof_i_sink_text(run->sink, run->options->place ? ",process\r\n" : "\r\n");
  return PROF_OK;
}

static int csv_thread(prof_i_export *run, const prof_trace_thread *thread) {
  csv_writer *const w = run->state;
  const prof_i_tids *const ids = &run->tids[run->thread];
  w->pid = ids->is_elsewhere ? ids->pid : run->info.pid;
  w->tid = thread->is_stream ? thread->stream : thread->tid;
  memcpy(w->thread_name, thread->name, sizeof w->thread_name);
  return PROF_OK;
}

static int csv_event(prof_i_export *run, prof_i_export_event *event) {
  const csv_writer *const w = run->state;
  const prof_event *const e = event->event;
  prof_i_sink *const sink = run->sink;
  if (event->phase == PROF_I_PHASE_END) return PROF_OK;
  const bool is_scope = e->kind == PROF_EVENT_SCOPE || e->kind == PROF_EVENT_OPEN;
  prof_i_sink_text(sink, csv_kind(e));
  csv_put_number(sink, w->pid);
  csv_put_number(sink, w->tid);
  prof_i_sink_csv(sink, w->thread_name, strlen(w->thread_name));
  prof_i_sink_bytes(sink, ",", 1);
  csv_put_number(sink, prof_i_export_ns(run, event->start_ns));
  csv_put_number(sink, event->phase == PROF_I_PHASE_BEGIN ? event->end_ns - event->start_ns : 0);
  csv_put_number(sink, is_scope ? e->self_ns : 0);
  csv_put_number(sink, e->depth);
  if (e->kind == PROF_EVENT_STEP) prof_i_sink_u64(sink, e->id);
  if (e->kind == PROF_EVENT_COUNTER && isfinite(e->value)) prof_i_sink_double(sink, e->value);
  prof_i_sink_bytes(sink, ",", 1);
  prof_i_sink_csv(sink, event->category.data, (size_t)event->category.bytes);
  prof_i_sink_bytes(sink, ",", 1);
  prof_i_sink_csv(sink, event->name.data, (size_t)event->name.bytes);
  if (run->options->place) {
    prof_i_sink_bytes(sink, ",", 1);
    prof_i_sink_csv(sink, run->options->place->label, strlen(run->options->place->label));
  }
  prof_i_sink_bytes(sink, "\r\n", 2);
  return PROF_OK;
}

const prof_i_exporter prof_i_csv_exporter = {.name = "csv",
                                             .format = PROF_FORMAT_CSV,
                                             .suffixes = {".csv", ".csv.gz"},
                                             .abilities = PROF_I_EXPORT_CUT | PROF_I_EXPORT_MERGED,
                                             .order = PROF_I_ORDER_TIME,
                                             .event_kinds = PROF_I_KIND(SCOPE) | PROF_I_KIND(OPEN) |
                                                            PROF_I_KIND(STEP) |
                                                            PROF_I_KIND(INSTANT),
                                             .lacks_arguments = true,
                                             .lacks_launches = true,
                                             .has_self_times = true,
                                             .state_bytes = sizeof(csv_writer),
                                             .begin = csv_begin,
                                             .thread = csv_thread,
                                             .event = csv_event,
                                             .counter = csv_event};
