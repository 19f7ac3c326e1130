/* What recording costs this program, timed where it runs. cost.c times a scope whose code and
   data are in the near caches. Behind work that sweeps the caches, the same scope takes up to a
   hundred times as long.

   Now and then a thread opens a window: its scopes take the slow path for a few begins and
   ends. At each of them a twin runs as well. It is a scope with code, thread, slot, site and
   chunk of its own, which no reader sees. The twin's first runs bring its lines into the
   caches. After that the host's work between two scopes evicts the twin's lines like those of
   the recorder, and the twin is timed. A scope takes as much beyond scope_cost_ps as the twin
   takes beyond its time in warm caches.

   Windows come after 32 records, then 64 and so on. They are no further apart than
   WINDOW_EACH_NS if fewer records than that come in such a time.

   A window opens when a thread's claim reaches its chunk's limit. The limit is at the next
   stop, and not at the chunk's end, so the fast path has no instruction for it. A window's mean
   counts for half of the records since the previous window and half of those to the next. A run
   longer than 20 us is left out: it was interrupted.

   A window has four runs at most and stands for up to 16384 records, so one page fault would
   weigh as much as 16384. Two bounds hold, whatever a window finds.
     - A scope takes no more than the time from one record to the next, on average since the
       previous window.

     - All of a thread's recording takes no more than the time since the thread attached.

   There are no windows if the counter is not the clock: then every scope takes the slow path. */
#ifndef PROF_CORE_RECORD_COST_SAMPLE_H
#define PROF_CORE_RECORD_COST_SAMPLE_H

#include <prof/scope.h>
#include <stdbool.h>
#include <stdint.h>

#include "../../format/layout.h"
#include "../buffer/observer.h"

struct prof_i_thread;

/* What a thread knows of its windows. The owner alone. */
typedef struct prof_i_cost_window {
  uint32_t events_left;  /* begins and ends that the open window still takes; 0: it is closed */
  uint32_t epoch;        /* the thread's when it was opened */
  uint32_t count;        /* of windows so far */
  uint32_t begins, ends; /* timed in this window */
  uint64_t begin_ticks, end_ticks; /* all of them together */
  uint32_t slow_begins, slow_ends; /* of these, those whose rest of the slow path was timed, too */
  uint64_t slow_begin_ticks, slow_end_ticks;
  uint64_t at_ticks;     /* of the last window's opening */
  int64_t last_ps;       /* what the last window found a scope to take beyond a warm one */
  uint32_t concluded;    /* windows that found so */
  uint64_t from;         /* of the chunk: what stands behind this byte is not in `since` */
  uint64_t since;        /* bytes recorded since the last stop */
  uint64_t spacing;      /* bytes from the last stop to the next */
  uint64_t stands_for;   /* records that the next window's mean counts for */
  uint64_t came_ticks;   /* when the thread came to this arena */
  uint64_t records;      /* from then to the last window's opening */
  int64_t most_ps;       /* that the open window may find a scope to take beyond a warm one */
  int64_t beyond_ps;     /* what windows found so far; the slot's is bounded */
  uint64_t window_ticks; /* that windows took; not in the slot's own_ns yet */
} prof_i_cost_window;

/* Times the twin in warm caches, once for each clock. Takes some 120 us. Control lock held. */
void prof_i_cost_sample_calibrate(void);

/* Inserts a value into `count` sorted ones. */
void prof_i_cost_insert_sorted(uint64_t *values, int count, uint64_t value);

/* A capture begins, and its clock. scope_ps: of a plain scope in warm caches. Control lock
   held. */
void prof_i_cost_sample_begin_capture(uint64_t scope_ps);

/* In a forked child: the thread that ran a twin is not here. */
void prof_i_cost_sample_forget(void);

/* A scope begins, or has ended, by the slow path with a window open. Before all else. Returns the
   counter for the function of the same name below, or 0. Signal-safe. */
uint64_t prof_i_cost_sample_begin(struct prof_i_thread *thread, const prof_site *site,
                                  const prof_details *details);
uint64_t prof_i_cost_sample_end(struct prof_i_thread *thread);

/* The slow path has done the host's begin or end. Signal-safe. */
void prof_i_cost_sample_after_begin(struct prof_i_thread *thread, uint64_t since_ticks);
void prof_i_cost_sample_after_end(struct prof_i_thread *thread, uint64_t since_ticks);

/* Of a begin or end that found a window open, and now finds the gate closed: closes the window.
   True: that alone kept the thread off the fast path, which goes on past a closed gate. */
bool prof_i_cost_sample_give_up(struct prof_i_thread *thread);

extern const prof_i_observer prof_i_cost_sample_observer __attribute__((visibility("hidden")));

/* ---- cost.c: what recording costs on this machine, measured ---- */

typedef struct prof_i_cost {
  uint64_t scope_ps; /* one plain scope, begin and end */
  /* the begin of one whose site is muted, or for which there is no room any more */
  uint64_t left_out_ps;
} prof_i_cost;

/* Runs some thousand empty scopes in a prof_i_thread of its own: nothing is recorded. Of the clock
   in use. Takes some 30 us; with a slow clock, more. Control lock held. */
prof_i_cost prof_i_cost_measure(void);

/* The cost at this process's first start. The first call measures it. Control lock held. */
prof_i_cost prof_i_cost_at_start(void);

#endif
