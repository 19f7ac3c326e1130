/* What a capture says once: call sites, schemas, tracks, clock pairs, changes, pools, processes,
   devices. Read from the meta extents. */
#ifndef PROF_READER_CATALOG_H
#define PROF_READER_CATALOG_H

#include <stdbool.h>

#include "../format/layout.h"
#include "internal.h"
#include "timeline.h"

typedef struct prof_i_schema {
  const uint64_t *record;
  uint32_t number;
  uint8_t kind; /* prof_args_kind */
  uint8_t count;
  uint8_t types[PROF_ARGS_MAX];
  uint32_t keys[PROF_ARGS_MAX]; /* of the keys' lengths: words from the record's begin */
  uint32_t format;              /* the same of the format */
} prof_i_schema;

typedef struct prof_i_track {
  prof_device device;
  uint64_t stream;
  prof_i_text name;
} prof_i_track;

/* prof_trace_change, with the thread by its serial. */
typedef struct prof_i_change_record {
  uint32_t number; /* in the order of reading: decides between two at one time */
  /* Time of a change from outside, by the process that made it. 0: see ticks. */
  uint64_t monotonic_ns;
  uint64_t ticks;
  uint32_t kind, reason, site, level_before, level_after;
  uint64_t serial, measured, allowed;
} prof_i_change_record;

/* A pool of memory, from one start to its stop. */
typedef struct prof_i_pool_record {
  uint32_t number, kind, serial, session, baseline;
  uint32_t start; /* counts starts of memory, of which a session may have several */
  prof_device device;
  uint64_t ticks; /* when the session began for it */
  uint64_t used_before, allocated_before;
  prof_i_text name;
  prof_i_pool_state state; /* when the capture was read */
} prof_i_pool_record;

/* The process of a thread. */
typedef struct prof_i_process_record {
  uint64_t serial; /* of the thread */
  int64_t pid;
  int32_t rank;     /* -1: unknown, or there is one rank */
  prof_i_text name; /* empty: unknown */
} prof_i_process_record;

typedef struct prof_i_catalog {
  uint32_t *site_at; /* by number: index in sites, 0 for unknown numbers */
  uint32_t site_limit;
  prof_i_site_info *sites; /* sites[0] serves all unknown numbers */
  uint32_t site_count;
  uint32_t site_room;
  prof_i_schema *schemas; /* by number */
  uint32_t schema_count, schema_room;
  prof_i_track *tracks;
  uint32_t track_count, track_room;
  prof_i_time_pair *pairs;
  uint32_t pair_count, pair_room;
  /* ticks at which steps begin: ends of steps, starts of sessions; sorted by index.c */
  uint64_t *marks;
  uint32_t mark_count, mark_room;
  /* ticks at which the tracing of functions ended while some were open; sorted by index.c */
  uint64_t *function_ends;
  uint32_t function_end_count, function_end_room;
  prof_i_change_record *changes;
  uint32_t change_count, change_room;
  /* changes from outside that have records, by their numbers: the header may have later ones */
  uint64_t outside_count;
  prof_i_text *notes; /* in the order of their records */
  uint32_t note_count, note_room;
  prof_i_process_record *processes; /* of threads of other processes, by serial */
  uint32_t process_count, process_room;
  prof_i_pool_record *pools;
  uint32_t pool_count, pool_room;
  prof_i_device_state *devices; /* by device, each once */
  uint32_t device_count, device_room;
  uint64_t first_session; /* the first that a clear left something of; 0: all */
  uint32_t last_level;    /* the last that was not 0 */
  /* how far CLOCK_REALTIME has moved against CLOCK_MONOTONIC since the start */
  int64_t wall_ns;
  uint64_t wall_width_ns; /* of the pair that wall_ns is from */
  uint32_t wall_step_count;
} prof_i_catalog;

struct prof_i_extent;

/* 0 or PROF_E_NO_MEMORY. */
int prof_i_catalog_init(prof_i_catalog *catalog);
int prof_i_catalog_read(prof_trace *trace, const struct prof_i_extent *extent);
void prof_i_catalog_finish(prof_i_catalog *catalog);
void prof_i_catalog_fini(prof_i_catalog *catalog);

/* NULL: unknown. */
const prof_i_schema *prof_i_catalog_schema(const prof_i_catalog *catalog, uint32_t number);
const prof_i_pool_record *prof_i_catalog_pool(const prof_i_catalog *catalog, uint32_t number);

static inline uint32_t prof_i_catalog_known_site(const prof_i_catalog *catalog, uint32_t number) {
  return number < catalog->site_limit && catalog->site_at[number] ? number : 0;
}
static inline const prof_i_site_info *prof_i_catalog_site(const prof_i_catalog *catalog,
                                                          uint32_t number) {
  return &catalog->sites[number < catalog->site_limit ? catalog->site_at[number] : 0];
}

/* ---- processes ---- */

/* Reads a record of the kind PROCESS. 0 or PROF_E_NO_MEMORY. */
prof_i_process_record prof_i_trace_process(const prof_trace *trace, uint32_t thread);

#endif
