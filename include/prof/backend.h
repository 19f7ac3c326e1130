/* What a vendor of devices fills in: one table of C functions. Tier 1 is an afternoon of work:
   name, probe, open, five calls for events. Tier 2 says more about its devices and their clock,
   hands over what the vendor's own tracing records (kernels, copies, calls), and reads its meters.
   A back end stands in the library, or in a plug-in: a shared library that exports
   prof_backend_entry(), and is named by PROF_BACKENDS or prof_backend_load(). Includes nothing of a
   vendor; compiles alone as C11 and C++17. SPDX-License-Identifier: MIT

   The rules:
   1. probe, open, close, device, clock, start, stop, drain, metric and sample come from one thread
      at a time, metric and sample from another one than the rest. Calls for events come from any
      thread at any time between open and close; those for one event from one at a time.
   2. prof holds no lock while it calls a back end. A back end holds none while it calls its vendor
   that a callback of the vendor's takes.
   3. A callback of the vendor's, on whatever thread, may use host->now_ns, host->ticks,
   host->thread, host->wake, atomics and the back end's own pools: nothing else.
   4. Nothing is written to stdout or stderr (host->log), nothing exits or aborts, no signal handler
      is set, no vendor's library is closed, no error of the program's is taken from it, the current
      device and context are what they were.
   5. No call waits for a device. No call creates a context.
   6. To be absent is normal: probe says it at once and in silence, touches no device, creates no
   thread.
   7. In a forked child fork_child is called, where there is one, from the fork's handler: it may
   store a flag. Nothing else is called there any more.
   8. Tables are sized: a member that lies beyond `size` is NULL. Members are only ever added at the
      end (minor); major changes when an old table could not be called any more. NULL where a member
      is not said to be needed: it is not supported. */
#ifndef PROF_BACKEND_H
#define PROF_BACKEND_H

#include <prof/args.h>

#define PROF_BACKEND_MAJOR 1u
#define PROF_BACKEND_MINOR 4u

/* What a call of a back end returns: name, value, text, what the user can do. */
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
  X(INVALID, -7, "an argument is none that the vendor knows", "")                                \
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

/* Kinds of records, which are bits of what start() is asked for, too: 1u << kind. Only ever added
   to. */
typedef enum prof_backend_kind {
  PROF_BACKEND_KERNEL = 1,
  PROF_BACKEND_COPY = 2, /* prof_backend_copy */
  PROF_BACKEND_FILL = 3, /* the same */
  PROF_BACKEND_SYNC = 4, /* a stream waits: for an event, another stream, the host */
  /* a call of the vendor's library, on the host, by launch_thread. Asked for at level 2 alone */
  PROF_BACKEND_CALL = 5,
  PROF_BACKEND_OTHER = 6, /* anything else that takes time on a device, by its name */
  /* prof_backend_memory: the vendor's library hands memory out, or takes it back. Asked for where
     PROF_DEVICES_MEMORY is. From 1.3 on */
  PROF_BACKEND_MEMORY = 7
} prof_backend_kind;

/* Of what start() gives back. From 1.4 on. */
#define PROF_BACKEND_FROM_FIRST (1u << 31)

enum { /* prof_backend_record.flags */
       /* start and end are not known: the record is counted as lost (device_times) */
       PROF_BACKEND_NO_TIMES = 1u,
       /* start and end are host->now_ns()'s, as those of calls mostly are */
       PROF_BACKEND_HOST_TIMES = 2u,
       PROF_BACKEND_LAUNCH_NS = 4u, /* launch is host->now_ns()'s */
       PROF_BACKEND_LAUNCH_LATE =
           16u, /* launch is when it was heard of: it may have begun before */
       /* a kernel's grid counts work-items, not groups: how large those are is not known */
       PROF_BACKEND_GRID_ITEMS = 8u,
       PROF_BACKEND_LAUNCH_CLOCK = 32u /* launch is ns of the back end's clock. From 1.2 on */
};

/* What all records begin with. Of a kind that prof does not know this alone is read. */
/* In prof_backend_record.stream: it is a queue of the hardware's, which several streams share, by a
   number of the vendor's. Its row is called so. */
