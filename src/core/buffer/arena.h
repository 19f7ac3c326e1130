/* The arena: one mapping that everything recorded goes to, a file or memory. This file takes
   extents from it and keeps stale pointers harmless; it knows nothing of scopes. What an extent
   holds is layout.h's.

   An arena that is given up is mapped over with anonymous memory, not unmapped, where a thread may
   still point into it. A thread that slept between its claim and its store then does no harm. See
   mapping.h. */
#ifndef PROF_CORE_BUFFER_ARENA_H
#define PROF_CORE_BUFFER_ARENA_H

#include <prof/profiler.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "../../base/port.h"
#include "../../format/layout.h"

/* Read by any thread through prof_i_arena; written under the control lock, while the level is 0. */
typedef struct prof_i_arena {
  char *base; /* NULL: none. Its first page is the header */
  uint64_t cap_bytes;
  /* so far the mapping may be touched; no less than the file has. Any thread, only grows */
  uint64_t open_bytes;
  uint64_t number; /* counts arenas over the process's life, from 1 */
  uint32_t policy; /* prof_policy */
  bool is_file;
  bool has_blocks; /* blocks.h; open_bytes is then not used */
  char *mirror;    /* of an arena with blocks: all of its memfd, closed; else NULL */
  int fd;          /* of the file; used only while fstat says it is still ours */
  dev_t device;
  ino_t inode;
  uint64_t chunk_bytes_min; /* a thread's first chunk */
  uint64_t chunk_bytes_max;
  char path[512];    /* "" in memory */
  int error;         /* errno of the mapping that failed last; 0: none did */
  char reason[1024]; /* why it is not where it was asked to be, or smaller */
  bool is_cap_cut;   /* a limit of the process made the cap smaller; the reason names it */
} prof_i_arena;

extern prof_i_arena prof_i_the_arena __attribute__((visibility("hidden")));

/* Without an arena it is an empty header, which no reader sees. A call that a handler interrupted
   to fork goes on in the child, where its arena is gone. */
extern prof_i_header prof_i_no_header __attribute__((visibility("hidden")));

static inline prof_i_header *prof_i_arena_header(void) {
  char *const base = prof_i_the_arena.base;
  return PROF_I_LIKELY(base != NULL) ? (prof_i_header *)(void *)base : &prof_i_no_header;
}
static inline uint64_t prof_i_arena_offset(const void *at) {
  return (uint64_t)((const char *)at - prof_i_the_arena.base);
}

/* Maps fd (taken over on success), whose path `fresh` has, or memory (fd -1) of cap bytes into
   `fresh`, which nobody uses yet. 0 or an errno. */
int prof_i_arena_map(prof_i_arena *fresh, int fd, uint64_t cap_bytes, uint32_t policy);

/* The fresh arena takes the place of the one in force, which is let go. 0 or an errno: then the old
   one stays. Control lock held, level 0, gate closed. */
int prof_i_arena_install(prof_i_arena *fresh);

/* What was made and not installed goes again, its file too. */
void prof_i_arena_discard(prof_i_arena *fresh);

/* In the child of a fork: the parent's arena is no longer ours, not even to write to. Its own level
   is this one. Only the forking thread exists. */
void prof_i_arena_forget(uint32_t level);

/* Takes an extent: room reserved, populated if asked, zero, its head written. NULL: no room, or an
   error; loss_out says why (prof_loss). Any thread. Signal-safe: no lock. */
prof_i_head *prof_i_arena_take_extent(prof_i_extent_kind kind, uint64_t bytes,
                                      uint64_t populate_bytes, int *loss_out);

/* The best size of the next chunk, if one of `bytes` is requested. A file system takes the largest
   pieces of memory for chunks at multiples of their size. A few smaller chunks lead there. */
uint64_t prof_i_arena_aligned_bytes(uint64_t bytes);

/* Makes an extent anew whose memory was punched, but for the first page, which is zero or a head.
   NULL as above. */
prof_i_head *prof_i_arena_retake_extent(uint64_t offset, prof_i_extent_kind kind, uint64_t bytes,
                                        uint64_t populate_bytes, int *loss_out);

/* Writes the head of an extent whose memory is zero. */
void prof_i_arena_make_head(prof_i_head *head, prof_i_extent_kind kind, uint64_t bytes);

/* The chunk is the caller's. The part that is cut off has heads already, and this makes them
   visible. */
void prof_i_arena_shrink_chunk(prof_i_head *chunk, uint64_t bytes);

/* The arena mapped a second time, to be read while others replace it, clear it, or let its pages
   go: what is open of it, and up to more_bytes behind. Read only. NULL: the kernel has no room for
   that, or another thread was opening more. Control lock held. It is the caller's:
   prof_i_port_unmap(). */
