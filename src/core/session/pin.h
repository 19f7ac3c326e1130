/* The own arena, pinned for a reader: its bytes stay where they are and can be read, whatever is
   recorded, cleared, stopped or started meanwhile. */
#ifndef PROF_CORE_SESSION_PIN_H
#define PROF_CORE_SESSION_PIN_H

#include <stdbool.h>
#include <stdint.h>

/* No lock is held, unless the kernel had no room for a second mapping. */
typedef struct prof_i_pinned {
  const unsigned char *bytes;
  const unsigned char *in_place; /* see prof_i_block_find() */
  uint64_t room;                 /* that may be looked at, as far as readable_bytes says */
  uint64_t readable;             /* when it was pinned: see prof_i_pinned_readable() */
  bool is_cut;                   /* the file is shorter than what was recorded */
  bool has_more_room;            /* the arena may outgrow the room */
  uint64_t arena, clears;        /* which it was, and the number of its last clear */
  uint64_t lease;                /* 0: none was asked for */
  bool is_locked;                /* the control lock is held, and bytes are the arena's own */
} prof_i_pinned;

/* 0, or PROF_E_NOT_RUNNING when there is no arena. with_lease: chunks that are read where they
   stand are not given back meanwhile. */
int prof_i_arena_pin(prof_i_pinned *pinned_out, bool with_lease);

/* The same with the control lock held, which prof_i_pinned_unlock() then gives back, unless it is
   needed further. False: there is no arena. */
bool prof_i_arena_pin_held(prof_i_pinned *pinned_out, bool with_lease);
void prof_i_pinned_unlock(const prof_i_pinned *pinned);

/* How much of it can be read by now. Only grows. */
uint64_t prof_i_pinned_readable(const prof_i_pinned *pinned);

/* False: a clear has begun since, and what was read is part before it, part after. The lease stays
   where it is wanted and that is not so, or is_content says that it does not matter; it is settled,
   and ends by prof_i_arena_end_lease(). */
bool prof_i_arena_unpin(prof_i_pinned *pinned, bool wants_lease, bool is_content);
void prof_i_arena_end_lease(uint64_t lease);

/* To be called before the own arena is pinned to be read as a whole: what devices have done is
   recorded, threads that have ended are known, and names are as they are now. */
void prof_i_arena_prepare_read(void);

#endif
