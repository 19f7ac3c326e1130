/* A filter resolved for one trace: filter.c makes it. Called by src/analysis and src/export. */
#ifndef PROF_ANALYSIS_TRACE_FILTER_H
#define PROF_ANALYSIS_TRACE_FILTER_H

#include "../format/parse.h"
#include "../reader/capture.h"
#include "filter.h"

typedef struct prof_i_time_window {
  uint64_t from_ns, to_ns; /* to_ns is not part of it */
} prof_i_time_window;

/* A filter resolved for one trace. One thread at a time uses it. */
typedef struct prof_i_trace_filter {
  const prof_i_filter *filter;
  const prof_trace *trace;
  uint8_t *takes_site;    /* by site: its plain scopes pass, and records that say no more */
  uint8_t *takes_thread;  /* by index */
  uint8_t *takes_process; /* by thread: whether its process passes */
  uint64_t min_ns;
  prof_i_time_window window;   /* around all windows */
  prof_i_time_window *windows; /* of steps, by time; they do not touch */
  uint32_t window_count;
  uint32_t record_flags; /* PROF_I_FLAG_*: parts of records that the filter looks at */
  bool has_args;
  prof_event event; /* scratch */
} prof_i_trace_filter;

/* filter NULL: takes everything. 0 or PROF_E_NO_MEMORY. */
int prof_i_trace_filter_init(prof_i_trace_filter *of, const prof_trace *trace,
                             const prof_i_filter *filter);

/* The same of a trace that starts at `offset_ns` of the time line that --from and --to are of. */
int prof_i_trace_filter_init_at(prof_i_trace_filter *of, const prof_trace *trace,
                                const prof_i_filter *filter, uint64_t offset_ns);
void prof_i_trace_filter_fini(prof_i_trace_filter *of);

/* Whether an expanded event passes, apart from its thread, duration and time. */
bool prof_i_trace_filter_takes_event(const prof_i_trace_filter *of, const prof_event *event);

/* The same for a span that has a record. */
bool prof_i_trace_filter_takes_record(prof_i_trace_filter *of, uint32_t thread,
                                      const prof_i_span *span);

/* Whether a name passes. */
bool prof_i_filter_takes_name(const prof_i_filter *filter, const char *name, uint64_t bytes);

bool prof_i_trace_filter_is_in_windows(const prof_i_trace_filter *of, uint64_t start_ns);

/* Whether the filter has words that apply to scopes only: --name, --category, --level, --min,
   --arg. */
bool prof_i_filter_has_scope_words(const prof_i_filter *filter);

/* Whether an event that is no scope passes by its time, its thread's process, and its device. */
bool prof_i_trace_filter_takes_place(const prof_i_trace_filter *of, uint32_t thread,
                                     uint64_t start_ns, prof_device device);

static inline bool prof_i_trace_filter_takes_time(const prof_i_trace_filter *of, uint64_t start_ns,
                                                  uint64_t duration_ns) {
  return duration_ns >= of->min_ns && start_ns >= of->window.from_ns &&
         start_ns < of->window.to_ns &&
         (of->window_count < 2 || prof_i_trace_filter_is_in_windows(of, start_ns));
}

/* Whether a scope's record may pass where its site does not, or the other way round. */
static inline bool prof_i_trace_filter_reads_record(const prof_i_trace_filter *of,
                                                    const uint64_t *record) {
  return (prof_i_word_flags(record[2]) & of->record_flags) ||
         (of->has_args && prof_i_word_schema(record[2]) != 0);
}

/* Whether a span passes, apart from its thread. */
static inline bool prof_i_trace_filter_takes_span(prof_i_trace_filter *of, uint32_t thread,
                                                  const prof_i_span *span) {
  if (!prof_i_trace_filter_takes_time(of, span->start_ns, span->duration_ns)) return false;
  if (span->record &&
      (span->kind > PROF_EVENT_OPEN || prof_i_trace_filter_reads_record(of, span->record)))
    return prof_i_trace_filter_takes_record(of, thread, span);
  return of->takes_site[span->site];
}

/* Whether a span of a thread passes. */
static inline bool prof_i_trace_filter_takes(prof_i_trace_filter *of, uint32_t thread,
                                             const prof_i_span *span) {
  return of->takes_thread[thread] && prof_i_trace_filter_takes_span(of, thread, span);
}

#endif
