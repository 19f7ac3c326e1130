/* The clock of records: which counter, and the pairs that tie its ticks to time. */
#ifndef PROF_CORE_BUFFER_CLOCK_H
#define PROF_CORE_BUFFER_CLOCK_H

#include <stdbool.h>
#include <stdint.h>

/* Chooses the counter: prof_clock, or the safest. 0 or a status (PROF_E_UNSUPPORTED when it was
   named and is not safe). */
int prof_i_clock_choose(uint32_t wanted);
uint32_t prof_i_clock_kind(void);   /* prof_clock, never DEFAULT once chosen */
bool prof_i_clock_is_counter(void); /* scopes may read it inline */

/* Now, in ticks of the chosen clock: 60 bits. Signal-safe. */
uint64_t prof_i_clock_ticks(void);

/* Forgets the segment: a new arena begins with its own. Then writes the header's start and the
   first pair. */
void prof_i_clock_begin(void);

/* Writes a pair into the capture; a pair off the line by more than its error begins a new segment.
   With `rarely`, only when the last one is 10 ms old. Any thread; skips when another is at it. */
void prof_i_clock_write_pair(bool rarely);

/* Times of scopes are compared by these alone. Both are 60 bits that may wrap. */
bool prof_i_clock_is_before(uint64_t ticks, uint64_t since);

/* Has the counter gone back to before that time, or by much since the session began (a machine that
   was moved, or slept)? Then a scope's start does not tell whether it is of an older session.
   Signal-safe. */
bool prof_i_clock_went_back(uint64_t since);
/* The clock as the process that records has it, read side by side with CLOCK_MONOTONIC. */
typedef struct prof_i_clock_reading {
  uint64_t ticks; /* 60 bits; 0: this process cannot read that counter */
  uint64_t width_ticks;
  uint64_t monotonic_ns; /* 0: no reading */
} prof_i_clock_reading;

/* kind: prof_clock of the capture, which another process may record. Any thread. */
prof_i_clock_reading prof_i_clock_read(uint32_t kind);

void prof_i_clock_begin_session(void); /* in the arena in force; takes a pair */

/* In a forked child: whoever was just at a pair is not here. */
void prof_i_clock_forget(void);

double prof_i_clock_ticks_per_ns(void);

/* The counter at a moment of CLOCK_MONOTONIC that was just now: both are read side by side, within
   so many ticks. */
uint64_t prof_i_clock_ticks_at(uint64_t monotonic_ns, uint64_t *width_out);
double prof_i_clock_rate_error(void); /* as a share of that; 1 and more: it is a guess */
uint64_t prof_i_clock_error_ns(void);
uint32_t prof_i_clock_segments(void);

#endif
