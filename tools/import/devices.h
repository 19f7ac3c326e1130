/* Processes of the trace: which of them stand for a device, whose work a device's is, and what
   the capture calls that device. */
#ifndef PROF_IMPORT_DEVICES_H
#define PROF_IMPORT_DEVICES_H

#include <uthash.h>

#include "event.h"
#include "threads.h"

enum { IMPORT_DEVICES_MAX = 1024, IMPORT_DEVICE_NAME_BYTES = 96 };

typedef struct import_process {
  int64_t pid;
  UT_hash_handle hh;
  bool is_device;  /* a device's process, by its name or by launched work */
  bool has_number; /* its counters are a device's: it has work, or a label says "GPU N" */
  bool has_work;   /* has work of a device without a known number */
  bool is_xla;     /* called "/device:GPU:0": row_kind.c knows its rows */
  bool is_mixed;   /* called "Device 0": it also has rows of the host (row_kind.c) */
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

/* It is made where there is none. */
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

/* Its place in `all`, which it may move; IMPORT_DEVICES_MAX: there is none left. Once all have
   come. */
uint32_t import_devices_find(import_devices *devices, int64_t pid, int64_t number);

/* The type of device that prof's memory events and streams have where nothing else says it. */
int32_t import_devices_type(const import_devices *devices);

void import_devices_fini(import_devices *devices);

#endif
