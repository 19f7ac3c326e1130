/* Captures that a process writes to: its state, and snapshots of its arena. Captures in files,
   whole or as parts of a merged file. */
#ifndef PROF_LIVE_LIVE_H
#define PROF_LIVE_LIVE_H

#include "../format/merged.h"
#include "../reader/source.h"

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
  /* A trace uses these chunks. */
  void (*mark_shown_in_place)(const unsigned char *chunks, uint64_t bytes);
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

/* ---- what snapshot.c and snapshot_slots.c share ---- */

enum { PROF_I_SNAPSHOT_TRIES = 4 };

/* A chunk before the first chunk was copied. */
typedef struct prof_i_seen_chunk {
  uint64_t offset, number, generation, cursor;
  uint64_t overwritten; /* events that its room held before */
} prof_i_seen_chunk;

typedef struct prof_i_snapshot {
  const unsigned char *from;
  unsigned char *to;
  uint64_t count; /* bytes of `to`, and the most that are read of `from` */
  uint64_t there; /* of them, known to be readable; more may follow */
  const prof_i_live_source *live;
  prof_i_source *source; /* the result: its runs grow */
  bool may_share, is_ring;
  prof_i_seen_chunk *seen;
  uint32_t seen_count, seen_room;
  uint64_t newest_overwritten; /* number of the newest chunk that was overwritten during the copy */
  /* Neighbouring chunks that are read in place and not marked yet. */
  const unsigned char *shown;
  uint64_t shown_bytes;
  /* A part of `to` that is unmapped, and may not be mapped again: the snapshot has failed. */
  prof_i_mapped_run hole;
} prof_i_snapshot;

/* ---- snapshot.c: reading the arena ---- */

/* Loads a word that another thread may be writing, with acquire. */
uint64_t prof_i_snapshot_load(const void *at);

/* Orders loads before it before loads after it. */
void prof_i_snapshot_fence(void);

/* Copies these bytes of the arena to the same offset of the copy. */
void prof_i_snapshot_copy_words(const prof_i_snapshot *s, uint64_t offset, uint64_t bytes);

/* Returns the offset of the next extent of this kind at or after *offset, and moves *offset past
   it. 0: there is none. */
uint64_t prof_i_snapshot_next_of_kind(const prof_i_snapshot *s, uint64_t *offset,
                                      prof_i_extent_kind kind, prof_i_head *head_out);

/* ---- snapshot_slots.c ---- */

void prof_i_snapshot_copy_slots(const prof_i_snapshot *s);

/* Removes entries of the copied slots that have changed in the arena since. Between two looks at a
   ring, a scope may end, and the chunk with its record may be overwritten. Without this the scope
   would be shown as open for ever. */
void prof_i_snapshot_keep_steady_slots(const prof_i_snapshot *s);

/* Reads the losses again: first ended scopes, then new ones. So no scope counts twice, and every
   scope that ended before counts. A slot that was taken since is not in the copy, and neither is
   its thread. */
void prof_i_snapshot_copy_losses(const prof_i_snapshot *s);

/* ---- parts.c ---- */

/* Captures in files. A file is one capture, or a merged one with several parts
   (../format/merged.h). PATH#N is the path of part N, from 1 on. If a file has that name, the path
   is that file. */

typedef struct prof_i_part {
  uint64_t offset, bytes; /* of the capture in the file */
  uint32_t number;        /* from 0 */
} prof_i_part;

/* The parts of a file that can be read, in the order of the file. Begins as zeros. */
typedef struct prof_i_parts {
  prof_i_part *items;
  uint32_t count, room;
  uint32_t all_count;  /* including lost ones */
  uint32_t lost_count; /* parts that cannot be found any more */
  bool is_merged;      /* false: the file is one capture, or none, and has no parts */
  bool is_unaligned;   /* its hosts start together */
} prof_i_parts;

/* Finds the parts of an open file. Returns PROF_OK, or a status whose text names `path`. */
int prof_i_parts_find(int fd, const char *path, prof_i_parts *parts_out);

/* The same of a path. */
int prof_i_parts_open(const char *path, prof_i_parts *parts_out);
void prof_i_parts_fini(prof_i_parts *parts);

/* Reads the header of a merged capture. False: the file is not a merged capture, or its header is
   damaged. */
bool prof_i_parts_look(const char *path, prof_i_merged_header *header_out);

/* Splits PATH#N. *number_out: from 0. False: the path has no such end, or does not fit. */
bool prof_i_part_path_split(const char *path, char *file_out, size_t room, uint32_t *number_out);

/* ---- file.c ---- */

/* Returns the status of errno, with the text "cannot read PATH: ...". what: "cannot read". */
int prof_i_file_fail_errno(const char *what, const char *path);

/* The bytes of a capture: a file, or a part of one. */
typedef struct prof_i_capture_bytes {
  int fd;
  bool is_part;
  uint64_t offset, bytes;
} prof_i_capture_bytes;

/* Opens a capture without reading it. If it is not a part, prof_i_capture_bytes_look() sets its
   size. The caller closes `fd`. A merged file with several parts is refused with PROF_E_INVALID.
   Its text says how to open one of them. */
int prof_i_capture_bytes_open(const char *path, prof_i_capture_bytes *bytes_out);

/* Reads the header. *is_finished_out: no process writes to these bytes any more, so they can be
   copied as they are. */
int prof_i_capture_bytes_look(prof_i_capture_bytes *of, const char *path, prof_i_header *header_out,
                              bool *is_finished_out);

#endif
