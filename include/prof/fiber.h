/* Fibers: tasks with their own stacks that the program switches itself (swapcontext(),
   Boost.Context). If a scope may be open while its fiber is switched out, prof must know the fiber:

       prof_fiber *fiber;
       prof_fiber_create("worker 1", &fiber);
       prof_fiber_enter(fiber);   // before the switch, on the same thread
       swapcontext(&scheduler, &task);
       prof_fiber_leave();        // after the switch back
       prof_fiber_destroy(fiber); // when the task is done

   Between enter and leave, all records of the thread belong to the fiber. Traces show it as a
   thread with the fiber's name. A fiber may be entered on different threads, but on one at a time.
   C++20's coroutines have no stack of their own: see docs/reference/macros.md.
   SPDX-License-Identifier: MIT */
#ifndef PROF_FIBER_H
#define PROF_FIBER_H

#include <prof/status.h>

PROF_I_EXTERN_C_BEGIN

/* A fiber. The caller owns it. */
typedef struct prof_fiber prof_fiber;

/* Creates a fiber, also before prof_start(). It stays valid across stops, starts and clears. The
   name is copied and cut at 63 bytes; NULL: "fiber". While it records, a fiber uses as much memory
   as a thread: 8 KiB and a chunk.
   Errors:
   PROF_E_INVALID: fiber_out is NULL.
   PROF_E_NO_MEMORY.
   Any thread. */
PROF_API int prof_fiber_create(const char *name, prof_fiber **fiber_out) PROF_I_NOEXCEPT;

/* Records of this thread now belong to the fiber. In another fiber, it switches. NULL: as
   prof_fiber_leave(). It takes no lock and makes no system call.
   PROF_E_INVALID: the fiber is on another thread. Nothing changes.
   Any thread. Not in a signal handler. */
PROF_API int prof_fiber_enter(prof_fiber *fiber) PROF_I_NOEXCEPT;

/* Records of this thread belong to the thread again. Without a fiber it does nothing. Call it
   before the thread ends.
   Any thread. Not in a signal handler. */
PROF_API void prof_fiber_leave(void) PROF_I_NOEXCEPT;

/* Destroys the fiber; its records stay in the capture. Its open scopes are lost (thread_ended). If
   this thread is in the fiber, it leaves it first. NULL is ignored.
   PROF_E_INVALID: the fiber is on another thread. It is not destroyed.
   Any thread. Not in a signal handler. */
PROF_API int prof_fiber_destroy(prof_fiber *fiber) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
