/* Exports a trace as columns through Arrow's C interfaces. arrow.c fills batches with events, and
   arrow_columns.c has the columns and their texts.

   Each exported array and schema owns its memory, and may outlive the stream and the trace. */
#ifndef PROF_EXPORT_ARROW_H
#define PROF_EXPORT_ARROW_H

#include <prof/trace.h>
#include <stdbool.h>

#include "../reader/catalog.h"
#include "arrow_abi.h"
#include "exporter.h"

/* ---- arrow_columns.c: distinct texts ---- */

/* Bytes that several arrays share. Reference-counted. */
typedef struct prof_i_arrow_block prof_i_arrow_block;

enum { PROF_I_ARROW_RECENT = 512 };

/* A text of the trace, and its index. The address of a text does not change. */
typedef struct prof_i_arrow_recent {
  prof_i_text text;
  int32_t index;
} prof_i_arrow_recent;

/* Distinct texts, as valid UTF-8. It only grows: each later batch has the texts of the earlier ones
   at the same indexes, and shares their memory. Initialize with zeros. */
typedef struct prof_i_arrow_dictionary {
  prof_i_arrow_block *offsets, *data;
  uint32_t count;
  uint32_t *slots; /* a hash table: 1 + the index; 0: free */
  uint32_t slot_count;
  char *scratch; /* a text that is made valid */
  size_t scratch_room;
  prof_i_arrow_recent recent[PROF_I_ARROW_RECENT];
} prof_i_arrow_dictionary;

/* Finds the index of a text, or adds it. PROF_OK, PROF_E_NO_MEMORY, or PROF_E_TOO_LARGE: more texts
   than an int32 index can number, or more than 2 GiB of them. */
int prof_i_arrow_dictionary_find(prof_i_arrow_dictionary *dictionary, prof_i_text text,
                                 int32_t *index_out);
/* The same for a text whose address stays valid until the dictionary ends. It usually compares the
   address only. */
int prof_i_arrow_dictionary_find_kept(prof_i_arrow_dictionary *dictionary, prof_i_text text,
                                      int32_t *index_out);
void prof_i_arrow_dictionary_fini(prof_i_arrow_dictionary *dictionary);

/* ---- arrow_columns.c: columns ---- */

/* X(ID, name, Arrow format, bytes of a value, may be null). A column of format "u" is text. */
#define PROF_I_ARROW_COLUMNS(X)                         \
  X(KIND, "kind", "c", 1, false)                        \
  X(NAME, "name", "i", 4, false)                        \
  X(CATEGORY, "category", "i", 4, false)                \
  X(START, "start_ns", "l", 8, false)                   \
  X(DURATION, "duration_ns", "l", 8, false)             \
  X(SELF, "self_ns", "l", 8, false)                     \
  X(DEPTH, "depth", "i", 4, false)                      \
  X(LEVEL, "level", "C", 1, false)                      \
  X(FLAGS, "flags", "I", 4, false)                      \
  X(PID, "pid", "l", 8, false)                          \
  X(TID, "tid", "L", 8, false)                          \
  X(THREAD, "thread", "i", 4, false)                    \
  X(THREAD_INDEX, "thread_index", "i", 4, false)        \
  X(DEVICE, "device", "i", 4, false)                    \
  X(STREAM, "stream", "L", 8, true)                     \
  X(LAUNCH_START, "launch_start_ns", "l", 8, true)      \
  X(LAUNCH_THREAD, "launch_thread_index", "i", 4, true) \
  X(ID, "id", "L", 8, true)                             \
  X(VALUE, "value", "g", 8, true)                       \
  X(FILE, "file", "i", 4, true)                         \
  X(LINE, "line", "I", 4, true)                         \
  X(ARGS, "args", "u", 4, true)                         \
  X(POOL, "pool", "I", 4, true)                         \
  X(ADDRESS, "address", "L", 8, true)                   \
  X(BYTES, "bytes", "L", 8, true)                       \
  X(REQUESTED, "requested_bytes", "L", 8, true)         \
  X(USED, "used_bytes", "l", 8, true)                   \
  X(ALLOCATED, "allocated_bytes", "l", 8, true)         \
  X(TAG, "tag", "i", 4, true)                           \
  X(CORRELATION, "correlation", "L", 8, true)

typedef enum prof_i_arrow_column {
#define PROF_I_ARROW_ID(id, name, format, bytes, is_nullable) PROF_I_ARROW_##id,
  PROF_I_ARROW_COLUMNS(PROF_I_ARROW_ID)
#undef PROF_I_ARROW_ID
      PROF_I_ARROW_COLUMN_COUNT
} prof_i_arrow_column;

/* Whether the values of the column are indexes into a dictionary. */
static inline bool prof_i_arrow_has_dictionary(prof_i_arrow_column column) {
  switch (column) {
    case PROF_I_ARROW_KIND:
    case PROF_I_ARROW_NAME:
    case PROF_I_ARROW_CATEGORY:
    case PROF_I_ARROW_THREAD:
    case PROF_I_ARROW_DEVICE:
    case PROF_I_ARROW_FILE:
    case PROF_I_ARROW_TAG:
      return true;
    default:
      return false;
  }
}

/* The values of one column of a batch. Memory that is not written reads as zero, and usually has no
   pages. */
typedef struct prof_i_arrow_values {
  void *values;      /* of a text column: offsets, one more than there are rows */
  uint8_t *validity; /* a bit for each row; NULL: none is null */
  uint64_t value_count;
} prof_i_arrow_values;

typedef struct prof_i_arrow_batch {
  uint64_t row_count;
  prof_i_arrow_values columns[PROF_I_ARROW_COLUMN_COUNT];
  char *args_text; /* the bytes of PROF_I_ARROW_ARGS; malloc() */
} prof_i_arrow_batch;

/* False: no memory. Initialize the batch with zeros before. */
bool prof_i_arrow_batch_init(prof_i_arrow_batch *batch, uint64_t room);
void prof_i_arrow_batch_fini(prof_i_arrow_batch *batch);

/* Moves the batch into an Arrow array, and leaves it empty. False: no memory; the batch is
   unchanged. */
bool prof_i_arrow_batch_export(prof_i_arrow_batch *batch,
                               prof_i_arrow_dictionary dictionaries[PROF_I_ARROW_COLUMN_COUNT],
                               struct ArrowArray *to);

/* Makes the schema: the columns, with facts about the capture as metadata. Returns a status with
   its text. */
int prof_i_arrow_schema(const prof_trace *trace, struct ArrowSchema *to);

#endif
