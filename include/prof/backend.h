/* What a vendor of devices fills in: one table of C functions, an afternoon of work (name, probe, open, five calls for events); the rest says
   more about its devices and their clock. A back end stands in the library, or in a plug-in: a shared
   library that exports prof_backend_entry(), and is named by PROF_BACKENDS or prof_backend_load(). Includes
   nothing of a vendor; compiles alone as C11 and C++17. SPDX-License-Identifier: MIT

   The rules:
   1. probe, open, close, device and clock come from one thread at a time. Calls for events come from any thread at any time between open and
      close; those for one event from one at a time.
   2. prof holds no lock while it calls a back end. A back end holds none while it calls its vendor that a callback of the vendor's takes.
   3. A callback of the vendor's, on whatever thread, may use host->now_ns, atomics and the back end's own pools: nothing else.
   4. Nothing is written to stdout or stderr (host->log), nothing exits or aborts, no signal handler is set, no vendor's library is closed,
      no error of the program's is taken from it, the current device and context are what they were.
   5. No call waits for a device. No call creates a context.
   6. To be absent is normal: probe says it at once and in silence, touches no device, creates no thread.
   7. In a forked child fork_child is called, where there is one, from the fork's handler: it may store a flag. Nothing else is called there any more.
   8. Tables are sized: a member that lies beyond `size` is NULL. Members are only ever added at the end (minor); major changes when an
      old table could not be called any more. NULL where a member is not said to be needed: it is not supported. */
#ifndef PROF_BACKEND_H
#define PROF_BACKEND_H

#include <prof/args.h>

#define PROF_BACKEND_MAJOR 1u
#define PROF_BACKEND_MINOR 0u

/* What a call of a back end returns: name, value, text, what the user can do. */
#define PROF_BACKEND_RESULT_LIST(X)                                                                                                             \
  X(OK, 0, "works", "")                                                                                                                         \
  X(NOT_READY, 1, "the work is not finished yet", "")                                                                                           \
  X(ABSENT, -1, "the vendor's library is not there", "install the vendor's driver or run-time library, or name its folder in LD_LIBRARY_PATH")  \
  X(NO_DEVICE, -2, "the library is there, but no device", "see what the vendor's own tool lists; in a container the device must be passed in")   \
  X(VERSION, -3, "the library is too old, or unknown", "install a release that docs/devices.md lists")                                          \
  X(BUSY, -4, "another tool holds what only one can have", "end the other profiler, or record device scopes alone")                             \
  X(PERMISSION, -5, "not permitted", "the user needs the right to use the device: see docs/devices.md")                                         \
  X(UNSUPPORTED, -6, "not supported by this back end", "")                                                                                      \
  X(INVALID, -7, "an argument is none that the vendor knows", "")                                                                               \
  X(NO_MEMORY, -8, "no memory", "")                                                                                                             \
  X(CAPTURING, -9, "the stream is being captured into a graph", "")                                                                             \
  X(FORKED, -10, "the process was forked from the one that opened it", "begin to use the device in the child, not before the fork")             \
  X(VENDOR, -11, "the vendor's library says an error", "")

typedef enum prof_backend_result {
#define PROF_I_BACKEND_ENUM(name, value, text, advice) PROF_BACKEND_##name = (value),
  PROF_BACKEND_RESULT_LIST(PROF_I_BACKEND_ENUM)
#undef PROF_I_BACKEND_ENUM
} prof_backend_result;

typedef struct prof_backend_device {
  size_t size;
  char name[96], arch[32], driver[32];
  uint8_t uuid[16]; /* all 0: not known */
  uint32_t pci_domain, pci_bus, pci_device, pci_function;
  uint64_t memory_bytes;
  uint32_t units, clock_khz; /* compute units; highest clock */
  uint32_t is_emulated;      /* 1: this is no device: every export says so */
  uint32_t reserved;
} prof_backend_device;

/* One look at two clocks: the device's stood at device_ns at some moment between the other two, which are host->now_ns()'s. */
typedef struct prof_backend_pair {
  size_t size;
  uint64_t host_before_ns, device_ns, host_after_ns;
} prof_backend_pair;

/* prof's services. Stays as it is, and is there as long as the process is. */
typedef struct prof_backend_host {
  size_t size;
  uint32_t major, minor; /* of prof */
  uint64_t (*now_ns)(void);                                 /* the host's clock, which all device times are brought to: CLOCK_MONOTONIC. Any thread, signal-safe */
  void (*log)(const char *text);                            /* a line that is shown on stderr where PROF_LOG is set. Any thread */
  const char *(*option)(const char *key);                   /* PROF_BACKEND_<key> of the environment; NULL: not said. Any thread */
} prof_backend_host;

typedef struct prof_backend_self prof_backend_self; /* the back end's own state */

/* Where a call returns an int, it is a prof_backend_result. */
typedef struct prof_backend {
  size_t size;
  uint32_t major, minor;  /* that it was written for */
  int32_t device_type;    /* PROF_DEVICE_*: of the scopes that it serves */
  uint32_t is_emulated;   /* 1: no device of that type is behind it: every export says so */
  const char *name;       /* "cuda", "opencl", ...: at most 31 bytes */
  const char *version;    /* its own */

  /* Needed. */
  int (*probe)(const prof_backend_host *host);                                 /* could it work here? */
  int (*open)(const prof_backend_host *host, prof_backend_self **self_out);    /* once, when its devices are first needed */
  int (*event_create)(prof_backend_self *self, uint64_t stream, void **event_out);
  int (*event_record)(prof_backend_self *self, uint64_t stream, void **event); /* a moment of the stream's: when all is done that was put there before. A vendor whose command makes the
                                                                                  event puts another one in its place */
  int (*event_query)(prof_backend_self *self, void *event);                    /* OK: it is past; NOT_READY */
  void (*event_destroy)(prof_backend_self *self, void *event);
  /* One of the two. time: in ns of the back end's clock. elapsed: from a to b, of one device, signed; prof takes one of them for its zero. */
  int (*event_time)(prof_backend_self *self, void *event, uint64_t *ns_out);
  int (*event_elapsed)(prof_backend_self *self, void *a, void *b, int64_t *ns_out);

  /* May be NULL. */
  void (*close)(prof_backend_self *self); /* after stop and the last drain: nothing of prof's is called any more when it returns */
  void (*fork_child)(prof_backend_self *self);
  const char *(*last_error)(prof_backend_self *self); /* of this thread's last call that failed: the vendor's own words; valid until its next. self: NULL for probe and open */
  int (*stream_of)(prof_backend_self *self, uint64_t stream, uint32_t *device_out, uint32_t *is_capturing_out); /* INVALID: it is none */
  int (*device)(prof_backend_self *self, uint32_t index, prof_backend_device *out);                             /* NO_DEVICE: so many there are */
  int (*clock)(prof_backend_self *self, uint32_t device, prof_backend_pair *out);
} prof_backend;

PROF_I_EXTERN_C_BEGIN

/* A plug-in's only export: what prof asks it for its table, with the version that prof has. NULL: it cannot serve that major. The table is there as long as the process is. Several threads may ask at once. */
typedef const prof_backend *(*prof_backend_entry_function)(uint32_t major, uint32_t minor);
#define PROF_BACKEND_EXPORT __attribute__((visibility("default")))
PROF_BACKEND_EXPORT const prof_backend *prof_backend_entry(uint32_t major, uint32_t minor) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
