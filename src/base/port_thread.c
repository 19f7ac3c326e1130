/* The calling thread's flags (process.h), the creation of prof's threads, and their processors
   (port.h). A new thread does not inherit the CPU affinity, the real-time priority or the
   floating-point environment of its creator. Threads are created on the control path only. */
#define _GNU_SOURCE
#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "port.h"
#include "process.h"

/* The model again: gcc forgets the declaration's, and a handler's first scope would call into the
   dynamic linker. */
__thread prof_i_thread_flags prof_i_this_flags
    __attribute__((tls_model("initial-exec"), visibility("hidden")));

/* ---- threads of prof's own ---- */

enum { SET_BYTES = 1024 }; /* 8192 processors */
enum { PLACEMENT_NOT_READ, PLACEMENT_READING, PLACEMENT_KNOWN, PLACEMENT_UNKNOWN };

typedef union processors {
  cpu_set_t set; /* for the functions' types; they take the size */
  unsigned char bytes[SET_BYTES];
} processors;

/* What the main thread had when prof was loaded. */
static struct {
  uint32_t state; /* PLACEMENT_NOT_READ to UNKNOWN; atomic, orders the rest */
  processors allowed;
  int policy, nice;
} placement PROF_I_WRITTEN_AT_LOAD;

/* A constructor of another library may start prof before this one runs. It calls syscall() alone:
   each other function of libc may be on a page that the process has not mapped yet. */
__attribute__((constructor)) static void placement_record(void) {
  uint32_t state = PLACEMENT_NOT_READ;
  if (!__atomic_compare_exchange_n(&placement.state, &state, PLACEMENT_READING, false,
                                   __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
    return;
  const int saved = errno;
  const long pid = syscall(SYS_getpid); /* its main thread's tid */
  const bool placement_is_known =
      syscall(SYS_sched_getaffinity, pid, sizeof placement.allowed, &placement.allowed.set) > 0;
  placement.policy = (int)syscall(SYS_sched_getscheduler, pid);
  const long turned = syscall(SYS_getpriority, PRIO_PROCESS, pid); /* 20 - nice, of 1 to 40 */
  placement.nice = turned > 0 ? 20 - (int)turned : 0;
  errno = saved;
  __atomic_store_n(&placement.state, placement_is_known ? PLACEMENT_KNOWN : PLACEMENT_UNKNOWN,
                   __ATOMIC_RELEASE);
}

static bool placement_is_known(void) {
  placement_record();
  return __atomic_load_n(&placement.state, __ATOMIC_ACQUIRE) == PLACEMENT_KNOWN;
}

static bool placement_is_as_at_load(void) {
  processors now;
  memset(&now, 0, sizeof now);
  return !placement_is_known() || sched_getaffinity(0, sizeof now, &now.set) != 0 ||
         memcmp(now.bytes, placement.allowed.bytes, sizeof now.bytes) == 0;
}

/* A whole process that runs as a batch, or when idle, stays so. */
static bool policy_is_expected(void) {
  const int policy = sched_getscheduler(0);
  return policy == SCHED_OTHER || ((policy == SCHED_BATCH || policy == SCHED_IDLE) &&
                                   placement_is_known() && policy == placement.policy);
}

/* Requests only what differs from the caller's attributes: a sandbox may forbid the calls. */
static void choose_attributes(pthread_attr_t *attributes, size_t stack_bytes) {
  if (stack_bytes)
    pthread_attr_setstacksize(attributes, stack_bytes > (size_t)PTHREAD_STACK_MIN
                                              ? stack_bytes
                                              : (size_t)PTHREAD_STACK_MIN);
#ifdef __GLIBC__
  if (!placement_is_as_at_load())
    pthread_attr_setaffinity_np(attributes, sizeof placement.allowed, &placement.allowed.set);
#endif
  if (policy_is_expected()) return;
  const struct sched_param none = {0};
  pthread_attr_setinheritsched(attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(attributes, SCHED_OTHER);
  pthread_attr_setschedparam(attributes, &none);
}

static int thread_create_with(pthread_t *thread_out, size_t stack_bytes, void *(*work)(void *),
                              void *argument) {
  pthread_attr_t attributes;
  int error = pthread_attr_init(&attributes);
  if (error) return error;
  choose_attributes(&attributes, stack_bytes);
  error = pthread_create(thread_out, &attributes, work, argument);
  pthread_attr_destroy(&attributes);
  return error;
}

int prof_i_port_thread_create(pthread_t *thread_out, size_t stack_bytes, void *(*work)(void *),
                              void *argument) {
  sigset_t all, before;
  const int saved = errno;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  int error = thread_create_with(thread_out, stack_bytes, work, argument);
  /* The processors may be gone, the policy forbidden, or the stack too small for the program's
     thread-local storage. */
  if (error == EINVAL || error == EPERM) error = pthread_create(thread_out, NULL, work, argument);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  errno = saved;
  return error;
}

void prof_i_port_thread_begin(const char *name) {
  const bool knows_load = placement_is_known(); /* first: it may be noted only now */
  const int wanted =
      placement.nice > 0 ? placement.nice : 0; /* a whole process that is nice stays so */
  pthread_setname_np(pthread_self(), name);
#ifndef __GLIBC__ /* it has no attribute for that */
  if (!placement_is_as_at_load())
    sched_setaffinity(0, sizeof placement.allowed, &placement.allowed.set);
#endif
  if (knows_load && getpriority(PRIO_PROCESS, 0) != wanted) setpriority(PRIO_PROCESS, 0, wanted);
  prof_i_port_fp_default();
}

/* ---- processors ---- */

/* Where threads may run, and how one gets to another processor. Nothing that lasts is changed, and
   only of prof's own threads. */

size_t prof_i_port_processor_count(void) {
  cpu_set_t allowed;
  return sched_getaffinity(0, sizeof allowed, &allowed) == 0 ? (size_t)CPU_COUNT(&allowed)
                                                             : SIZE_MAX;
}

int prof_i_port_processor(void) { return sched_getcpu(); }

/* The place-th of those allowed, counted around from behind the one that is taken; the taken one
   itself if there is no other. */
static size_t find_processor(const cpu_set_t *allowed, size_t taken, size_t place) {
  size_t at = taken;
  for (size_t steps = 0; place > 0 && steps < place * (size_t)CPU_SETSIZE; steps++) {
    at = (at + 1) % (size_t)CPU_SETSIZE;
    if (at != taken && CPU_ISSET(at, allowed)) place--;
  }
  return at;
}

void prof_i_port_move_off_processor(int taken, size_t place) {
  cpu_set_t allowed, one;
  if (taken < 0 || taken >= CPU_SETSIZE || sched_getaffinity(0, sizeof allowed, &allowed) != 0)
    return;
  const size_t at = find_processor(&allowed, (size_t)taken, place);
  if (!CPU_ISSET(at, &allowed)) return;
  CPU_ZERO(&one);
  CPU_SET(at, &one);
  if (sched_setaffinity(0, sizeof one, &one) == 0)
    /* it stays there, until the kernel has a reason */
    sched_setaffinity(0, sizeof allowed, &allowed);
}
