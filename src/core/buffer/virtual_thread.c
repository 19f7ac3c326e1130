/* Which thread the calling thread records as: itself, or a fiber that it is in. See thread.h. The
   attach of a virtual thread is in thread.c, its end in thread_exit.c. */
#include "../../base/port.h"
#include "../../base/this_thread.h"
#include "thread_internal.h"

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
