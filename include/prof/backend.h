/* The table of C functions that a vendor of devices fills in.

   Tier 1 is a small back end: name, probe, open, five functions for events. Tier 2 also describes
   devices and their clock, emits the records of the vendor's tracing (kernels, copies, calls), and
   reads meters. A back end is in the library, linked to the program, or in a plug-in. A plug-in is
   a shared library that exports prof_backend_entry(). PROF_BACKENDS or prof_backend_load() names
   it. This header includes nothing of a vendor.

   The rules:
   1. One thread at a time calls probe, open, close, device, clock, start, stop and drain. Another
     one, one at a time, calls metric and sample. Functions for events are called on any thread at
     any time between open and close. Calls for one event never overlap.
   2. prof holds no lock while it calls a back end. A back end that calls its vendor holds no lock
     that the vendor's callbacks take.
   3. A callback of the vendor, on any thread, may use host->now_ns, host->ticks, host->thread,
     host->wake, atomics and the back end's own pools. Nothing else.
   4. A back end writes nothing to stdout or stderr (see host->log). It never exits, aborts, sets a
     signal handler or closes a vendor's library. It consumes no error of the program, and leaves
     the current device and context unchanged.
   5. No call waits for a device. No call creates a context.
   6. An absent device is normal. probe reports it at once and without a message. It touches no
     device and creates no thread.
   7. In a forked child only fork_child is called, from the fork's handler. It may set a flag.
   8. Tables have a size, and a member beyond it is NULL. A minor version only adds members at the
     end. A major version breaks older tables. A member that is not required may be NULL: it is not
     supported.
   SPDX-License-Identifier: MIT */
#ifndef PROF_BACKEND_H
#define PROF_BACKEND_H

#include <prof/args.h>

/* ---- version and results ---- */

#define PROF_BACKEND_MAJOR 1u
#define PROF_BACKEND_MINOR 4u

/* Results of a back end's functions: name, value, text, advice to the user. */
#define PROF_BACKEND_RESULT_LIST(X)                                                              \
  X(OK, 0, "works", "")                                                                          \
  X(NOT_READY, 1, "the work is not finished yet", "")                                            \
  X(ABSENT, -1, "the vendor's library is not there",                                             \
    "install the vendor's driver or run-time library, or name its folder in LD_LIBRARY_PATH")    \
  X(NO_DEVICE, -2, "the library is there, but no device",                                        \
    "see what the vendor's own tool lists (clinfo -l, nvidia-smi -L, rocminfo); in a container " \
    "the device must be passed in")                                                              \
  X(VERSION, -3, "the library is too old, or unknown",                                           \
    "install a release that docs/reference/backends.md lists")                                   \
  X(BUSY, -4, "another tool holds what only one can have",                                       \
    "end the other profiler, or record device scopes alone")                                     \
  X(PERMISSION, -5, "not permitted",                                                             \
    "the user needs the right to use the device, or to read its library: see "                   \
    "docs/reference/backends.md")                                                                \
  X(UNSUPPORTED, -6, "not supported by this back end", "")                                       \
  X(INVALID, -7, "the vendor does not know an argument", "")                                     \
  X(NO_MEMORY, -8, "no memory", "")                                                              \
  X(CAPTURING, -9, "the stream is being captured into a graph", "")                              \
  X(FORKED, -10, "the process was forked from the one that opened it",                           \
    "begin to use the device in the child, not before the fork")                                 \
  X(VENDOR, -11, "the vendor's library says an error", "")

typedef enum prof_backend_result {
#define PROF_I_BACKEND_ENUM(name, value, text, advice) PROF_BACKEND_##name = (value),
  PROF_BACKEND_RESULT_LIST(PROF_I_BACKEND_ENUM)
#undef PROF_I_BACKEND_ENUM
} prof_backend_result;

/* ---- records ---- */

/* Kinds of records. 1u << kind is the bit of start()'s argument. The list only grows. */
typedef enum prof_backend_kind {
  PROF_BACKEND_KERNEL = 1,
  PROF_BACKEND_COPY = 2, /* prof_backend_copy */
  PROF_BACKEND_FILL = 3, /* prof_backend_copy */
  PROF_BACKEND_SYNC = 4, /* a stream waits for an event, another stream or the host */
  /* A call of the vendor's library on the host, by launch_thread. Requested at level 2 only. */
  PROF_BACKEND_CALL = 5,
  PROF_BACKEND_OTHER = 6, /* other work that takes time on a device, by its name */
  /* prof_backend_memory: the vendor's library allocates or frees memory. Requested with
     PROF_DEVICES_MEMORY. Since 1.3. */
  PROF_BACKEND_MEMORY = 7
} prof_backend_kind;

