/* See worker.h. The thread and its caller share one word. A signal handler may fork the caller
   while it waits. So a wait is divided into short ones, and checks for another process between
   them. */
#define _GNU_SOURCE
#include "worker.h"

#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

#include "port.h"

enum { STACK_BYTES = 256 << 10 };
enum { WAIT_NS = 100000000 };
enum { WORKER_IDLE, WORKER_BUSY, WORKER_ENDS };

struct prof_i_worker {
  pthread_t thread;
  bool has_thread;
  long pid; /* of the process with the thread */
  const char *name;
  /* WORKER_...; atomic. The caller sets BUSY and ENDS, the thread sets IDLE. Orders the rest. */
  uint32_t state;
  void (*job)(void *);
  void *argument;
};

static bool are_threads_allowed;

void prof_i_worker_allow_threads(void) { are_threads_allowed = true; }

static uint32_t worker_state(const prof_i_worker *worker) {
  return __atomic_load_n(&worker->state, __ATOMIC_ACQUIRE);
}

static void worker_set_state(prof_i_worker *worker, uint32_t state) {
  __atomic_store_n(&worker->state, state, __ATOMIC_RELEASE);
  prof_i_port_wake(&worker->state);
}

/* A job may read a mapped file that gets shorter. If SIGBUS were blocked then, the kernel would end
   the process without its handler. */
static void unblock_bus_errors(void) {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, SIGBUS);
  pthread_sigmask(SIG_UNBLOCK, &set, NULL);
}

static void *worker_main(void *argument) {
  prof_i_worker *const worker = argument;
  unblock_bus_errors();
  prof_i_port_thread_begin(worker->name);
  for (uint32_t state; (state = worker_state(worker)) != WORKER_ENDS;) {
    if (state == WORKER_IDLE) {
      prof_i_port_wait(&worker->state, WORKER_IDLE, WAIT_NS);
      continue;
    }
    worker->job(worker->argument);
    worker_set_state(worker, WORKER_IDLE);
  }
  return NULL;
}

prof_i_worker *prof_i_worker_create(const char *name) {
  prof_i_worker *const worker = calloc(1, sizeof *worker);
  if (!worker) return NULL;
  worker->name = name;
  worker->pid = (long)getpid();
  worker->has_thread =
      are_threads_allowed && prof_i_port_processor_count() > 1 &&
      prof_i_port_thread_create(&worker->thread, STACK_BYTES, worker_main, worker) == 0;
  return worker;
}

bool prof_i_worker_has_thread(const prof_i_worker *worker) { return worker->has_thread; }

void prof_i_worker_begin(prof_i_worker *worker, void (*job)(void *), void *argument) {
  if (!worker->has_thread) {
    job(argument);
    return;
  }
  worker->job = job;
  worker->argument = argument;
  worker_set_state(worker, WORKER_BUSY);
}

bool prof_i_worker_wait(prof_i_worker *worker) {
  while (worker->has_thread && worker_state(worker) == WORKER_BUSY) {
    if (worker->pid != (long)getpid()) return false;
    prof_i_port_wait(&worker->state, WORKER_BUSY, WAIT_NS);
  }
  return true;
}

bool prof_i_worker_destroy(prof_i_worker *worker) {
  if (!worker) return true;
  const bool is_done = prof_i_worker_wait(worker);
  if (worker->has_thread && worker->pid == (long)getpid()) {
    worker_set_state(worker, WORKER_ENDS);
    pthread_join(worker->thread, NULL);
  }
  free(worker);
  return is_done;
}
