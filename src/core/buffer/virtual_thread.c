/* Virtual threads: a device's stream, or a fiber, as a thread of the capture. See thread.h. */
#define _GNU_SOURCE
#include <signal.h>

#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "arena.h"
#include "thread_internal.h"

/* See thread_internal.h. A forked child has none of its parent's. */
prof_i_thread *prof_i_virtual_thread_owner(const prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread =
      virtual_thread ? __atomic_load_n(&virtual_thread->thread, __ATOMIC_RELAXED) : NULL;
  return thread && thread->process == prof_i_threads.process ? thread : &prof_i_no_thread;
}

prof_i_thread *prof_i_virtual_thread_attach(prof_i_virtual_thread *virtual_thread) {
  if (!__atomic_load_n(&prof_i_the_arena.base, __ATOMIC_ACQUIRE)) return NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  prof_i_this_thread = virtual_thread->thread ? virtual_thread->thread : &prof_i_no_thread;
  prof_i_thread *const thread =
      virtual_thread->thread ? prof_i_thread_attach() : prof_i_thread_attach_new(virtual_thread);
  if (thread) virtual_thread->thread = thread;
  return thread;
}

/* A handler between two of these stores records into one thread or the other, and may attach it. So
   the owner is loaded again. */
static void enter_virtual_thread(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  flags->virtual_thread = virtual_thread;
  PROF_I_SIGNAL_FENCE();
  prof_i_thread *const outer = prof_i_this_thread;
  virtual_thread->outer =
      outer == prof_i_virtual_thread_owner(virtual_thread) ? &prof_i_no_thread : outer;
  PROF_I_SIGNAL_FENCE();
  prof_i_this_thread = prof_i_virtual_thread_owner(virtual_thread);
}

static void leave_virtual_thread(void) {
  prof_i_thread_flags *const flags = &prof_i_this_flags;
  prof_i_virtual_thread *const virtual_thread = flags->virtual_thread;
  prof_i_this_thread = virtual_thread->outer;
  PROF_I_SIGNAL_FENCE();
  flags->virtual_thread = NULL;
  PROF_I_SIGNAL_FENCE();
  if (prof_i_this_thread == prof_i_virtual_thread_owner(virtual_thread))
    prof_i_this_thread = virtual_thread->outer;
  /* pairs with the acquire of the next thread that enters */
  __atomic_store_n(&virtual_thread->on, 0, __ATOMIC_RELEASE);
}

void prof_i_virtual_thread_enter(prof_i_virtual_thread *virtual_thread) {
  if (prof_i_this_flags.virtual_thread) leave_virtual_thread();
  if (virtual_thread) enter_virtual_thread(virtual_thread);
}

void prof_i_virtual_thread_end(prof_i_virtual_thread *virtual_thread) {
  prof_i_thread *const thread = virtual_thread->thread;
  if (!thread) return;
  virtual_thread->thread = NULL;
  prof_i_thread_adopt_name(virtual_thread->name);
  if (thread->process == prof_i_threads.process) prof_i_thread_exit(thread);
}

void prof_i_virtual_thread_end_fiber(prof_i_virtual_thread *virtual_thread) {
  sigset_t all, was;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &was); /* a handler's record would attach the thread anew */
  prof_i_virtual_thread *const line_was = prof_i_this_flags.virtual_thread;
  prof_i_virtual_thread_enter(virtual_thread);
  if (prof_i_is_attached(prof_i_this_thread)) prof_i_thread_exit(prof_i_this_thread);
  prof_i_virtual_thread_enter(line_was);
  pthread_sigmask(SIG_SETMASK, &was, NULL);
}
