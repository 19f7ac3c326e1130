/* Which back ends of devices there are, what each can do on this machine, and if not, why. What a
   vendor fills in stands in <prof/backend.h>. SPDX-License-Identifier: MIT */
#ifndef PROF_DEVICE_H
#define PROF_DEVICE_H

#include <prof/backend.h>
#include <prof/status.h>

PROF_I_EXTERN_C_BEGIN

/* prof_backend_state.abilities */
enum {
  PROF_CAN_SCOPES = 1u, /* the device's own times of WITH_GPU_PROFILER's scopes */
  /* its clock can be read beside the host's; without that, what an event's time may be is narrowed
     down by the events themselves */
  PROF_CAN_CLOCKS = 2u,
  /* kernels, copies and the like by themselves, without a scope around them */
  PROF_CAN_RECORDS = 4u,
  PROF_CAN_METRICS = 8u, /* power, memory used and the like can be sampled */
  /* in place of CLOCKS: the clock that can be read is that of its records; its scopes' times are
     distances, narrowed down by the events themselves */
  PROF_CAN_RECORD_CLOCKS = 16u
};

typedef struct prof_backend_state {
  size_t size;
  int32_t result;        /* prof_backend_result */
  int32_t device_type;   /* PROF_DEVICE_*; 0 of a plug-in that could not be used */
  uint32_t is_open;      /* 1: its devices are in use */
  uint32_t is_emulated;  /* 1: no device is behind it */
  uint32_t is_plugin;    /* 1: path names its file */
  uint32_t abilities;    /* PROF_CAN_*; of one that does not work, what it could do */
  uint32_t device_count; /* of an open one; else 0 */
  uint32_t reserved;
  char name[32];
  char version[32];
  char path[512];
  /* with values: what the vendor's library says, or the result's text; of one that works, the
     stream that it refused last, and why */
  char reason[256];
  char advice[256]; /* what to do; "" when it works, or nobody knows */
} prof_backend_state;

/* The back end of that number, from 0: built-in ones first, then PROF_BACKENDS's, then those that
   were added or loaded, as they came. Looks at those that have not been looked at: their libraries
   are opened, no device is touched. Some ms for each the first time. PROF_E_NOT_FOUND: there are
   not so many. PROF_E_INVALID, PROF_E_BUSY (another thread looks since two seconds). Any thread;
   not in a signal handler. */
PROF_API int prof_backend_status(uint32_t number, prof_backend_state *state_out) PROF_I_NOEXCEPT;

/* A back end that is linked to the program. The table, of whatever size it says, is copied; what it
   points to must stay. One of the same name is taken once. PROF_E_INVALID (with what is wrong with
   it), PROF_E_VERSION (another major), PROF_E_TOO_LARGE (32 are there). Any thread; before the
   first start that is to use it. */
PROF_API int prof_backend_add(const prof_backend *table) PROF_I_NOEXCEPT;

/* Plug-ins: files, or folders with *.so in them, by ":". Absolute paths: what stands in the working
   directory is nobody's to load. They stay loaded. One that cannot be used is kept, too:
   prof_backend_status() says why (of 16 at most), and it may be tried again. PROF_BACKENDS names
   some that are loaded when back ends are first needed; PROF_E_PERMISSION in a setuid program,
   where neither loads. PROF_E_INVALID (NULL, a relative path), PROF_E_NOT_FOUND; PROF_E_FILE_TYPE
   (no regular file), PROF_E_UNSUPPORTED (no plug-in, or this build opens no libraries),
   PROF_E_VERSION, PROF_E_TOO_LARGE; the rest of the paths is loaded all the same. A plug-in that
   crashes takes the program with it. */
PROF_API int prof_backend_load(const char *paths) PROF_I_NOEXCEPT;

/* Work that the program has put on a stream and has the vendor's own event of, as the cl_event
   of a command on a queue with profiling: the device's side, by that event's times, stands in
   the trace as a record of kind (prof_backend_kind: PROF_BACKEND_KERNEL, ...) and name (copied;
   NULL: as that kind's are called), and belongs to the innermost scope in which this is called;
   where it had begun by then, in which it began. Nothing waits; the event is kept (retained)
   until it is past, or recording stops. Where nothing is recorded it does nothing. At most 4096
   wait at once; what is not told is counted as lost, by reason. Errors: PROF_E_INVALID (event
   NULL, a kind that is none), PROF_E_UNSUPPORTED (no back end, one that takes no events, a queue
   that records no times), PROF_E_TOO_LARGE, PROF_E_BUSY, PROF_E_NO_MEMORY: with words. Any
   thread; not in a signal handler. */
PROF_API int prof_device_event(prof_device device, uint64_t stream, void *event, uint32_t kind,
                               const char *name) PROF_I_NOEXCEPT;

/* "absent", its text, and what to do about it ("" when nobody knows); "unknown" and the like for a
   number that is none. Static. */
PROF_API const char *prof_backend_result_name(int result) PROF_I_NOEXCEPT;
PROF_API const char *prof_backend_result_text(int result) PROF_I_NOEXCEPT;
PROF_API const char *prof_backend_result_advice(int result) PROF_I_NOEXCEPT;

/* For libprof_cuda.so and libprof_hip.so alone: recordings want that of devices (prof_devices)
   where nobody says what he wants, also the one that is under way. Waits for no device. Any
   thread. */
PROF_API void prof_i_prefer_devices_1(uint32_t wanted) PROF_I_NOEXCEPT;

/* For libprof_cuda.so alone, inside of cuInit(), on its thread: a recording that is under way and
   wants records has them from here on. Any thread. */
PROF_API void prof_i_cuda_begins_1(void) PROF_I_NOEXCEPT;

/* For libprof_hip.so alone, which rocprofiler asks what it wants (ROCP_TOOL_LIBRARIES): what
   rocprofiler_configure() returns, so that prof is that tool. NULL: nothing is recorded, or prof
   has been asked before. is_ready: called once all is configured, on the thread that begins with
   HIP; it must not call HIP. Any thread. */
PROF_API void *prof_i_rocprofiler_tool_1(void (*is_ready)(void)) PROF_I_NOEXCEPT;

/* After is_ready, by one thread, now and then: has the recording that it began with taken over what
   rocprofiler records? Where it has ended before that, or nobody waits for it any more, rocprofiler
   is put to rest. 0: not yet. */
PROF_API int prof_i_rocprofiler_tool_settle_1(int is_waiting) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
