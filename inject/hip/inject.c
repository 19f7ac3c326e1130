/* libprof_hip.so: named by ROCP_TOOL_LIBRARIES. rocprofiler-sdk opens it when the program begins
   with HIP, and calls rocprofiler_configure(). It brings libprof.so, which is the tool, and records
   if the environment says so. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/* rocprofiler records from HIP's first call on. This thread waits until prof's own takes over, or
   ends the records. HIP begins within seconds or not at all. */
static void *end_preinit_main(void *unused) {
  enum { LOOKS = 500 };
  const struct timespec between = {0, 20000000};
  (void)unused;
  for (int i = 0; !prof_i_rocprofiler_tool_settle_1(i < LOOKS); i++) nanosleep(&between, NULL);
  return NULL;
}

/* The host's signals are for the host's threads. */
static void start_end_preinit(void) {
  sigset_t all, before;
  pthread_t thread;
  prof_i_prefer_devices_1(PROF_DEVICES_RECORDS);
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, end_preinit_main, NULL) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Named and typed as rocprofiler has it (registration.h); NULL: no tool. */
__attribute__((visibility("default"))) void *rocprofiler_configure(uint32_t version,
                                                                   const char *runtime,
                                                                   uint32_t priority, void *client);
void *rocprofiler_configure(uint32_t version, const char *runtime, uint32_t priority,
                            void *client) {
  (void)version;
  (void)runtime;
  (void)priority;
  (void)client;
  return prof_i_rocprofiler_tool_1(start_end_preinit);
}
