/* libprof_cuda.so: named by CUDA_INJECTION64_PATH. The driver opens it in the program's cuInit(), and calls InitializeInjection(). With it comes libprof.so, which records if the environment says so, and is asked here for kernels, too. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

/* Whoever wants records waits for the devices to be open, and they are not before the program's cuInit() has ended: so another thread does that. */
static void *want(void *unused) {
  (void)unused;
  prof_i_prefer_devices_1(PROF_DEVICES_RECORDS);
  return NULL;
}

__attribute__((visibility("default"))) int InitializeInjection(void);
/* 1: it went well. */
int InitializeInjection(void) {
  sigset_t all, before;
  pthread_t thread;
  if (prof_level() == 0) return 1;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  if (pthread_create(&thread, NULL, want, NULL) == 0) pthread_detach(thread);
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return 1;
}