const void *prof_i_arena_map_readonly(uint64_t more_bytes, uint64_t *room_out);

/* How much of the cap is taken. */
uint64_t prof_i_arena_taken_bytes(void);

/* How much of the arena can be read without SIGBUS: what is claimed, and no further than the file
   reaches. */
uint64_t prof_i_arena_readable_bytes(void);

/* The next extent after this offset, by the heads; NULL at the end. Start with offset 0; end is
   prof_i_arena_readable_bytes(). */
prof_i_head *prof_i_arena_next(uint64_t *offset, uint64_t end);
/* The same of the arena of that number, which is mapped there. in_place: see
   prof_i_block_find(). */
const prof_i_head *prof_i_arena_next_of(const void *base, const void *in_place, uint64_t arena,
                                        uint64_t *offset, uint64_t end);
/* What it is by now: it may just be taken again. */
static inline prof_i_extent_kind prof_i_head_kind(const prof_i_head *head) {
  return (prof_i_extent_kind)__atomic_load_n(&head->kind, __ATOMIC_RELAXED);
}

/* Counts how often room has come back: ask before you look for room. */
uint64_t prof_i_arena_room_epoch(void);
/* New scopes are dropped from now on (keep, or a stream at its cap or without disk), unless room
   has come back since that room epoch. Idempotent. True: the caller was the first, and calls the
   next one, with the time. */
bool prof_i_arena_set_full(int loss, uint64_t room_epoch);
/* Since when scopes are dropped, unless room has come back meanwhile. */
void prof_i_arena_set_full_ticks(int loss, uint64_t room_epoch, uint64_t ticks);
int prof_i_arena_full_loss(void); /* the reason, or -1 */
/* Room has come back: another room epoch. Control lock held. */
void prof_i_arena_clear_full(void);

/* Why the kernel refused room for scopes, since room came back: an errno, or 0. Any thread. */
void prof_i_arena_note_refusal(int error);
int prof_i_arena_refusal(void);

/* The level that call sites read stands in a page of its own that shows the arena's header, so that
   it never moves. */
int prof_i_arena_level_page(void); /* 0 or an errno; makes the page once */
void prof_i_arena_set_level(uint32_t level);
uint32_t prof_i_arena_level(void);
/* false: it is not `from` any more. Any thread. Signal-safe */
bool prof_i_arena_lower_level(uint32_t from, uint32_t to);
/* A loss of no slot, straight into the header, through that page. A session is on. Signal-safe. */
void prof_i_arena_count_loss(int loss, uint64_t count);
/* The same of a deep scope that is over, and that no slot's ledger says so of. */
void prof_i_arena_count_deep_ended(void);

/* Which start it is of, from 1 on; 0: none yet. From anywhere, also where the arena is just being
   replaced. */
uint64_t prof_i_arena_session(void);

enum { PROF_I_OUTPUT_ROOM = 4096 }; /* bytes of an output's name, with its NUL */

/* ---- arena_guard.c ---- */

/* The gate of the slow path. While a thread is past it, the arena stays in force. prof_start() with
   another arena, and prof_clear(), close it and wait until all threads are out. Recording does not
   wait: if it finds the gate closed, it counts a loss. */

bool prof_i_arena_guard_enter(void); /* false: closed. Signal-safe; may nest */
void prof_i_arena_guard_exit(void);

/* Closes; waits at most two seconds for those inside. False: a thread, for example a stopped one,
   did not leave, and the gate is open again. A handler of a thread that is past the gate does not
   wait. */
bool prof_i_arena_guard_drain(void);
/* For an error's text: what the gate waits for. */
const char *prof_i_arena_guard_busy_reason(void);
void prof_i_arena_guard_open(void);
void prof_i_arena_guard_reset(void); /* in a forked child */

/* ---- head_map.c ---- */

/* Which units of the arena in force have been made ready for an extent's head. A claimed unit for
   which there was no room must not be read: on a tmpfs without a free page a read is a SIGBUS.
   Readers of this process check here first. */

/* Before an arena of that cap and number takes the place of the one in force. Control lock held,
   the gate closed. Without memory for the map every unit counts as ready. */
void prof_i_head_map_begin(uint64_t arena, uint64_t cap_bytes);

/* The unit at this offset of the arena in force has its memory. Any thread. Signal-safe. */
void prof_i_head_map_add(uint64_t offset);

/* May a reader of that arena look at the unit? True also where nobody knows: another arena is in
   force by now. Any thread. Signal-safe. */
bool prof_i_head_map_may_read(uint64_t arena, uint64_t offset);

#endif