/* A bit of start()'s result, see prof_backend.start. Since 1.4. */
#define PROF_BACKEND_FROM_FIRST (1u << 31)

/* prof_backend_record.flags */
enum {
  /* start and end are not known: the record counts as lost (device_times). */
  PROF_BACKEND_NO_TIMES = 1u,
  /* start and end are host->now_ns() times, as usual for calls. */
  PROF_BACKEND_HOST_TIMES = 2u,
  PROF_BACKEND_LAUNCH_NS = 4u, /* launch is a host->now_ns() time */
  /* launch is when the back end learned of it; the work may have begun earlier. */
  PROF_BACKEND_LAUNCH_LATE = 16u,
  /* A kernel's grid counts work-items, not groups. The size of a group is not known. */
  PROF_BACKEND_GRID_ITEMS = 8u,
  PROF_BACKEND_LAUNCH_CLOCK = 32u /* launch is ns of the back end's clock. Since 1.2. */
};

/* In prof_backend_record.stream: a hardware queue that several streams share, with a number by the
   vendor. Its row has that name. */
#define PROF_BACKEND_QUEUE (UINT64_C(1) << 63)

/* The begin of all records. Of an unknown kind, prof reads only this. */
typedef struct prof_backend_record {
  uint16_t size; /* of the whole record, a multiple of 8 */
  uint16_t kind; /* prof_backend_kind */
  uint32_t flags;
  uint64_t start, end; /* ns of the back end's clock or of the host's: see flags */
  /* Time of the launch: host->ticks(), or by a flag host->now_ns() or the back end's clock. 0: not
     known. */
  uint64_t launch;
  uint64_t launch_thread; /* host->thread() of the launching thread; 0: not known */
  /* The vendor's number that a call and what it launched share. 0: none. */
  uint64_t correlation;
  /* As in WITH_GPU_PROFILER(). If not known: a constant number that is no handle. 0: the device's
     default stream. */
  uint64_t stream;
  uint32_t device; /* index */
  uint32_t name;   /* from host->intern(); 0: none */
} prof_backend_record;

/* PROF_BACKEND_KERNEL */
typedef struct prof_backend_kernel {
  prof_backend_record record;
  uint64_t queued, submitted; /* as record.start; 0: not known */
  uint32_t grid[3], block[3]; /* work-groups, and work-items in each; 0: not known */
  uint32_t shared_bytes, registers;
  uint32_t context, graph; /* the vendor's numbers; 0: none */
  uint64_t graph_node;
} prof_backend_kernel;

/* PROF_BACKEND_COPY and PROF_BACKEND_FILL */
typedef struct prof_backend_copy {
  prof_backend_record record;
  uint64_t queued, submitted;
  uint64_t bytes;
  int32_t from, to; /* PROF_DEVICE_*, PROF_DEVICE_CPU is the host; 0: not known */
  uint32_t from_index, to_index;
} prof_backend_copy;

/* Where a vendor's library allocates. */
typedef enum prof_backend_memory_place {
  PROF_BACKEND_MEMORY_DEVICE = 0,
  PROF_BACKEND_MEMORY_PINNED = 1, /* of the host, accessible to devices */
  PROF_BACKEND_MEMORY_MANAGED = 2 /* shared by host and devices */
} prof_backend_memory_place;

/* PROF_BACKEND_MEMORY: one allocation or free, at record.start by the back end's clock.
   record.device has the memory. For host memory it is the device that requested it.

   Emit them in order of time: prof adds up live memory in the order of arrival. Allocations from
   before start() are not known, and their frees are omitted. */
typedef struct prof_backend_memory {
  prof_backend_record record;
  uint64_t address, bytes;
  uint32_t place;      /* prof_backend_memory_place */
  uint32_t is_release; /* 1: freed; bytes are ignored */
} prof_backend_memory;

/* ---- meters and devices ---- */

/* Why a device is throttled: bits of the meter "throttle reasons" ("bits"). The values are NVML's;
   other back ends map theirs to these. */
typedef enum prof_backend_throttle {
  PROF_BACKEND_THROTTLE_POWER = 4,
  PROF_BACKEND_THROTTLE_HARDWARE = 8, /* heat or the power supply, not distinguished */
  PROF_BACKEND_THROTTLE_HEAT = 32,
  PROF_BACKEND_THROTTLE_HARDWARE_HEAT = 64,
  PROF_BACKEND_THROTTLE_POWER_SUPPLY = 128
} prof_backend_throttle;

