/* All that is known of a trace until it is written: filled by kineto.c, read by capture.c. */
#ifndef PROF_IMPORT_STATE_H
#define PROF_IMPORT_STATE_H

#include "async.h"
#include "devices.h"
#include "frames.h"
#include "graphs.h"
#include "import.h"
#include "launches.h"
#include "pools.h"
#include "record.h"
#include "spool.h"
#include "threads.h"
#include "times.h"

enum { IMPORT_NAME_BYTES = 64 };

/* A device's scope waits in the spool with its launch's number, where the launch will be: its
   serial is this until then. */
#define IMPORT_LAUNCH_WAITS UINT64_MAX
/* With the kind of a device's scope, until devices are settled: an arrow led to it from its
   launch. */
#define IMPORT_LAUNCH_DRAWN (UINT64_C(1) << 63)
/* The kind of what marks a stretch of a device's time, and is no work: beside prof_backend_kind. */
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
  /* operators say their forward threads: exports draw the arrows from forward to backward out of
     that */
  bool has_forward_numbers;
  uint64_t begin_ticks, end_ticks; /* of all that was taken */
  uint64_t order;                  /* of the event at hand, as import_entry has it */
  int64_t base_ns; /* of CLOCK_REALTIME, which times count from; 0: they are what they are */
  int64_t pid;
  uint32_t made_stream_count; /* of streams that have no number */
  uint32_t member_count;      /* kept of those beside the events */
  int32_t rank, world_size;   /* rank: -1 where nobody says */
  char host[IMPORT_NAME_BYTES];
} import_state;

/* Is it another process than the capture's? Where that is not known, one without a number is. */
static inline bool import_is_elsewhere(const import_state *state, int64_t pid) {
  if (state->has_pid) return pid != state->pid;
  return import_threads_pid_text(&state->threads, pid).bytes > 0 ||
         import_threads_process_number(&state->threads, pid) != pid;
}

#endif
