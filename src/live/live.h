/* Captures that a process writes to: its state, and snapshots of its arena. */
#ifndef PROF_LIVE_LIVE_H
#define PROF_LIVE_LIVE_H

#include "../reader/source.h"

/* ---- process_state.c ---- */

typedef enum prof_i_process_state {
  PROF_I_PROCESS_ENDED,
  PROF_I_PROCESS_RUNS,
  PROF_I_PROCESS_UNKNOWN
} prof_i_process_state;

prof_i_process_state prof_i_process_state_of(const prof_i_header *header);

/* ---- file.c ---- */

/* Whether a running process records into another file. */
bool prof_i_source_is_copy(int fd, const prof_i_header *header);

/* ---- snapshot.c ---- */

/* An arena that a process writes to. */
typedef struct prof_i_live_source {
  const unsigned char *bytes;
  uint64_t room; /* bytes of address space: what may be used later */
  /* How many bytes can be read now. It only grows. NULL: all. */
  uint64_t (*live_bytes_now)(const struct prof_i_live_source *live);
  const unsigned char *in_place; /* the arena, if find_bytes() may return parts of it; else NULL */
  /* Where this offset can be read. NULL: in the bytes. */
  const unsigned char *(*find_bytes)(const struct prof_i_live_source *live, uint64_t offset);
  /* A trace uses that chunk. */
  void (*mark_shown_in_place)(const unsigned char *chunk, uint64_t bytes);
  /* Whether the unit at this offset can be read. NULL: every unit can. */
  bool (*may_read_unit)(const struct prof_i_live_source *live, uint64_t offset);
  int fd; /* for live_bytes_now(), as is the next */
  void *user;
  bool may_map_more; /* the arena is larger than the room: return PROF_I_SNAPSHOT_OUTGROWN */
} prof_i_live_source;

enum { PROF_I_SNAPSHOT_OUTGROWN = 1 };

/* Copies the used part of an arena. Every record that was committed before the call is in the copy,
   whole. may_share: finished chunks are not copied but read in place, so the source needs a
   snapshot pin. PROF_I_SNAPSHOT_OUTGROWN, without an error text: live->may_map_more, and more is
   needed. */
int prof_i_source_snapshot(prof_i_source *source, const prof_i_live_source *live, bool may_share);

#endif