/* A meter that a sampler can read. value * scale is in `unit`. */
typedef struct prof_backend_metric {
  size_t size;
  uint32_t device, id;
  uint32_t is_total; /* 1: a total that only grows, as energy. 0: a level. */
  uint32_t least_us; /* shortest useful interval: sooner, the value is the same */
  double scale;
  char name[32], unit[16]; /* "power", "W"; "memory used", "B"; "utilisation", "%"; "clock", "Hz" */
} prof_backend_metric;

/* A device's description. */
typedef struct prof_backend_device {
  size_t size;
  char name[96], arch[32], driver[32];
  uint8_t uuid[16]; /* all 0: not known */
  uint32_t pci_domain, pci_bus, pci_device, pci_function;
  uint64_t memory_bytes;     /* 0: not known, and shares of it are not known either */
  uint32_t units, clock_khz; /* compute units; highest clock */
  uint32_t is_emulated;      /* 1: no real device, and every export says so */
  uint32_t reserved;
} prof_backend_device;

/* One reading of two clocks. The device's clock was at device_ns between the other two times. Those
   are of host->now_ns(). host->ticks() around the same moment is more precise. */
typedef struct prof_backend_pair {
  size_t size;
  uint64_t host_before_ns, device_ns, host_after_ns;
  uint64_t host_before_ticks, host_after_ticks; /* 0: not read. Since 1.2. */
} prof_backend_pair;

/* ---- services of prof ---- */

/* Functions for the back end. The table is constant, and valid as long as the process exists. */
typedef struct prof_backend_host {
  size_t size;
  uint32_t major, minor; /* version of prof */
  /* Returns CLOCK_MONOTONIC in ns, the clock to which all device times are converted.
     Any thread. Signal-safe. */
  uint64_t (*now_ns)(void);
  /* Writes a line to stderr if PROF_LOG is set. Any thread. */
  void (*log)(const char *text);
  /* Returns the environment's PROF_BACKEND_<key>. NULL: not set. Any thread. */
  const char *(*option)(const char *key);

  /* ---- since 1.1 ---- */

  /* Requests a drain soon. Any thread. Signal-safe. */
  void (*wake)(void);
  /* Returns the counter that stamps scopes, the cheapest and most precise time.
     Any thread. Signal-safe. */
  uint64_t (*ticks)(void);
  /* Returns prof's number of the calling thread, for prof_backend_record.launch_thread. 0: the
     thread does not record now.
     Any thread. Signal-safe. */
  uint64_t (*thread)(void);
  /* Returns a number for a text, which is copied. Equal texts have equal numbers as long as the
     process exists. 0: no room.
     Any thread. Not in a callback. */
  uint32_t (*intern)(const char *text, size_t bytes);
  /* Takes records, one after the other, and copies them. Only inside of drain. */
  void (*emit)(const void *records, size_t bytes);

  /* ---- since 1.2 ---- */

  /* As thread(), for the thread of this process that has the kernel's number (gettid()), or had it
     last. For an unknown thread, a number that only this one has.
     Any thread. Not in a callback. */
  uint64_t (*thread_of)(uint64_t kernels_number);

  /* ---- since 1.3 ---- */

  /* Returns the kinds of records that are requested now, as bits of start(). For a vendor that
     needs them before it is initialised.
     Any thread. */
  uint32_t (*wanted)(void);
} prof_backend_host;

/* How much drain emits. */
typedef enum prof_backend_drain {
  PROF_BACKEND_POLL = 0, /* records that are available */
  PROF_BACKEND_FLUSH = 1 /* all that has ended on the devices, also from the vendor's buffers */
} prof_backend_drain;

typedef struct prof_backend_self prof_backend_self; /* the back end's own state */

/* ---- the table ---- */

