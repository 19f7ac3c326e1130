/* All that is known of a trace until it is written: filled by kineto.c, read by capture.c. First
   its parts, each with the functions of one file; then the whole. */
#ifndef PROF_IMPORT_STATE_H
#define PROF_IMPORT_STATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <uthash.h>

#include "import.h"
#include "record.h"
#include "threads.h"

/* ---- times, by kineto.c ---- */

/* Times as the trace has them, and which of them are possible. That is known at the end of the
   trace. Until then a time is its ns with the sign bit inverted, so that times compare as unsigned
   numbers. */

enum { IMPORT_TIME_BINS = 256, IMPORT_OUTLIER_BYTES = 64 };

/* What began in a stretch of 2^56 ns, 2.3 years. */
typedef struct import_time_bin {
  uint64_t count, first;
  char name[IMPORT_OUTLIER_BYTES]; /* of the first */
} import_time_bin;

typedef struct import_times {
  import_time_bin time_bins[IMPORT_TIME_BINS];
  uint64_t low, high; /* the times that are taken */
  uint64_t shift;     /* to ticks */
} import_times;

static inline bool import_times_has(const import_times *times, uint64_t time) {
  return time >= times->low && time <= times->high;
}
/* The longest duration of a scope that begins at this time. A later end has no number. */
static inline uint64_t import_times_left(uint64_t time) { return UINT64_MAX - time; }
static inline uint64_t import_times_ticks(const import_times *times, uint64_t time) {
  return time - times->shift;
}
static inline int64_t import_times_ns(uint64_t time) { return (int64_t)(time ^ UINT64_C(1) << 63); }

/* ---- resolve.c ---- */

/* Launches: calls on the host by their correlation number. */

typedef struct import_launch {
  int64_t correlation;
  int64_t pid;     /* of its process */
  uint64_t start;  /* ticks */
  uint32_t serial; /* of the thread */
  uint32_t order;
} import_launch;

typedef struct import_launches {
  import_launch *all;
  size_t count, room;
} import_launches;

void import_launches_add(import_launches *launches, int64_t correlation, int64_t pid,
                         uint64_t start, uint32_t serial);

/* ---- devices.c ---- */

/* Processes of the trace: which of them stand for a device, which process a device's work belongs
   to, and what the capture calls the device. */

enum { IMPORT_DEVICES_MAX = 1024, IMPORT_DEVICE_NAME_BYTES = 96 };

typedef struct import_process {
  int64_t pid;
  UT_hash_handle hh;
  bool is_device;  /* a device's process, by its name or by launched work */
  bool has_number; /* its counters are a device's: it has work, or a label says "GPU N" */
  bool has_work;   /* has work of a device without a known number */
  bool is_xla;     /* called "/device:GPU:0": import_row_kind_of() knows its rows */
  bool is_mixed;   /* called "Device 0": it also has rows of the host */
  bool is_summary; /* in Ascend's traces its rows summarise other rows */
  bool is_unknown; /* named for a device in an unknown form */
  bool has_stream_rows;
  uint64_t early_count; /* scopes taken as the host's before the name was known */
  int64_t number;       /* of the device, as the trace has it */
  bool has_owner;
  int64_t owner;                       /* the process that launches what runs there */
  char name[IMPORT_DEVICE_NAME_BYTES]; /* of a device's process */
} import_process;

typedef struct import_device {
  int64_t owner, number; /* one number is another device in another process */
  int32_t type, index;   /* as the capture has it */
  uint64_t scope_count, record_count;
  char name[IMPORT_DEVICE_NAME_BYTES];
} import_device;

/* What deviceProperties says. */
typedef struct import_device_name {
  int64_t number;
  char name[IMPORT_DEVICE_NAME_BYTES];
} import_device_name;

