/* Things of a thread that begin and end together. The walk hands out the inner ones first
   (reader/internal.h). Viewers take the first of two equal scopes for the outer one. So the texts
   of a run of equal things change their order in the sink before they are written: outer ones
   first. Called by chrome.c and chrome.h. */
#ifndef PROF_EXPORT_REVERSAL_H
#define PROF_EXPORT_REVERSAL_H

#include "../sink/sink.h"

typedef struct prof_i_reversal {
  uint64_t start_ns, duration_ns;
  size_t *begins; /* of its texts but the first, in bytes behind the first */
  uint32_t count, room;
} prof_i_reversal;

/* Nothing begins at this moment. */
#define PROF_I_REVERSAL_NONE UINT64_MAX

/* The text that comes next belongs to the run. */
void prof_i_reversal_add_text(prof_i_reversal *reversal, prof_i_sink *sink);
/* Puts the run's texts in order. It is over then. */
void prof_i_reversal_flush(prof_i_reversal *reversal, prof_i_sink *sink);
void prof_i_reversal_fini(prof_i_reversal *reversal);

/* Before each text of a thread's. */
static inline void prof_i_reversal_next_text(prof_i_reversal *reversal, prof_i_sink *sink,
                                             uint64_t start_ns, uint64_t duration_ns) {
  if (__builtin_expect(reversal->start_ns == start_ns && reversal->duration_ns == duration_ns, 0)) {
    prof_i_reversal_add_text(reversal, sink);
    return;
  }
  if (__builtin_expect(reversal->count > 0, 0)) prof_i_reversal_flush(reversal, sink);
  reversal->start_ns = start_ns;
  reversal->duration_ns = duration_ns;
  sink->held = sink->next;
}

/* Behind the last text of a thread's. */
static inline void prof_i_reversal_end_thread(prof_i_reversal *reversal, prof_i_sink *sink) {
  prof_i_reversal_flush(reversal, sink);
  reversal->start_ns = PROF_I_REVERSAL_NONE;
  sink->held = NULL;
}

#endif