#define PROF_BACKEND_QUEUE (UINT64_C(1) << 63)

typedef struct prof_backend_record {
  uint16_t size; /* of the whole record; a multiple of 8 */
  uint16_t kind; /* prof_backend_kind */
  uint32_t flags;
  uint64_t start, end; /* ns of the back end's clock, or of the host's: see flags */
  /* host->ticks() when it was launched, or, by a flag, host->now_ns() or the back end's clock; 0:
     not known */
  uint64_t launch;
  uint64_t launch_thread; /* host->thread() of the thread that launched it; 0: not known */
  /* the vendor's number that a call and what it launched have in common; 0: none */
  uint64_t correlation;
  /* as WITH_GPU_PROFILER has it, or, where that is not known, a number that is no handle's, always
     the same; 0: the device's own */
  uint64_t stream;
  uint32_t device; /* index */
  uint32_t name;   /* by host->intern(); 0: none */
} prof_backend_record;

typedef struct prof_backend_kernel {
  prof_backend_record record;
  uint64_t queued, submitted; /* as start; 0: not known */
  uint32_t grid[3], block[3]; /* work-groups, and work-items in each; 0: not known */
  uint32_t shared_bytes, registers;
  uint32_t context, graph; /* the vendor's numbers; 0: none */
  uint64_t graph_node;
} prof_backend_kernel;

typedef struct prof_backend_copy {
  prof_backend_record record;
  uint64_t queued, submitted;
  uint64_t bytes;
  int32_t from, to; /* prof_device_type: PROF_DEVICE_CPU is the host; 0: not known */
  uint32_t from_index, to_index;
} prof_backend_copy;

typedef enum prof_backend_memory_place {
  PROF_BACKEND_MEMORY_DEVICE = 0,
  PROF_BACKEND_MEMORY_PINNED = 1 /* the host's, for devices to reach */,
  PROF_BACKEND_MEMORY_MANAGED = 2 /* both sides' */
} prof_backend_memory_place;

/* One piece, at record.start, which is of the back end's clock; record.device: whose, or, of the
   host's, who asked. Best in the order of their times: prof adds up what is live, and one that is
   told late has its place where it was told. What was handed out before start() is not known, and
   its release is left out. */
typedef struct prof_backend_memory {
  prof_backend_record record;
  uint64_t address, bytes;
  uint32_t place;      /* prof_backend_memory_place */
  uint32_t is_release; /* 1: it was given back, of whatever bytes */
} prof_backend_memory;

/* What holds a device's clock down, as bits of the meter "throttle reasons" ("bits"): NVML's, which
   other vendors' reasons are brought to. */
typedef enum prof_backend_throttle {
  PROF_BACKEND_THROTTLE_POWER = 4,
  PROF_BACKEND_THROTTLE_HARDWARE = 8, /* heat, or the power supply: it does not say */
  PROF_BACKEND_THROTTLE_HEAT = 32,
  PROF_BACKEND_THROTTLE_HARDWARE_HEAT = 64,
  PROF_BACKEND_THROTTLE_POWER_SUPPLY = 128
} prof_backend_throttle;

/* What a sampler can read: value * scale is in that unit. */
typedef struct prof_backend_metric {
  size_t size;
  uint32_t device, id;
  uint32_t is_total; /* 1: it only grows, as energy does; 0: a level */
  uint32_t least_us; /* asked sooner than that it says the same again */
  double scale;
  char name[32], unit[16]; /* "power", "W"; "memory used", "B"; "utilisation", "%"; "clock", "Hz" */
} prof_backend_metric;

typedef struct prof_backend_device {
  size_t size;
  char name[96], arch[32], driver[32];
  uint8_t uuid[16]; /* all 0: not known */
  uint32_t pci_domain, pci_bus, pci_device, pci_function;
  uint64_t memory_bytes;     /* 0: not known, and then no share of it either */
  uint32_t units, clock_khz; /* compute units; highest clock */
  uint32_t is_emulated;      /* 1: this is no device: every export says so */
  uint32_t reserved;
} prof_backend_device;