typedef struct import_devices {
  import_process *processes;
  import_process *last; /* the one asked for last */
  import_device *all;
  size_t count, room;
  import_device_name *names;
  size_t name_count, name_room;
  bool is_hip;
  bool is_npu;     /* a process is called as Ascend's devices are */
  bool is_ascend;  /* a process is called "Ascend Hardware" */
  bool is_of_prof; /* processes of devices have prof's own numbers */
  bool is_shared;  /* a number means the same device in all processes */
} import_devices;

/* Creates it if there is none. */
import_process *import_devices_process(import_devices *devices, int64_t pid);

/* Reads the device from a process's name or label. False: it names none. */
bool import_devices_call(import_devices *devices, int64_t pid, import_text name, bool is_label);

/* The same for a text in place of the process's number, for example "gpu1". */
void import_devices_call_text(import_devices *devices, int64_t pid, import_text text);

/* Its process has a device's work with that number, which may be IMPORT_DEVICE_UNSAID. */
void import_devices_note(import_devices *devices, int64_t pid, int64_t number);

void import_devices_name(import_devices *devices, int64_t number, import_text name);

/* True: its counters are a device's. */
static inline bool import_devices_has_counters(const import_process *process) {
  return process->is_device || process->has_number || process->has_work;
}

/* True: its rows summarise a device's work, which other rows have. */
static inline bool import_devices_is_summary(const import_devices *devices,
                                             const import_process *process) {
  return process->is_summary && devices->is_ascend;
}

/* The device's index in `all`, which this may move. IMPORT_DEVICES_MAX: there is no room. Call it
   at the end of the trace. */
uint32_t import_devices_find(import_devices *devices, int64_t pid, int64_t number);

/* The type of device of prof's memory events and streams, if nothing else says it. */
int32_t import_devices_type(const import_devices *devices);

void import_devices_fini(import_devices *devices);

/* ---- frames.c ---- */

/* Frames of call stacks. The member stackFrames beside the events has them by number. An event
   names the innermost of its own frames (sf). */

typedef struct import_frame import_frame;

typedef struct import_frames {
  import_frame *all;
  size_t bytes; /* of all frames */
  char *text;   /* the stack that was put together last */
  size_t count, room;
  bool is_used;
  uint32_t *lines; /* those that have frames, in order */
  size_t line_count, line_room;
} import_frames;

/* The event has the frame's number as id, its name and category, and as sf the number of the frame
   around it. */
void import_frames_add(import_frames *frames, const import_event *event);

/* "CATEGORY: NAME;...", from the innermost frame on, until the next call. *is_cut_out: the
   stack has more frames. Empty: that frame is not known. line: of the event. A line without frames
   has those of the line before it. */
import_text import_frames_stack_text(import_frames *frames, uint32_t line, import_text number,
                                     bool *is_cut_out);

void import_frames_fini(import_frames *frames);

/* ---- convert.c ---- */

/* Names of graphs: a counter's process, id and value become part of its name, and two counters
   never have one name on one process. */

typedef struct import_graph_name {
  uint64_t key; /* hash of the name and of the place where it must be unique */
  UT_hash_handle hh;
  uint64_t counter; /* hash of the counter's identity */
} import_graph_name;

typedef struct import_graphs {
  import_graph_name *all;
} import_graphs;

void import_graphs_fini(import_graphs *graphs);

/* ---- memory.c ---- */

/* Memory: one pool for each device that [memory] events tell of. A pool's counter says the order of
   its events, so it is made at the end of the trace. */

enum { IMPORT_POOLS_MAX = 64 };

typedef struct import_pool {
  bool is_device;
  int32_t index;
  uint64_t used_before; /* as the first event says */
  bool is_known;        /* used_before is */
  bool has_reserved;    /* something has said it */
  /* bytes, before the first event and now, in the file's order */
  uint64_t reserved_before, reserved;
  prof_i_pool_state state;
} import_pool;

typedef struct import_pool_event {
  uint64_t ticks;
  /* of a piece; negative: it was freed; 0: no piece, but a change of what is reserved, or a failed
     allocation */
  int64_t bytes;
  int64_t reserved;     /* after it, if it is no piece */
  uint32_t pool, order; /* pool 0: it is not taken */
  int64_t total;        /* allocated after it, as the trace says; negative: it does not */
} import_pool_event;

