/* A child under ptrace: walked instruction by instruction, run to one instruction, given a signal
   there. x86-64 only; a header only, since each test is one file. The child is killed when the test
   dies. */
#ifndef PROF_TESTS_TRACEE_H
#define PROF_TESTS_TRACEE_H

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hang_guard.h"

/* Where the child stands still: a stop's signal, or ended. */
typedef struct tracee {
  pid_t pid;      /* of the thread that is traced */
  pid_t process;  /* the child */
  int signal;     /* of the last stop; 0: it has ended */
  int status;     /* of waitpid */
  uint64_t steps; /* since it began */
} tracee;

/* On a busy machine a step takes 10 ms, and a walk minutes. So the hang guard begins anew with each
   child and each so many steps. A walk in an endless loop is found by its length. */
enum { TRACEE_STEPS_A_GUARD = 1024, TRACEE_STEPS_MAX = 1 << 22 };

static inline void tracee_wait(tracee *child) {
  pid_t pid;
  do pid = waitpid(child->pid, &child->status, __WALL);
  while (pid < 0 && errno == EINTR);
  if (pid > 0) child->pid = pid;
  child->signal = pid > 0 && WIFSTOPPED(child->status) ? WSTOPSIG(child->status) : 0;
}

typedef struct tracee_work {
  void (*body)(void *context);
  void *context;
} tracee_work;

static inline void *tracee_run(void *work) {
  const tracee_work *const what = work;
  if (ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0) _exit(77);
  what->body(what->context);
  return NULL;
}

/* Forks; the child runs body(context), in a thread of its own if asked, up to its first int3, and
   stands behind it. False: no ptrace here, or it ended before. */
static inline bool tracee_begin(tracee *child, void (*body)(void *context), void *context,
                                bool in_thread) {
  tracee_work work = {body, context};
  pthread_t thread;
  fflush(NULL);
  hang_guard();
  child->steps = 0;
  child->process = fork();
  if (child->process < 0) return false;
  if (child->process == 0) {
    if (!in_thread)
      tracee_run(&work);
    else if (pthread_create(&thread, NULL, tracee_run, &work) == 0)
      pthread_join(thread, NULL);
    _exit(0);
  }
  child->pid = -1; /* whichever thread it is that stops */
  tracee_wait(child);
  if (child->signal != SIGTRAP) return false;
  ptrace(PTRACE_SETOPTIONS, child->pid, NULL, (void *)(intptr_t)PTRACE_O_EXITKILL);
  return true;
}

/* A signal that the thread held comes in between: it is given on. */
static inline void tracee_step(tracee *child) {
  int held = 0;
  if (++child->steps % TRACEE_STEPS_A_GUARD == 0 && child->steps < TRACEE_STEPS_MAX) hang_guard();
  do {
    ptrace(PTRACE_SINGLESTEP, child->pid, NULL, (void *)(intptr_t)held);
    tracee_wait(child);
    held = child->signal;
  } while (held == SIGUSR1);
}

/* On to the next stop; signal 0: none is given. Where the thread holds signals, this one comes to
   it later: the kernel asks again then. */
static inline void tracee_continue(tracee *child, int signal) {
  do {
    ptrace(PTRACE_CONT, child->pid, NULL, (void *)(intptr_t)signal);
    tracee_wait(child);
  } while (signal && child->signal == signal);
}

static inline void tracee_end(tracee *child) {
  int status;
  kill(child->process, SIGKILL);
  while (waitpid(-1, &status, __WALL) > 0 || errno == EINTR) {
  }
}

#if defined(__x86_64__)
enum { TRACEE_PC = offsetof(struct user_regs_struct, rip) };
static inline void tracee_trap(void) { __asm__ volatile("int3" ::: "memory"); }
#else /* an exclusive load and store never come through when they are walked one by one */
enum { TRACEE_PC = 0 };
static inline void tracee_trap(void) { _exit(77); }
#endif

static inline uint64_t tracee_at(const tracee *child) {
  return (uint64_t)ptrace(PTRACE_PEEKUSER, child->pid, (void *)(uintptr_t)TRACEE_PC, NULL);
}

/* Runs to the occurrence-th time (from 1) that the child is about to execute the instruction at
   `at`: an int3 is put there. False: it stopped or ended elsewhere before. */
static inline bool tracee_run_to(tracee *child, uint64_t at, uint64_t occurrence) {
  if (tracee_at(child) == at && --occurrence == 0) return true;
  errno = 0;
  const long saved = ptrace(PTRACE_PEEKTEXT, child->pid, (void *)at, NULL);
  if (errno) return false;
  const long trap = (long)(((unsigned long)saved & ~0xfful) | 0xcc);
  if (tracee_at(child) == at) tracee_step(child);
  for (;;) {
    if (ptrace(PTRACE_POKETEXT, child->pid, (void *)at, (void *)trap) != 0) return false;
    tracee_continue(child, 0);
    if (!child->signal) return false;
    const bool hit = child->signal == SIGTRAP && tracee_at(child) == at + 1;
    ptrace(PTRACE_POKETEXT, child->pid, (void *)at, (void *)saved);
    if (!hit) return false;
    ptrace(PTRACE_POKEUSER, child->pid, (void *)(uintptr_t)TRACEE_PC, (void *)at);
    if (--occurrence == 0) return true;
    tracee_step(child);
  }
}

/* Runs until the function returns whose first instruction is next. False: it did not. */
static inline bool tracee_finish(tracee *child) {
#if defined(__x86_64__)
  const uint64_t top = (uint64_t)ptrace(PTRACE_PEEKUSER, child->pid,
                                        (void *)offsetof(struct user_regs_struct, rsp), NULL);
  return tracee_run_to(child, (uint64_t)ptrace(PTRACE_PEEKTEXT, child->pid, (void *)top, NULL), 1);
#else
  (void)child;
  return false;
#endif
}

#endif
