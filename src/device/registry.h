/* All back ends and the phase of each: probed, opened, or why not. Vendors are called without a
   lock: one thread moves a back end to its next phase, and others wait or go on without it. */
#ifndef PROF_DEVICE_REGISTRY_H
#define PROF_DEVICE_REGISTRY_H

#include <prof/backend.h>
#include <prof/device.h>
#include <stdbool.h>

/* unused: beside those */
enum { PROF_I_BACKENDS_MAX = 32, PROF_I_UNUSED_MAX = 16, PROF_I_BACKEND_PATH_BYTES = 4096 };

typedef enum prof_i_backend_phase {
  PROF_I_PHASE_NEW,     /* not probed yet */
  PROF_I_PHASE_PROBING, /* a thread is probing it */
  PROF_I_PHASE_PROBED,  /* result says whether it could work */
  PROF_I_PHASE_OPENING,
  PROF_I_PHASE_OPEN,
  /* it could not be loaded or opened, or this is a forked child: never again */
  PROF_I_PHASE_UNUSABLE
} prof_i_backend_phase;

typedef struct prof_i_backend {
  prof_backend table;      /* constant once it is listed */
  prof_backend_self *self; /* from OPEN on */
  /* prof_i_backend_phase. The thread that swaps it to PROBING or OPENING also sets the next one;
     release */
  uint32_t phase;
  uint32_t is_plugin;
  /* The program had loaded its library before prof probed, and prof may have loaded it then. From
     PROBED on */
  bool was_in_use;
  bool has_meter;               /* one of its devices; from OPEN on */
  uint32_t has_reader;          /* 1: a thread is at its meters. Acquire, release */
  const prof_backend *origin;   /* the vendor's own table: one file may have several names */
  prof_backend_device *devices; /* as of its opening; NULL: none */
  uint32_t device_count;
  /* records began up to so long after the program had begun to use it. Atomic, relaxed */
  uint64_t late_ns;
  int32_t result; /* prof_backend_result. With reason under the registry's lock */
  char reason[256];
  char path[PROF_I_BACKEND_PATH_BYTES];
} prof_i_backend;

/* Lists the built-in back ends and those of PROF_BACKENDS, once. Does not wait for another thread
   that is doing so. */
void prof_i_registry_prepare(void);

/* By number; NULL: there are not so many. */
prof_i_backend *prof_i_registry_at(uint32_t number);

/* Lists it, unless its table, or one of its name that is no plug-in, is listed already.
   PROF_E_TOO_LARGE. */
int prof_i_registry_add(const prof_backend *table, const prof_backend *origin, const char *path);

/* A vendor's table, checked; what: whose it is, for the reason. PROF_E_INVALID, PROF_E_VERSION,
   PROF_E_TOO_LARGE. */
int prof_i_registry_add_table(const prof_backend *table, const char *what);

/* Lists a file that is of no use, and why, unless it is listed, or as many such as there is room
   for. */
void prof_i_registry_add_unused(const char *path, int32_t result, const char *reason);

/* Has the file given a table; is there room for one more? */
bool prof_i_registry_has_path(const char *path);
bool prof_i_registry_has_room(void);

/* Probes it if no thread has. False: another thread is probing it, and has been for that long. */
bool prof_i_registry_probe(prof_i_backend *backend, uint32_t patience_ms);

/* Opens the back end of that device type that can do most; of several such, the first. NULL: none
   works, or another thread is opening it. An open back end stays the one. */
prof_i_backend *prof_i_registry_open(int32_t device_type);

/* Waits until no thread lists, probes or opens back ends, but not longer than that. */
void prof_i_registry_wait(uint32_t patience_ms);

/* Opens that one for its meters. False: another serves its devices, it does not work, or another
   thread is opening it. */
bool prof_i_registry_open_meters(prof_i_backend *backend);

/* One thread at a time reads its meters: the sampler's, or that of an operator's measurement. The
   other waits, also if a vendor hangs, so a caller that waits for either needs a limit. */
void prof_i_registry_acquire_meters(prof_i_backend *backend);
void prof_i_registry_release_meters(prof_i_backend *backend);

/* prof_i_registry_open() returned NULL, but may not at the next try: another thread was at it. */
bool prof_i_registry_is_opening(int32_t device_type);

/* The same, because the program does not use such a device so far: it is to be asked again. */
bool prof_i_registry_is_not_ready(int32_t device_type);

/* Why that returned NULL: result and text of the back end of that type that came furthest. Never
   OK. */
int32_t prof_i_registry_reason(int32_t device_type, char *reason, size_t room);

/* True if it is open. Never in a forked child. Any thread. */
bool prof_i_registry_is_open(const prof_i_backend *backend);
/* It is not, and never will be. Any thread. */
bool prof_i_registry_is_unusable(const prof_i_backend *backend);
void prof_i_registry_result(prof_i_backend *backend, int32_t *result_out, char reason_out[256]);
/* Is a thread just listing them? */
bool prof_i_registry_is_listing(void);

/* "model, driver" of a device whose back end is open; "" where that is not known. */
void prof_i_registry_model(prof_device device, char *to, size_t room);

/* Its text for this thread's last call that failed, or else the result's text. */
const char *prof_i_registry_error_text(const prof_i_backend *backend, int result);

/* For a thread that waits until another one has listed, probed or opened a back end. */
void prof_i_registry_sleep_1ms(void);

/* Puts an error of that stream into its status. Right after the call, on the same thread. */
void prof_i_registry_set_stream_error(prof_i_backend *backend, uint64_t stream, int result);

/* The same for records that it cannot make. */
void prof_i_registry_set_records_error(prof_i_backend *backend, int result);

/* A forked child: all are shut. Signal-safe. */
void prof_i_registry_forget(void);

/* The built-in back ends in the order of preference; NULL ends the list. src/lib defines it,
   because no folder below knows a vendor. */
extern const prof_backend *const prof_i_built_in_backends[];

#endif
