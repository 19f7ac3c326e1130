/* The own arena, pinned for a reader: its bytes stay where they are and can be read, whatever is
   recorded, cleared, stopped or started meanwhile. */
#ifndef PROF_CORE_SESSION_ARENA_VIEW_H
#define PROF_CORE_SESSION_ARENA_VIEW_H

#include <stdbool.h>
#include <stdint.h>

/* No lock is held, unless the kernel had no room for a second mapping. */
typedef struct prof_i_arena_view {
  const unsigned char *bytes;
  const unsigned char *in_place; /* see prof_i_block_find() */
  uint64_t room;                 /* that may be looked at, as far as readable_bytes says */
  uint64_t readable;             /* when it was pinned: see prof_i_arena_view_readable() */
  bool is_cut;                   /* the file is shorter than what was recorded */
  bool has_more_room;            /* the arena may outgrow the room */
  uint64_t arena, clears;        /* which it was, and the number of its last clear */
  uint64_t snapshot_pin;         /* 0: none was asked for */
  bool is_locked;                /* the control lock is held, and bytes are the arena's own */
} prof_i_arena_view;

/* 0, or PROF_E_NOT_RUNNING when there is no arena. with_pin: chunks that are read where they
   stand are not given back meanwhile. */
int prof_i_arena_view_acquire(prof_i_arena_view *view_out, bool with_pin);

/* The same with the control lock held, which prof_i_arena_view_unlock() then gives back, unless it
   is needed further. False: there is no arena. */
bool prof_i_arena_view_acquire_locked(prof_i_arena_view *view_out, bool with_pin);
void prof_i_arena_view_unlock(const prof_i_arena_view *view);

/* How much of it can be read by now. Only grows. */
uint64_t prof_i_arena_view_readable(const prof_i_arena_view *view);

/* False: a clear has begun since, and what was read is part before it, part after. The pin stays
   where it is wanted and that is not so, or is_content says that it does not matter; it is settled,
   and ends by prof_i_arena_end_snapshot_pin(). */
bool prof_i_arena_view_release(prof_i_arena_view *view, bool wants_pin, bool is_content);
void prof_i_arena_end_snapshot_pin(uint64_t snapshot_pin);

/* To be called before the own arena is acquired to be read as a whole. Records what devices have
   done, and takes in ended threads and the present names. */
void prof_i_arena_prepare_read(void);

#endif
