/* How the Python package (bindings/python) has its scopes made of C. Not for other programs: what
   these take and give may change with each version, and the package looks that it fits.
   SPDX-License-Identifier: MIT */
#ifndef PROF_PYTHON_H
#define PROF_PYTHON_H

#include <prof/status.h>
#include <stdint.h>

PROF_I_EXTERN_C_BEGIN

struct prof_i_python_given; /* src/python/interpreter.h */
struct prof_i_python_functions_given;
struct prof_trace;

/* An event that prof_cursor_read() has read. */
struct prof_i_python_source {
  const void *record;
  uint32_t kind, thread, site, reserved;
};

/* Puts `record_function`, `scope` and the type `Scope` into given's dict. The GIL is held. NULL:
   done; else a text that says why not, static, and nothing was put; the package has a slower way of
   its own. Once a process: the types belong to the interpreter that asked first, and others are
   told so. */
PROF_API const char *prof_i_python_1(const struct prof_i_python_given *given) PROF_I_NOEXCEPT;

/* From here on each scope has its innermost frames, so many, as the argument PROF_STACK_KEY; 0:
   none. Where functions are traced no scope takes any: those that run begin now, on each thread
   when it comes by. An error may be pending behind it. The GIL is held. */
PROF_API void prof_i_python_stacks_1(int frames) PROF_I_NOEXCEPT;

/* Puts what sees every Python function into given's dict: callbacks for sys.monitoring, a hook for
   threads, one for gc.callbacks, `start` and `stop`. The GIL is held, and prof_i_python_1() has
   succeeded. NULL: done; else a text that says why not. Once a process. */
PROF_API const char *prof_i_python_functions_1(const struct prof_i_python_functions_given *given)
    PROF_I_NOEXCEPT;

/* Writes the arguments of these events in sequence, in the layout of src/python/packed_args.c.
   Returns the count of events that fit, or a negative error. Any thread. */
PROF_API int64_t prof_i_python_arguments_1(const struct prof_trace *trace,
                                           const struct prof_i_python_source *sources,
                                           uint64_t count, void *to,
                                           uint64_t bytes) PROF_I_NOEXCEPT;

/* Selects the profile of one thread, while other threads had their own observe(). */
typedef struct prof_i_view_wish {
  size_t size;
  uint32_t number;          /* of its observe(), see src/format/observed.h; or 0 */
  uint32_t hides_functions; /* 1: traced functions appear only in stacks */
  uint32_t hides_modules;   /* 1: the same for calls of modules */
  uint32_t reserved;        /* 0 */
  const uint64_t *others;   /* the kernel's numbers of those threads */
  size_t other_count;
} prof_i_view_wish;

/* Creates a trace that shows only such a profile. It stays valid after the other trace is
   destroyed. Destroy it with prof_trace_destroy(). */
PROF_API int prof_i_trace_view_1(struct prof_trace *trace, const prof_i_view_wish *wish,
                                 struct prof_trace **view_out) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
