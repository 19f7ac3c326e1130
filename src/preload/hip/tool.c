/* libprof_hip.so: named by ROCP_TOOL_LIBRARIES. rocprofiler-sdk opens it when the program begins with HIP, and calls rocprofiler_configure(). With it comes libprof.so, which records if the environment says so, and is the tool. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* Whoever wants records waits for the devices to be open, and they are not before HIP has begun: so another thread does that. */
static void *want(void *unused) {
  const struct timespec some_ms = {0, 20000000};
  (void)unused;
  prof_i_prefer_devices_1(PROF_DEVICES_RECORDS);
  while (!prof_i_rocprofiler_tool_settle_1()) nanosleep(&some_ms, NULL);
  return NULL;
}

static void is_ready(void) {
  sigset_t all, before;
  pthread_t thread;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, want, NULL) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Named and typed as rocprofiler has it (registration.h); NULL: no tool. */
__attribute__((visibility("default"))) void *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority, void *client);
void *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority, void *client) {
  (void)version;
  (void)runtime;
  (void)priority;
  (void)client;
  return prof_i_rocprofiler_tool_1(is_ready);
}
