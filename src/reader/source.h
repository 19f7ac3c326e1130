/* The bytes of a trace: the caller's memory, a copy, a mapped file or a snapshot. They do not
   change while the trace exists. */
#ifndef PROF_READER_SOURCE_H
#define PROF_READER_SOURCE_H

#include <stdbool.h>

#include "../core/buffer/clock.h"
#include "../format/layout.h"

typedef enum prof_i_source_kind {
  PROF_I_SOURCE_BORROWED, /* the caller's */
  PROF_I_SOURCE_COPY,     /* malloc */
  PROF_I_SOURCE_MAPPING   /* mmap */
} prof_i_source_kind;

/* A part of the bytes whose pages may be dropped from memory at any time: a file, or the arena, has
   them. */
typedef struct prof_i_mapped_run {
  uint64_t offset, bytes;
} prof_i_mapped_run;

enum {
  PROF_I_LARGE_CAPTURE_BYTES = 64 << 20, /* the largest capture that is held in memory whole */
  PROF_I_OPEN_SOURCES_BYTES = 128 << 20, /* of all open sources; further ones are mapped */
  PROF_I_ARENA_GROWTH_BYTES = 64 << 20   /* of an arena during one copy */
};

typedef struct prof_i_cached_head {
  uint64_t offset;
  const unsigned char *at; /* the chunk */
  prof_i_head head;
} prof_i_cached_head;

/* What a packed capture was made of before it was unpacked. */
typedef struct prof_i_packing {
  uint64_t file_bytes;                /* 0: the capture is not packed */
  uint64_t unpacked_bytes;            /* of the whole capture */
  uint32_t packed_count, plain_count; /* extents */
} prof_i_packing;

typedef struct prof_i_source {
  const unsigned char *bytes; /* 8-byte aligned */
  uint64_t count;
  prof_i_source_kind kind;
  uint64_t lead_bytes;    /* of a mapping: these come before `bytes` */
  uint64_t counted_bytes; /* its part of PROF_I_OPEN_SOURCES_BYTES */
  bool is_live;           /* a process still writes, or may write, to the original of the bytes */
  bool is_elsewhere;      /* whether a process writes cannot be determined */
  bool is_copied;         /* a plain copy of a file while a process wrote to it */
  prof_i_packing packing;
  /* Just before the bytes were copied, of a live capture whose clock can be read here; else
     zeros. */
  prof_i_clock_reading opened;
  prof_i_mapped_run *runs; /* by offset; owned */
  uint32_t run_count, run_room;
  /* Heads of chunks in runs or in place, because the originals may change; by offset; owned. */
  struct prof_i_cached_head *heads;
  uint32_t head_count, head_room;
  /* The arena that has the chunks that are not in the bytes. NULL: all are in the bytes. */
  const unsigned char *in_place;
  uint64_t in_place_bytes;
  /* Of the own capture; 0: none. prof_i_source_fini() passes it to end_snapshot_pin(). */
  uint64_t snapshot_pin;
  void (*end_snapshot_pin)(uint64_t snapshot_pin);
} prof_i_source;

/* Borrows the caller's bytes. */
int prof_i_source_bytes(prof_i_source *source, const void *bytes, size_t count);
void prof_i_source_fini(prof_i_source *source);

/* In unpack.c. If the source is a packed capture, replaces its bytes with those of the plain
   capture. They are in memory if prof_i_source_hold() allows it, else in a temporary file.
   *bad_count is increased by the number of damaged parts, whose units become zero. On an error the
   source is unchanged: PROF_E_NO_MEMORY, PROF_E_NO_SPACE for the temporary file, PROF_E_UNSUPPORTED
   if zstd cannot be opened, or PROF_E_BUSY in a child that a signal handler forked meanwhile. */
int prof_i_source_unpack(prof_i_source *source, uint64_t *bad_count);

/* Refuses a part of the memory of a process that records without a file: it lacks the private
   blocks. what: names it in the error. */
int prof_i_source_check_memory(const unsigned char *first_unit, const char *what);

/* Counts bytes of a copy. False, and nothing is counted: the copies of all traces would exceed
   PROF_I_OPEN_SOURCES_BYTES. Any thread. */
bool prof_i_source_hold(uint64_t bytes);
void prof_i_source_let_go(uint64_t bytes);

/* Counts a mapping of a run of the arena. False, and nothing is counted: the process may run out of
   mappings. Any thread. */
bool prof_i_source_add_mapping(void);

/* These bytes have been read. The pages of a large capture may be dropped until they are read
   again. Any thread. */
void prof_i_source_release_pages(const prof_i_source *source, const void *from, uint64_t bytes);

/* The chunk at this offset. Its head may be cached elsewhere: see above. */
const unsigned char *prof_i_source_chunk(const prof_i_source *source, uint64_t offset);

/* Whether the chunk is finished, and read where the process recorded it, or mapped from there. */
bool prof_i_source_is_shared(const prof_i_source *source, uint64_t offset);

/* The offset of this address. */
uint64_t prof_i_source_offset(const prof_i_source *source, const void *at);

/* The bytes from this offset on, as the capture's file would have them: as many as are contiguous.
   *count_out 0: the end. */
const void *prof_i_source_bytes_at(const prof_i_source *source, uint64_t offset,
                                   uint64_t *count_out);

#endif
