/* Finds the call that launched a kernel or a copy. The vendor reports the call by another record
   with the same number, before or after it. For such back ends; the collector alone. Uses nothing
   of prof but the host's services. */
#ifndef PROF_DEVICE_LAUNCHES_H
#define PROF_DEVICE_LAUNCHES_H

#include <prof/backend.h>
#include <stdbool.h>

enum { PROF_I_LAUNCH_CALLS = 1 << 16, PROF_I_LAUNCH_THREADS = 256 };

typedef struct prof_i_launch_call {
  uint64_t number;     /* 0: none */
  uint64_t thread;     /* the kernel's number */
  uint64_t start, end; /* by the back end's clock */
} prof_i_launch_call;

/* Any record that is launched. */
typedef union prof_i_launched_record {
  prof_backend_record record;
  prof_backend_kernel kernel;
  prof_backend_copy copy;
} prof_i_launched_record;

/* A back end's; zeroed at first. Calls are remembered by their number in a ring of 65536. */
typedef struct prof_i_launches {
  const prof_backend_host *host;
  prof_i_launch_call calls[PROF_I_LAUNCH_CALLS];
  struct {
    uint64_t number, prof;
  } threads[PROF_I_LAUNCH_THREADS]; /* of this drain */
  prof_i_launched_record *waiting;
  uint32_t count, room, waited_count; /* waited: so many of them did at the last settling */
  bool is_last;
  uint64_t unfinished_count;
} prof_i_launches;

/* A drain begins. is_last: what has no end by now is not done, and lost. */
void prof_i_launches_begin(prof_i_launches *all, const prof_backend_host *host, bool is_last);

/* prof's number of a thread, by the kernel's; 0: not known. */
uint64_t prof_i_launches_thread_serial(prof_i_launches *all, uint64_t kernels_number);

/* Of several of one number the one that began first is what the program called. */
void prof_i_launches_add_call(prof_i_launches *all, const prof_i_launch_call *call);

/* Emits it, of the size that its record says, with its launch; or it waits for the call with its
   number. */
void prof_i_launches_emit(prof_i_launches *all, prof_i_launched_record *it);

/* Hands over what waits: what waited last time already, or (are_all) everything. */
void prof_i_launches_flush(prof_i_launches *all, bool are_all);

/* How many were not done, since the last time. */
uint64_t prof_i_launches_unfinished(prof_i_launches *all);

#endif
