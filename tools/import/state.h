/* All that is known of a trace until it is written: filled by kineto.c, read by capture.c. */
#ifndef PROF_IMPORT_STATE_H
#define PROF_IMPORT_STATE_H

#include "async.h"
#include "flows.h"
#include "import.h"
#include "launches.h"
#include "names.h"
#include "pools.h"
#include "spool.h"
#include "threads.h"

enum { IMPORT_DEVICES_MAX = 64, IMPORT_NAME_BYTES = 64 };

/* One tick is one ns. The first time that comes stands in the middle of what 60 bits hold, with four years on both sides. */
#define IMPORT_ORIGIN_TICKS (UINT64_C(1) << 58)
#define IMPORT_REACH_NS (INT64_C(1) << 57)
/* A device's scope waits in the spool with its launch's number, where the launch will be: its serial is this until then. */
#define IMPORT_LAUNCH_WAITS UINT64_MAX

typedef struct import_device {
  int64_t index;
  uint64_t scope_count, record_count;
  char name[96];
} import_device;

/* A process of the trace that stands for a device. */
typedef struct import_device_row {
  int64_t pid, index;
} import_device_row;

/* An arrow's number, and what its program called it. */
typedef struct import_flow_said {
  uint64_t written, said;
} import_flow_said;

typedef struct import_state {
  import_threads threads;
  import_names *names;
  import_spool spool;
  import_launches launches;
  import_async async;
  import_flows flows;
  import_flow_said flow; /* of the last arrow that had both */
  import_pools pools;
  import_counts *counts;
  bool has_first, has_pid, is_hip;
  bool is_of_prof; /* prof wrote it */
  bool has_forward_numbers; /* operators say their forward threads: exports draw the arrows from forward to backward out of that */
  int64_t first_ns;
  uint64_t begin_ticks, end_ticks; /* of all that was taken */
  int64_t base_ns; /* of CLOCK_REALTIME, which times count from; 0: they are what they are */
  int64_t pid;
  int32_t rank, world_size; /* rank: -1 where nobody says */
  char host[IMPORT_NAME_BYTES];
  import_device devices[IMPORT_DEVICES_MAX];
  uint32_t device_count;
  import_device_row device_rows[IMPORT_DEVICES_MAX];
  uint32_t device_row_count;
  uint64_t begun_count;
} import_state;

#endif
