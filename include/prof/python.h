/* Internal to the Python package (bindings/python): scopes of Python in C. Not for other programs.
   These functions may change with each version, and the package checks that they fit.
   SPDX-License-Identifier: MIT */
#ifndef PROF_PYTHON_H
#define PROF_PYTHON_H

#include <prof/status.h>
#include <stddef.h>
#include <stdint.h>

PROF_I_EXTERN_C_BEGIN

struct prof_i_python_given; /* src/python/internal.h */
struct prof_i_python_functions_given;
struct prof_trace;

/* An event that prof_cursor_read() has returned. */
struct prof_i_python_source {
  const void *record;
  uint32_t kind, thread, site, reserved;
};

/* Puts `record_function`, `scope` and the type `Scope` into the dict of `given`. Returns NULL, or a
   static text that says why not. Then nothing was put, and the package uses its slower way. Call it
   once in a process, and with the GIL: the types belong to the first interpreter that calls. Others
   get an error. */
PROF_API const char *prof_i_python_1(const struct prof_i_python_given *given) PROF_I_NOEXCEPT;

/* From now on each scope has its innermost `frames` frames as the argument PROF_STACK_KEY. 0: none.
   While functions are traced, scopes have none: the running functions begin now, on each thread at
   its next call. A Python error may be pending afterwards. Needs the GIL. */
PROF_API void prof_i_python_stacks_1(int frames) PROF_I_NOEXCEPT;

/* Puts the tracing of Python functions into the dict of `given`: callbacks for sys.monitoring,
   hooks for threads and gc.callbacks, `start`, `stop`. Returns NULL, or a text that says why not.
   Call it once in a process, with the GIL, after prof_i_python_1() has succeeded. */
PROF_API const char *prof_i_python_functions_1(const struct prof_i_python_functions_given *given)
    PROF_I_NOEXCEPT;

/* Sets the function that switches the recording of PyTorch's operators off (by = 1) and on (-1) in
   the calling thread. Calls may be nested. prof calls it before and after it runs a method of a
   value, such as str() of an argument. Needs the GIL. */
PROF_API void prof_i_python_silence_1(void (*silence)(int by)) PROF_I_NOEXCEPT;

/* Writes the arguments of these events in sequence, in the layout of src/python/packed_args.c.
   Returns the number of events that fit, or a negative error.
   Any thread. */
PROF_API int64_t prof_i_python_arguments_1(const struct prof_trace *trace,
                                           const struct prof_i_python_source *sources,
                                           uint64_t count, void *to,
                                           uint64_t bytes) PROF_I_NOEXCEPT;

/* Selects the profile of one thread, while other threads had their own observe(). */
typedef struct prof_i_view_wish {
  size_t size;
  uint32_t number;          /* of its observe(), see src/format/layout.h; or 0 */
  uint32_t hides_functions; /* 1: traced functions appear only in stacks */
  uint32_t hides_modules;   /* 1: calls of modules, too */
  uint32_t reserved;        /* 0 */
  const uint64_t *others;   /* the kernel's numbers of those threads */
  size_t other_count;
} prof_i_view_wish;

/* Creates a trace that shows only that profile. It stays valid after the first trace is destroyed.
   The caller destroys it with prof_trace_destroy().
   Any thread. */
PROF_API int prof_i_trace_view_1(struct prof_trace *trace, const prof_i_view_wish *wish,
                                 struct prof_trace **view_out) PROF_I_NOEXCEPT;

struct ArrowArrayStream;
struct prof_arrow_options;

enum { PROF_I_ARROW_COUNTS = 9 };

/* Selects the events of a stream as `prof dump` does. */
typedef struct prof_i_arrow_wish {
  size_t size;
  const struct prof_arrow_options *options; /* NULL: the default */
  /* "name=REGEX", "arg=KEY=VALUE": options of the command without their dashes. They and `counts`
     must stay valid until the stream is released. */
  const char *const *filters;
  size_t filter_count; /* 0: no filter */
  /* PROF_I_ARROW_COUNTS counts of the events read so far, if there is a filter. First, the events
     that passed. Then, as pairs of written and left out: scopes, arrows, allocations and frees,
     counters and instants. May be NULL. */
  uint64_t *counts;
} prof_i_arrow_wish;

/* As prof_trace_arrow().
   Any thread. */
PROF_API int prof_i_trace_arrow_1(const struct prof_trace *trace, const prof_i_arrow_wish *wish,
                                  struct ArrowArrayStream *stream_out) PROF_I_NOEXCEPT;

/* Moves the stream into a new PyCapsule "arrow_array_stream", and returns the capsule. NULL: a
   Python error is pending, or this is not CPython. Then the stream was released. Needs the GIL. */
PROF_API void *prof_i_python_capsule_1(struct ArrowArrayStream *stream) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
