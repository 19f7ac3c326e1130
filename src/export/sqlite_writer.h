/* What sqlite.c and sqlite_ends.c share. The former writes the rows of events. The latter opens the
   database, and writes the facts about captures. */
#ifndef PROF_EXPORT_SQLITE_WRITER_H
#define PROF_EXPORT_SQLITE_WRITER_H

#include "database.h"

enum {
  PROF_I_SQLITE_VERSION = 1,
  /* In the column flags, beside the PROF_EVENT_* flags. */
  PROF_I_SQLITE_UNFINISHED = 256
};

/* X(name of the statement, table with its columns, number of columns) */
#define PROF_I_SQLITE_INSERTS(X)                                                                   \
  X(metadata, "prof_metadata (key, value)", 2)                                                     \
  X(losses, "prof_losses (reason, count)", 2)                                                      \
  X(marks, "prof_marks (at_ns, kind, text)", 3)                                                    \
  X(devices, "prof_devices (id, type, number, name, row_pid)", 5)                                  \
  X(threads, "prof_threads (id, pid, tid, name, device_id, row_pid, row_tid)", 7)                  \
  X(names, "prof_names (id, name, category, level, file, line, place)", 7)                         \
  X(scopes,                                                                                        \
    "prof_scopes (id, thread_id, name_id, start_ns, duration_ns, self_ns, depth, flags, args)", 9) \
  X(kernels,                                                                                       \
    "prof_kernels (id, thread_id, name_id, start_ns, duration_ns, record, flags,"                  \
    " launch_thread_id, launch_ns, args)",                                                         \
    10)                                                                                            \
  X(launches, "prof_launches (kernel_id, scope_id)", 2)                                            \
  X(steps, "prof_steps (thread_id, number, start_ns, duration_ns)", 4)                             \
  X(instants, "prof_instants (thread_id, name_id, at_ns, args)", 4)                                \
  X(counters, "prof_counters (thread_id, device_id, name_id, at_ns, value)", 5)                    \
  X(arrow_ends, "prof_arrow_ends (thread_id, name_id, at_ns, arrow, is_end)", 5)                   \
  X(pools, "prof_pools (id, name, device_id, used_before_bytes, allocated_before_bytes)", 5)       \
  X(memory,                                                                                        \
    "prof_memory (thread_id, pool_id, at_ns, verb, address, bytes, requested_bytes,"               \
    " used_bytes, allocated_bytes, tag)",                                                          \
    10)

typedef struct prof_i_sqlite_inserts {
#define MEMBER(name, columns, count) prof_i_insert *name;
  PROF_I_SQLITE_INSERTS(MEMBER)
#undef MEMBER
  prof_i_insert *captures; /* of a merged file */
} prof_i_sqlite_inserts;

/* Numbers of rows of the captures before. The first one has 0. */
typedef struct prof_i_sqlite_counts {
  uint64_t threads, names, devices, pools, scopes, kernels;
} prof_i_sqlite_counts;

/* What the captures of a merged file share. */
typedef struct prof_i_sqlite_shared {
  prof_i_sqlite *database;
  prof_i_sqlite_inserts inserts;
  prof_i_sqlite_counts counts;
  prof_i_merged_texts texts;
  uint64_t event_count, bad_count, lost_count[PROF_LOSS_COUNT];
} prof_i_sqlite_shared;

typedef struct prof_i_sqlite_writer {
  prof_i_sqlite *database;
  prof_i_sqlite_inserts inserts;
  prof_i_sqlite_shared *shared; /* NULL: the capture is alone in the file */
  prof_i_sqlite_counts before;
  prof_i_event_text texts;
  prof_i_work_links links;
  prof_i_name_ids name_ids;
  uint32_t *site_names; /* by site: the number of its own name; 0: not numbered */
  uint32_t site_count;
  prof_device *known_devices; /* by number less 1 */
  uint32_t device_count, device_room;
  uint64_t scope_id, kernel_id;
  prof_i_event_counts counts;
} prof_i_sqlite_writer;

/* PROF_OK, or the first failure of the texts or the database. */
static inline int prof_i_sqlite_writer_status(const prof_i_sqlite_writer *w) {
  const int status = prof_i_sqlite_status(w->database);
  return status == PROF_OK ? w->texts.status : status;
}

static inline void prof_i_sqlite_put_clean(prof_i_sqlite_writer *w, prof_i_insert *row,
                                           prof_i_text text) {
  prof_i_insert_put_text(row, prof_i_event_text_clean(&w->texts, text));
}

/* sqlite.c: puts the number of the device, or NULL for the host. False: no memory. */
bool prof_i_sqlite_put_device(prof_i_export *run, prof_i_insert *row, prof_device device);

/* sqlite_ends.c: callbacks of the exporter. */
int prof_i_sqlite_export_begin(prof_i_export *run);
int prof_i_sqlite_export_end(prof_i_export *run);
void prof_i_sqlite_export_destroy(prof_i_export *run);
void prof_i_sqlite_export_destroy_shared(void *user);

#endif
