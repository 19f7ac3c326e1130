/* Things of a thread that begin and end together. The walk hands out the inner ones first
   (reader/walk.h). Viewers take the first of two equal scopes for the outer one. So the texts of a
   run of equal things change their order in the sink before they are written: outer ones first.
   Called by chrome.c alone. */
#ifndef PROF_EXPORT_TURN_H
#define PROF_EXPORT_TURN_H

#include "../sink/sink.h"

typedef struct prof_i_turn {
  uint64_t start_ns, duration_ns;
  size_t *begins; /* of its texts but the first, in bytes behind the first */
  size_t count, room;
} prof_i_turn;

/* Nothing begins at this moment. */
#define PROF_I_TURN_NONE UINT64_MAX

/* The text that comes next belongs to the run. */
void prof_i_turn_more(prof_i_turn *turn, prof_i_sink *sink);
/* Puts the run's texts in order. It is over then. */
void prof_i_turn_over(prof_i_turn *turn, prof_i_sink *sink);
void prof_i_turn_fini(prof_i_turn *turn);

/* Before each text of a thread's. */
static inline void prof_i_turn_next(prof_i_turn *turn, prof_i_sink *sink, uint64_t start_ns,
                                    uint64_t duration_ns) {
  if (__builtin_expect(turn->start_ns == start_ns && turn->duration_ns == duration_ns, 0)) {
    prof_i_turn_more(turn, sink);
    return;
  }
  if (__builtin_expect(turn->count > 0, 0)) prof_i_turn_over(turn, sink);
  turn->start_ns = start_ns;
  turn->duration_ns = duration_ns;
  sink->held = sink->next;
}

/* Behind the last text of a thread's. */
static inline void prof_i_turn_end(prof_i_turn *turn, prof_i_sink *sink) {
  prof_i_turn_over(turn, sink);
  turn->start_ns = PROF_I_TURN_NONE;
  sink->held = NULL;
}

#endif