typedef struct import_pools {
  import_pool pools[IMPORT_POOLS_MAX];
  uint32_t count;
  import_pool_event *pool_events;
  size_t pool_event_count, pool_event_room;
  uint64_t *counters; /* by order */
} import_pools;

/* Times become ticks. Events outside of the times that are taken are dropped. */
void import_pools_resolve_times(import_pools *pools, const import_times *times);
void import_pools_finish(import_pools *pools, uint64_t start_ticks);
static inline uint64_t import_pools_counter(const import_pools *pools, uint64_t order) {
  return pools->counters[order];
}

/* Makes the pool's record for that offset of the capture: its state is aligned in the file. */
void import_pools_record(const import_pools *pools, uint32_t number, int32_t device_type,
                         uint64_t at, import_record *record);

void import_pools_fini(import_pools *pools);

/* ---- the whole ---- */

enum { IMPORT_NAME_BYTES = 64 };

/* The serial of a launch in the record of a device's scope, until import_resolve_launches(). Until
   then the record has the launch's number. */
#define IMPORT_LAUNCH_WAITS UINT64_MAX
/* A bit of the kind of a device's scope, until import_resolve_times(): an arrow leads to it from
   its launch. */
#define IMPORT_LAUNCH_DRAWN (UINT64_C(1) << 63)
/* Kinds beside prof_backend_kind. SIDE: it marks a stretch of a device's time, and is no work. */
enum { IMPORT_KIND_NONE = -1, IMPORT_KIND_SIDE = 0 };

typedef struct import_state {
  import_times times;
  import_threads threads;
  import_names *names;
  import_spool spool;
  import_launches launches;
  import_deferred deferred;
  import_devices devices;
  import_frames frames;
  import_graphs graphs;
  import_pools pools;
  import_counts *counts;
  const import_result *result;
  bool has_pid;
  /* Operators name their forward threads. Exports draw the arrows from forward to backward by
     that. */
  bool has_forward_numbers;
  uint64_t begin_ticks, end_ticks; /* of all that was taken */
  uint64_t order;                  /* of the event at hand, as import_entry has it */
  int64_t base_ns; /* of CLOCK_REALTIME: times count from it; 0: the trace does not say it */
  int64_t pid;
  uint64_t open_below_count;  /* open scopes below 64 others, of which nothing else is known */
  uint32_t made_stream_count; /* of streams that have no number */
  uint32_t member_count;      /* kept members beside the events */
  int32_t rank, world_size;   /* rank -1: not known */
  char host[IMPORT_NAME_BYTES];
} import_state;

/* True: it is not the capture's process. If that one is not known: it has no number of its own. */
static inline bool import_is_elsewhere(const import_state *state, int64_t pid) {
  if (state->has_pid) return pid != state->pid;
  return import_threads_pid_text(&state->threads, pid).bytes > 0 ||
         import_threads_process_number(&state->threads, pid) != pid;
}

/* ---- rows, by devices.c ---- */

/* Classifies a row of a device's process: the device's work, derived annotations, or the host's
   scopes. */

typedef enum import_row_kind { IMPORT_ROW_HOST, IMPORT_ROW_SIDE, IMPORT_ROW_WORK } import_row_kind;

/* category: the event's, or empty. Call it when all names have been read. */
import_row_kind import_row_kind_of(const import_state *state, const import_process *process,
                                   import_thread_id row, import_text category);

/* "Stream 7", "Stream #14(Compute)": 7, 14. is_whole_out: nothing follows. */
bool import_row_read_stream(import_text name, int64_t *number_out, bool *is_whole_out);

/* The row's stream number. A row with a text for a number, or a summary, gets a new number. */
int64_t import_row_stream(import_state *state, const import_process *process, import_thread_id row);

#endif