/* One look at two clocks: the device's stood at device_ns at some moment between the other two,
   which are host->now_ns()'s. Nearer than these are host->ticks(), around the same moment. */
typedef struct prof_backend_pair {
  size_t size;
  uint64_t host_before_ns, device_ns, host_after_ns;
  uint64_t host_before_ticks, host_after_ticks; /* 0: not looked at. From 1.2 on */
} prof_backend_pair;

/* prof's services. Stays as it is, and is there as long as the process is. */
typedef struct prof_backend_host {
  size_t size;
  uint32_t major, minor; /* of prof */
  /* the host's clock, which all device times are brought to: CLOCK_MONOTONIC. Any thread,
     signal-safe */
  uint64_t (*now_ns)(void);
  /* a line that is shown on stderr where PROF_LOG is set. Any thread */
  void (*log)(const char *text);
  /* PROF_BACKEND_<key> of the environment; NULL: not said. Any thread */
  const char *(*option)(const char *key);
  /* From 1.1 on. */
  /* asks for a drain soon. Any thread, signal-safe */
  void (*wake)(void);
  /* the counter that scopes are stamped by: of all that tells a moment, the cheapest and most
     exact. Any thread, signal-safe */
  uint64_t (*ticks)(void);
  /* prof's number of the calling thread, for prof_backend_record.launch_thread; 0: nothing is
     recorded on it now. Any thread, signal-safe */
  uint64_t (*thread)(void);
  /* a number for a text, which is copied: the same for the same text, as long as the process is; 0:
     no room. Any thread, no callback */
  uint32_t (*intern)(const char *text, size_t bytes);
  /* records, one behind the other, which are copied. From inside of drain alone */
  void (*emit)(const void *records, size_t bytes);
  /* From 1.2 on. */
  /* as thread(), of the thread of this process that has, or was the last to have, that number of
     the kernel's (gettid()); of one that prof has not met, a number that stands for it alone. Any
     thread, no callback */
  uint64_t (*thread_of)(uint64_t kernels_number);
  /* From 1.3 on. */
  /* which kinds of records are asked for now, by bits, as start() is: for a vendor that must be
     told before it begins. Any thread */
  uint32_t (*wanted)(void);
} prof_backend_host;

/* How far drain goes. */
typedef enum prof_backend_drain {
  PROF_BACKEND_POLL = 0, /* what is there already */
  PROF_BACKEND_FLUSH = 1 /* what has ended on the devices, also out of the vendor's buffers */
} prof_backend_drain;

typedef struct prof_backend_self prof_backend_self; /* the back end's own state */

