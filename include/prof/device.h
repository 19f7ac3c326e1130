/* The back ends of devices: which exist, what each can do on this machine, or why it cannot. The
   header <prof/backend.h> has the table that a vendor fills in.

   Unless its comment says otherwise, a function may be called from any thread, and not in a signal
   handler.
   SPDX-License-Identifier: MIT */
#ifndef PROF_DEVICE_H
#define PROF_DEVICE_H

#include <prof/backend.h>
#include <prof/status.h>

PROF_I_EXTERN_C_BEGIN

/* ---- back ends ---- */

/* prof_backend_state.abilities */
enum {
  PROF_CAN_SCOPES = 1u, /* device times of WITH_GPU_PROFILER()'s scopes */
  /* Its clock can be read together with the host's. Otherwise the relation of the clocks is
     estimated from the events. */
  PROF_CAN_CLOCKS = 2u,
  /* kernels and copies without scopes around them */
  PROF_CAN_RECORDS = 4u,
  PROF_CAN_METRICS = 8u, /* power, memory and other meters can be sampled */
  /* Instead of CLOCKS: the clock that can be read is that of its records. Times of its scopes are
     estimated from the events. */
  PROF_CAN_RECORD_CLOCKS = 16u
};

/* The state of a back end. The caller sets size. */
typedef struct prof_backend_state {
  size_t size;
  int32_t result;        /* prof_backend_result */
  int32_t device_type;   /* PROF_DEVICE_*; 0 of a plug-in that could not be used */
  uint32_t is_open;      /* 1: its devices are in use */
  uint32_t is_emulated;  /* 1: no device is behind it */
  uint32_t is_plugin;    /* 1: a plug-in, in the file `path` */
  uint32_t abilities;    /* PROF_CAN_*; if it does not work, what it could do */
  uint32_t device_count; /* of an open back end; else 0 */
  uint32_t reserved;
  char name[32];
  char version[32];
  char path[512];
  /* The vendor's message, or the result's text. Of a working back end: the last stream that it
     refused, and why. */
  char reason[256];
  char advice[256]; /* What to do. "": it works, or prof does not know. */
} prof_backend_state;

/* Fills state_out for a back end's number, from 0. Built-in ones are first, then those of
   PROF_BACKENDS, then added and loaded ones in order. It probes those that were not probed: their
   libraries are opened, no device is touched. The first probe takes some ms for each.
   Errors:
   PROF_E_NOT_FOUND: number is the number of back ends, or more.
   PROF_E_INVALID: state_out is NULL or its size is 0.
   PROF_E_BUSY: another thread has been probing for two seconds. */
PROF_API int prof_backend_status(uint32_t number, prof_backend_state *state_out) PROF_I_NOEXCEPT;

/* Adds a back end that is linked to the program. Call it before the first start that should use it.
   The table is copied; what it points to must stay valid. A second one of the same name is ignored.
   Errors:
   PROF_E_INVALID: the table is wrong. The error says how.
   PROF_E_VERSION: its major version differs.
   PROF_E_TOO_LARGE: 32 back ends exist. */
PROF_API int prof_backend_add(const prof_backend *table) PROF_I_NOEXCEPT;

/* Loads plug-ins: files, or folders with *.so files, separated by ':'. Only absolute paths. They
   stay loaded. A plug-in that crashes crashes the program.

   One that cannot be used stays in the list, up to 16: prof_backend_status() says why. It may be
   loaded again. PROF_BACKENDS names plug-ins that are loaded when back ends are first needed. In a
   setuid program neither loads anything.
   Errors, after which the other paths are loaded all the same:
   PROF_E_INVALID: paths is NULL or has a relative path.
   PROF_E_NOT_FOUND: no such file.
   PROF_E_FILE_TYPE: no regular file.
   PROF_E_UNSUPPORTED: it is no plug-in, or this build opens no libraries.
   PROF_E_VERSION: its major version differs.
   PROF_E_TOO_LARGE: 32 back ends exist.
   PROF_E_PERMISSION: a setuid program. */
PROF_API int prof_backend_load(const char *paths) PROF_I_NOEXCEPT;

/* ---- the program's own events ---- */

/* Records work on a stream of which the program has the vendor's event. Example: the cl_event of a
   command, on a queue with profiling. Runtimes call it that keep such events, and so have the
   device's timestamps already. The trace gets a record with the event's times. It belongs to
   the innermost scope of this call; if the work began earlier, to the innermost scope at that time.

   kind is a prof_backend_kind, as PROF_BACKEND_KERNEL. name is copied; NULL: the kind's name.
   Nothing waits. The event is retained until it is past, or recording stops. While nothing is
   recorded, the call does nothing. At most 4096 events wait at once; what is not recorded is
   counted as lost.
   Errors, with a text:
   PROF_E_INVALID: event is NULL, or the kind is unknown.
   PROF_E_UNSUPPORTED: no back end, or one that takes no events, or a queue without times.
   PROF_E_TOO_LARGE: 4096 events wait.
   PROF_E_BUSY, PROF_E_NO_MEMORY. */
PROF_API int prof_device_event(prof_device device, uint64_t stream, void *event, uint32_t kind,
                               const char *name) PROF_I_NOEXCEPT;

/* Return a result's name ("absent"), its text, and what to do about it. The advice is "" if prof
   does not know. An unknown value gives "unknown" and similar texts. Static texts. */
PROF_API const char *prof_backend_result_name(int result) PROF_I_NOEXCEPT;
PROF_API const char *prof_backend_result_text(int result) PROF_I_NOEXCEPT;
PROF_API const char *prof_backend_result_advice(int result) PROF_I_NOEXCEPT;

/* ---- internal: for prof's preloaded libraries ---- */

/* For libprof_cuda.so and libprof_hip.so. Sets the default of prof_devices for recordings without
   another request, also for the one that is running. It waits for no device. */
PROF_API void prof_i_prefer_devices_1(uint32_t wanted) PROF_I_NOEXCEPT;

/* For libprof_cuda.so, inside of cuInit(), on its thread. A running recording that requests records
   has them from then on. */
PROF_API void prof_i_cuda_begins_1(void) PROF_I_NOEXCEPT;

/* For libprof_hip.so. Returns what rocprofiler_configure() returns, so that prof is the tool of
   rocprofiler (ROCP_TOOL_LIBRARIES). NULL: nothing is recorded, or it was called before. is_ready
   is called when all is configured, on the thread that initialises HIP. It must not call HIP. */
PROF_API void *prof_i_rocprofiler_tool_1(void (*is_ready)(void)) PROF_I_NOEXCEPT;

/* For libprof_hip.so, after is_ready, on one thread, repeatedly. Returns 0 as long as the recording
   has not yet taken over rocprofiler's records. If the recording has ended before that, or
   is_waiting is 0, rocprofiler is paused. */
PROF_API int prof_i_rocprofiler_tool_settle_1(int is_waiting) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
