/* What rpd.c and rpd_ends.c share. rpd.c writes the rows of events, rpd_ends.c all else: it opens
   the database, and writes its metadata. */
#ifndef PROF_EXPORT_RPD_WRITER_H
#define PROF_EXPORT_RPD_WRITER_H

#include "database.h"

/* X(name of the statement, table with its columns, number of columns) */
#define PROF_I_RPD_INSERTS(X)                                                                      \
  X(metadata, "rocpd_metadata (tag, value)", 2)                                                    \
  X(strings, "rocpd_string (id, string)", 2)                                                       \
  X(ustrings, "rocpd_ustring (id, string)", 2)                                                     \
  X(apis, "rocpd_api (id, pid, tid, start, \"end\", apiName_id, category_id, domain_id, args_id)", \
    9)                                                                                             \
  X(ops, "rocpd_op (id, gpuId, queueId, sequenceId, start, \"end\", description_id, opType_id)",   \
    8)                                                                                             \
  X(api_ops, "rocpd_api_ops (api_id, op_id)", 2)                                                   \
  X(kernels,                                                                                       \
    "rocpd_kernelapi (api_ptr_id, stream, gridX, gridY, gridZ, workgroupX, workgroupY,"            \
    " workgroupZ, groupSegmentSize, privateSegmentSize, kernelName_id)",                           \
    11)                                                                                            \
  X(copies,                                                                                        \
    "rocpd_copyapi (api_ptr_id, stream, size, width, height, kind, dst, src, dstDevice,"           \
    " srcDevice, sync, pinned)",                                                                   \
    12)                                                                                            \
  X(monitors, "rocpd_monitor (deviceType, deviceId, monitorType, start, \"end\", value)", 6)

/* The numbers of the strings of a call site's name and category. 0: none yet. */
typedef struct prof_i_rpd_site {
  uint32_t name, category;
} prof_i_rpd_site;

/* Facts about the work of a launch that the row of its call needs. Kept until both rows are
   known. */
typedef struct prof_i_rpd_work {
  uint64_t bytes; /* of a copy; of a kernel its shared memory */
  uint64_t stream;
  uint32_t grid[3], block[3];
  uint32_t record; /* prof_backend_kind; 0: nothing */
  uint32_t name, copy_kind, device;
} prof_i_rpd_work;

/* A device. A gpuId of a merged file is of one capture. */
typedef struct prof_i_rpd_gpu {
  prof_device device; /* type 0: free */
  uint64_t pid;       /* of its rows, for prof import */
  uint32_t capture;
} prof_i_rpd_gpu;

typedef struct prof_i_rpd_inserts {
#define MEMBER(name, columns, count) prof_i_insert *name;
  PROF_I_RPD_INSERTS(MEMBER)
#undef MEMBER
} prof_i_rpd_inserts;

/* Numbers of rows of the captures before. The first one has 0. */
typedef struct prof_i_rpd_counts {
  uint32_t strings, ustrings;
  uint64_t arguments, apis, ops;
} prof_i_rpd_counts;

/* What the captures of a merged file share. */
typedef struct prof_i_rpd_shared {
  prof_i_sqlite *database;
  prof_i_rpd_inserts inserts;
  prof_i_rpd_counts counts;
  prof_i_rpd_gpu *gpus;
  uint32_t gpu_room;
  prof_i_merged_texts texts;
  uint64_t lost_count[PROF_LOSS_COUNT];
} prof_i_rpd_shared;

typedef struct prof_i_rpd_writer {
  prof_i_rpd_shared *shared; /* NULL: the capture is alone in the file */
  prof_i_rpd_counts before;
  prof_i_sqlite *database;
  prof_i_rpd_inserts inserts;
  prof_i_event_text texts;
  prof_i_work_links links;
  prof_i_rpd_work *works; /* of each launch */
  prof_i_name_ids string_ids, ustring_ids;
  prof_i_rpd_site *sites;
  prof_i_rpd_gpu *gpus; /* by gpuId */
  uint32_t gpu_room;
  uint32_t gpu; /* gpuId of the stream that is written */
  uint64_t stream;
  uint32_t empty, marker, empty_argument; /* strings that most rows have */
  uint64_t argument_count, api_id, op_id;
  prof_i_event_counts counts;
} prof_i_rpd_writer;

static inline int prof_i_rpd_writer_status(const prof_i_rpd_writer *w) {
  const int status = prof_i_sqlite_status(w->database);
  return status == PROF_OK ? w->texts.status : status;
}

/* rpd.c: the number of a text, which must stay valid; of a text of arguments. 0: no memory. */
uint32_t prof_i_rpd_string_id(prof_i_rpd_writer *w, prof_i_text text);
uint32_t prof_i_rpd_ustring_id(prof_i_rpd_writer *w, prof_i_text text);

/* rpd.c: connects calls with their work. */
int prof_i_rpd_put_links(prof_i_export *run);

/* rpd_ends.c: callbacks of the exporter. */
int prof_i_rpd_export_begin(prof_i_export *run);
int prof_i_rpd_export_end(prof_i_export *run);
void prof_i_rpd_export_destroy(prof_i_export *run);
void prof_i_rpd_export_destroy_shared(void *user);

#endif