/* Where a call returns an int, it is a prof_backend_result. */
typedef struct prof_backend {
  size_t size;
  uint32_t major, minor; /* that it was written for */
  int32_t device_type;   /* PROF_DEVICE_*: of the scopes that it serves */
  uint32_t is_emulated;  /* 1: no device of that type is behind it: every export says so */
  const char *name;      /* "cuda", "opencl", ...: at most 31 bytes */
  const char *version;   /* its own */

  /* Needed; those for events, unless it has none of them: it then reads meters alone (metric,
     sample), beside another one that serves the same devices. */
  /* could it work here? */
  int (*probe)(const prof_backend_host *host);
  /* once, when its devices are first needed. NOT_READY: the program does not use them so far, and
     it is not for prof to begin: again, when they are next needed */
  int (*open)(const prof_backend_host *host, prof_backend_self **self_out);
  int (*event_create)(prof_backend_self *self, uint64_t stream, void **event_out);
  /* a moment of the stream's: when all is done that was put there before. A vendor whose command
     makes the event puts another one in its place */
  int (*event_record)(prof_backend_self *self, uint64_t stream, void **event);
  /* OK: it is past; NOT_READY */
  int (*event_query)(prof_backend_self *self, void *event);
  void (*event_destroy)(prof_backend_self *self, void *event);
  /* One of the two. time: in ns of the back end's clock. elapsed: from a to b, of one device,
     signed; prof takes one of them for its zero. */
  int (*event_time)(prof_backend_self *self, void *event, uint64_t *ns_out);
  int (*event_elapsed)(prof_backend_self *self, void *a, void *b, int64_t *ns_out);

  /* May be NULL. */
  /* after stop and the last drain: nothing of prof's is called any more when it returns */
  void (*close)(prof_backend_self *self);
  void (*fork_child)(prof_backend_self *self);
  /* of this thread's last call that failed: the vendor's own words; valid until its next. self:
     NULL for probe and open */
  const char *(*last_error)(prof_backend_self *self);
  /* INVALID: it is none */
  int (*stream_of)(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                   uint32_t *is_capturing_out);
  /* NO_DEVICE: so many there are */
  int (*device)(prof_backend_self *self, uint32_t index, prof_backend_device *out);
  int (*clock)(prof_backend_self *self, uint32_t device, prof_backend_pair *out);

  /* May be NULL; from 1.1 on. Records: start and drain, and event_time or clock, which tell the
     clock that their times are of. */
  /* records of these kinds, by bits, from now on; which of them it can, and PROF_BACKEND_FROM_FIRST
     where it has them since before the program began with the devices. Again, with others, without
     a stop between */
  int (*start)(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out);
  /* no more of them; what has been recorded is still drained */
  int (*stop)(prof_backend_self *self);
  /* emits what there is: NOT_READY: more is on its way. How many records were lost since the last
     time */
  int (*drain)(prof_backend_self *self, uint32_t how, uint64_t *lost_out);
  /* NO_DEVICE: so many there are */
  int (*metric)(prof_backend_self *self, uint32_t number, prof_backend_metric *out);
  /* known: a bit for each, 64 at most */
  int (*sample)(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                int64_t *values_out, uint64_t *known_out);
  /* 1: its records cost the program nothing that it does not pay already, as those of a layer that
     somebody put there to record: they are wanted unless they are forbidden. probe is then called
     by prof_backend_add(), and start as soon as something is recorded */
  uint32_t records_always;
  /* 1: nothing but the program's own use of a device, a scope on its stream, opens it: a sampler
     reads its meters if it is open by then. 2: the same, but a sampler opens it where in_use() says
     that the program has its library: to open it begins nothing */
  uint32_t opens_late;
  /* The program's own events, of what it put on the stream itself (prof_device_event()); all three,
     or none. keep: any thread; the others: the collector's, or, when recording has just ended,
     let_go that thread's that called keep. */
  /* it stays until it is let go. UNSUPPORTED: it will have no times */
  int (*own_keep)(prof_backend_self *self, uint64_t stream, void *event, void **kept_out);
  /* by the back end's clock; NOT_READY */
  int (*own_times)(prof_backend_self *self, void *kept, uint64_t *start_ns_out,
                   uint64_t *end_ns_out);
  void (*own_let_go)(prof_backend_self *self, void *kept);
  /* May be NULL; from 1.2 on. */
  /* has the program loaded the vendor's library? Before that nobody opens the back end for the sake
     of records, nor one of meters alone for an operator's measurement that does not ask for that,
     and probe, which loads it, is not called for them. Asked often: cheap, silent */
  int (*in_use)(void);
  uint32_t records_memory; /* 1: start() can be asked for PROF_BACKEND_MEMORY. From 1.3 on */
  /* what it does without on this machine, and why: prof doctor says it behind "works, but". NULL:
     nothing. Asked when it has been opened; stays valid. From 1.4 on */
  const char *(*remark)(prof_backend_self *self);
} prof_backend;

PROF_I_EXTERN_C_BEGIN

/* A plug-in's only export: what prof asks it for its table, with the version that prof has. NULL:
   it cannot serve that major. The table is there as long as the process is. Several threads may ask
   at once. */
typedef const prof_backend *(*prof_backend_entry_function)(uint32_t major, uint32_t minor);
#define PROF_BACKEND_EXPORT __attribute__((visibility("default")))
PROF_BACKEND_EXPORT const prof_backend *prof_backend_entry(uint32_t major,
                                                           uint32_t minor) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
