/* Fibers: tasks with a stack of their own that the program itself switches (swapcontext(),
   Boost.Context). If a scope is open while its fiber is switched out, prof must know the fiber:

       prof_fiber *fiber;
       prof_fiber_create("worker 1", &fiber);
       prof_fiber_enter(fiber);   // just before the switch into it, on the thread that switches
       swapcontext(&scheduler, &task);
       prof_fiber_leave();        // just after the switch back
       prof_fiber_destroy(fiber); // when the task is done

   Between enter and leave, all that this thread records is the fiber's: it is a track of its own,
   as a thread is, with the fiber's name. Enter, while in another fiber, switches. A fiber may be
   entered on one thread and then on another, but is on one at a time. C++20's coroutines have no
   stack of their own: see docs/reference/macros.md. SPDX-License-Identifier: MIT */
#ifndef PROF_FIBER_H
#define PROF_FIBER_H

#include <prof/status.h>

PROF_I_EXTERN_C_BEGIN

typedef struct prof_fiber prof_fiber;

/* Creates a fiber, which no thread has entered. It may be created before prof_start(), and stays
   valid over stops, starts and clears. The name is copied and cut at 63 bytes; NULL: "fiber". The
   caller owns the fiber. Once it records, it uses as much memory as a thread: 8 KiB and a chunk.
   Errors: PROF_E_INVALID (fiber_out is NULL), PROF_E_NO_MEMORY. Any thread. */
PROF_API int prof_fiber_create(const char *name, prof_fiber **fiber_out) PROF_I_NOEXCEPT;

/* From here on this thread records into the fiber. NULL: the same as prof_fiber_leave(). Takes no
   lock, makes no system call. Not in a signal handler. Errors: PROF_E_INVALID (the fiber is on
   another thread; nothing changes). */
PROF_API int prof_fiber_enter(prof_fiber *fiber) PROF_I_NOEXCEPT;

/* From here on this thread records into its own track again. In no fiber: nothing. To be called
   before the thread ends. Not in a signal handler. */
PROF_API void prof_fiber_leave(void) PROF_I_NOEXCEPT;

/* Destroys the fiber. Its open scopes are lost as "thread ended". If this thread is in it, it
   leaves it first. NULL: nothing. Errors: PROF_E_INVALID (the fiber is on another thread; it
   stays). What was recorded stays in the capture. */
PROF_API int prof_fiber_destroy(prof_fiber *fiber) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