/* A back end. Its functions that return an int return a prof_backend_result. */
typedef struct prof_backend {
  size_t size;
  uint32_t major, minor; /* version of prof that it is written for */
  int32_t device_type;   /* PROF_DEVICE_* of the scopes that it serves */
  uint32_t is_emulated;  /* 1: no real device of that type, and every export says so */
  const char *name;      /* "cuda", "opencl", ...; at most 31 bytes */
  const char *version;   /* of the back end */

  /* ---- required ---- */

  /* A back end may lack the functions for events. Then it only reads meters (metric, sample),
     beside another one that serves the same devices. */

  /* Could it work here? */
  int (*probe)(const prof_backend_host *host);
  /* Called once, when its devices are first needed. NOT_READY: the program does not use the devices
     yet, and prof must not be the first. Then it is called again at the next need. */
  int (*open)(const prof_backend_host *host, prof_backend_self **self_out);
  int (*event_create)(prof_backend_self *self, uint64_t stream, void **event_out);
  /* Marks the moment when all earlier work of the stream is done. If the vendor's command creates
     the event, it replaces *event. */
  int (*event_record)(prof_backend_self *self, uint64_t stream, void **event);
  /* OK: the event is past. Else NOT_READY. */
  int (*event_query)(prof_backend_self *self, void *event);
  void (*event_destroy)(prof_backend_self *self, void *event);
  /* One of the two. event_time returns ns of the back end's clock. event_elapsed returns ns from a
     to b, signed, two events of one device. Then prof takes one event as its zero. */
  int (*event_time)(prof_backend_self *self, void *event, uint64_t *ns_out);
  int (*event_elapsed)(prof_backend_self *self, void *a, void *b, int64_t *ns_out);

  /* ---- optional ---- */

  /* Called after stop and the last drain. When it returns, nothing of prof is called any more. */
  void (*close)(prof_backend_self *self);
  void (*fork_child)(prof_backend_self *self);
  /* Returns the vendor's text about this thread's last failed call, valid until the next. self is
     NULL for probe and open. */
  const char *(*last_error)(prof_backend_self *self);
  /* INVALID: it is no stream. */
  int (*stream_of)(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                   uint32_t *is_capturing_out);
  /* NO_DEVICE: index is the number of devices. */
  int (*device)(prof_backend_self *self, uint32_t index, prof_backend_device *out);
  int (*clock)(prof_backend_self *self, uint32_t device, prof_backend_pair *out);

  /* ---- optional, since 1.1 ---- */

  /* Records need start and drain, and event_time or clock for the clock of their times. */

  /* Requests records of these kinds, as bits. kinds_out gets the available ones. It gets
     PROF_BACKEND_FROM_FIRST if records exist from the program's first use of the devices. Other
     kinds may follow without a stop between. */
  int (*start)(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out);
  /* Ends the request. Earlier records can still be drained. */
  int (*stop)(prof_backend_self *self);
  /* Emits records. NOT_READY: more will follow. lost_out gets the number of records lost since the
     last call. */
  int (*drain)(prof_backend_self *self, uint32_t how, uint64_t *lost_out);
  /* NO_DEVICE: number is the number of meters. */
  int (*metric)(prof_backend_self *self, uint32_t number, prof_backend_metric *out);
  /* Reads up to 64 meters. known_out has a bit for each value that is known. */
  int (*sample)(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                int64_t *values_out, uint64_t *known_out);
  /* 1: its records cost the program nothing extra, as in a layer that the user loaded for
     recording. They are on unless forbidden. Then prof_backend_add() calls probe, and start is
     called when a recording begins. */
  uint32_t records_always;
  /* 1: only the program's use of a device, a scope on its stream, opens it. A sampler reads its
     meters if it is open. 2: the same, but a sampler opens it if in_use() says that the program has
     its library loaded. Opening has no side effects then. */
  uint32_t opens_late;
  /* The program's own events of its work on a stream (prof_device_event()). All three or none.
     own_keep is called on any thread, the others on the collector's. After the end of a recording,
     own_let_go may be called on the thread that called own_keep. */

  /* Retains the event until own_let_go. UNSUPPORTED: it will have no times. */
  int (*own_keep)(prof_backend_self *self, uint64_t stream, void *event, void **kept_out);
  /* Returns times by the back end's clock, or NOT_READY. */
  int (*own_times)(prof_backend_self *self, void *kept, uint64_t *start_ns_out,
                   uint64_t *end_ns_out);
  void (*own_let_go)(prof_backend_self *self, void *kept);

  /* ---- optional, since 1.2 ---- */

  /* Has the program loaded the vendor's library? Until then, neither records nor an operator's
     measurement open the back end or call probe, which loads the library. Exception: a measurement
     that requests meters (open_meters). It is called often, so it must be cheap and silent. */
  int (*in_use)(void);
  uint32_t records_memory; /* 1: start() accepts PROF_BACKEND_MEMORY. Since 1.3. */
  /* Returns what it lacks on this machine, and why; prof doctor shows it after "works, but". NULL:
     nothing. Called after open; the text stays valid. Since 1.4. */
  const char *(*remark)(prof_backend_self *self);
} prof_backend;

PROF_I_EXTERN_C_BEGIN

/* ---- plug-ins ---- */

/* A plug-in's only export. prof calls it with its own version, possibly on several threads at once.
   It returns the table, which stays valid as long as the process exists. NULL: it cannot serve that
   major version. */
typedef const prof_backend *(*prof_backend_entry_function)(uint32_t major, uint32_t minor);
#define PROF_BACKEND_EXPORT __attribute__((visibility("default")))
PROF_BACKEND_EXPORT const prof_backend *prof_backend_entry(uint32_t major,
                                                           uint32_t minor) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
