/* The back ends that there are, and how far each has come: looked at, opened, or why not. Vendors
   are called here without a lock held: who moves one on has its phase, and others either wait or go
   on without it. */
#ifndef PROF_DEVICE_REGISTRY_H
#define PROF_DEVICE_REGISTRY_H

#include <prof/backend.h>
#include <prof/device.h>
#include <stdbool.h>

/* unused: beside those */
enum { PROF_I_BACKENDS_MAX = 32, PROF_I_UNUSED_MAX = 16, PROF_I_BACKEND_PATH_BYTES = 4096 };

typedef enum prof_i_phase {
  PROF_I_PHASE_NEW,     /* nobody has looked yet */
  PROF_I_PHASE_PROBING, /* somebody is at it */
  PROF_I_PHASE_PROBED,  /* result says whether it could work */
  PROF_I_PHASE_OPENING,
  PROF_I_PHASE_OPEN,
  /* it could not be loaded or opened, or this is a forked child: never again */
  PROF_I_PHASE_UNUSABLE
} prof_i_phase;

typedef struct prof_i_backend {
  prof_backend table;      /* not written any more once it is listed */
  prof_backend_self *self; /* from OPEN on */
  /* prof_i_phase; whoever swaps it to LOOKING or OPENING moves it on; release */
  uint32_t phase;
  uint32_t is_plugin;
  /* by the program: its library was loaded before prof looked, and may have loaded it. From LOOKED
     on */
  bool was_in_use;
  bool has_meter;               /* one of its devices; from OPEN on */
  uint32_t has_reader;          /* 1: a thread is at its meters. Acquire, release */
  const prof_backend *origin;   /* the vendor's own table: one file may have several names */
  prof_backend_device *devices; /* as they were when it was opened; NULL: it tells of none */
  uint32_t device_count;
  /* records began up to so long after the program had begun to use it. Atomic, relaxed */
  uint64_t late_ns;
  int32_t result; /* prof_backend_result. With reason under the registry's lock */
  char reason[256];
  char path[PROF_I_BACKEND_PATH_BYTES];
} prof_i_backend;

/* Lists what comes with prof and what PROF_BACKENDS names, once; who comes while another thread is
   at it does not wait. */
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

/* Asks it whether it could work, if nobody has. False: another thread is at it, and has been for
   that long. */
bool prof_i_registry_probe(prof_i_backend *backend, uint32_t patience_ms);

/* Of that device type the one that works and can do most, of several such the first, opened; NULL:
   none, or another thread is opening it. One that is open stays the one. */
prof_i_backend *prof_i_registry_open(int32_t device_type);

/* Waits, for so long at most, until nobody is listing, looking at or opening back ends. */
void prof_i_registry_wait(uint32_t patience_ms);

/* Opens that one for its meters. False: another serves its devices, it does not work, or another
   thread is opening it. */
bool prof_i_registry_open_meters(prof_i_backend *backend);

/* Its meters are read by one thread at a time: the sampler's, or one of an operator's measurement;
   the other waits, also where a vendor hangs. Neither may be waited for without a bound. */
void prof_i_registry_acquire_meters(prof_i_backend *backend);
void prof_i_registry_release_meters(prof_i_backend *backend);

/* prof_i_registry_open() returned NULL, but may not at the next try: another thread was at it. */
bool prof_i_registry_is_opening(int32_t device_type);

/* The same, because the program does not use such a device so far: it is to be asked again. */
bool prof_i_registry_is_not_ready(int32_t device_type);

/* Why that returned NULL: of the back end of that type that came furthest, its result, and in
   words. Never OK. */
int32_t prof_i_registry_reason(int32_t device_type, char *reason, size_t room);

/* Is it in use? Not in a forked child. What came of it last, and in words. Any thread. */
bool prof_i_registry_is_open(const prof_i_backend *backend);
/* It is not, and never will be. Any thread. */
bool prof_i_registry_is_unusable(const prof_i_backend *backend);
void prof_i_registry_result(prof_i_backend *backend, int32_t *result_out, char reason_out[256]);
/* Is a thread just listing them? */
bool prof_i_registry_is_listing(void);

/* "model, driver" of a device whose back end is open; "" where that is not known. */
void prof_i_registry_model(prof_device device, char *to, size_t room);

/* What it says of this thread's last call that failed, or else the result's text. */
const char *prof_i_registry_error_text(const prof_i_backend *backend, int result);

/* It refused something of that stream's: its state says so. Right after the call, on the same
   thread. */
void prof_i_registry_set_stream_error(prof_i_backend *backend, uint64_t stream, int result);

/* It cannot record by itself what it was asked for: the same. */
void prof_i_registry_set_records_error(prof_i_backend *backend, int result);

/* A forked child: all are shut. Signal-safe. */
void prof_i_registry_forget(void);

/* The back ends that come with prof, in the order in which they are asked. NULL ends the list. It
   is src/lib that defines it: no folder below knows a vendor's. */
extern const prof_backend *const prof_i_built_in_backends[];

#endif
