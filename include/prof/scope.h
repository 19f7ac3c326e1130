/* The scope macros, for C and C++.

   A macro evaluates its arguments once, before the start time is read, and only if its level is on.
   Off, a scope is two loads and a branch. The code appears once. So break, continue, return, goto
   and throw work as without the macro, and close the scope. See docs/reference/macros.md.
   SPDX-License-Identifier: MIT */
#ifndef PROF_SCOPE_H
#define PROF_SCOPE_H

#include <prof/args.h>
#include <prof/status.h>

/* ---- internal: what the macros use ---- */

/* A call site: a static object that is zero except for its source. The library writes `state` and
   keeps no pointer to the site. */
typedef struct prof_site {
  uint64_t state; /* epoch << 32 | number of the site; written by the library, relaxed */
  const char *file;
  const char *function;
  uint32_t line;
  uint32_t level;
  /* What the library has learnt of its arguments, if their keys are literals; relaxed. */
  uint64_t values;
} prof_site;

/* The parts of a scope besides a literal name. They are only read during the call. */
typedef struct prof_details {
  const char *name;
  const char *category;
  uint32_t name_bytes;     /* or PROF_NUL_TERMINATED */
  uint32_t category_bytes; /* or PROF_NUL_TERMINATED */
  uint32_t flags;          /* PROF_I_NAME_LITERAL and others */
  prof_device device;
  uint32_t reserved;
  uint64_t stream; /* of a device scope */
  prof_args args;
} prof_details;

enum {
  PROF_I_NAME_LITERAL = 1u,     /* the name belongs to the call site and is stored once */
  PROF_I_CATEGORY_LITERAL = 2u, /* the category, too */
  PROF_I_ON_STREAM = 4u,        /* WITH_GPU_PROFILER(): `stream` is valid */
  PROF_I_BY_CALL = 8u,          /* need not nest: see prof_scope_begin() */
  PROF_I_ASYNC = 16u,           /* asynchronous work, and not time of a thread */
  PROF_I_NO_DURATION = 32u      /* prof_i_instant_1(): an ended call of unknown duration */
};

PROF_I_EXTERN_C_BEGIN

/* Points to the level in force, in the arena's first page, so that another process may set it.
   Never NULL. */
extern PROF_API const uint32_t *prof_i_level_1;

/* Marks the copy of prof that has the call sites, if a process has several
   (docs/how-to/link-prof.md). */
extern PROF_API const char prof_i_copy_1;

/* Opens a scope. Returns its start, or 0 if it is not recorded. Takes less than 4 KiB of stack.
   Any thread. Signal-safe, also as the first scope of a forked child. */
PROF_API PROF_I_NO_PLT uint64_t prof_i_begin_1(prof_site *site, const char *name,
                                               const char *category) PROF_I_NOEXCEPT;
PROF_API PROF_I_NO_PLT uint64_t prof_i_begin_details_1(prof_site *site,
                                                       const prof_details *details) PROF_I_NOEXCEPT;

/* Fast paths. Values: up to PROF_I_VALUES_MAX arguments, each one word or NUL-terminated, with
   literal keys, name and category. Text: one text is the only argument. Name: a name that is made
   at run time, without arguments. They return PROF_I_NOT_SHORT if the site needs
   prof_i_begin_details_1().
   Any thread. Signal-safe. */
PROF_API PROF_I_NO_PLT uint64_t prof_i_begin_values_1(prof_site *site, uint64_t a, uint64_t b,
                                                      uint64_t c, uint64_t d) PROF_I_NOEXCEPT;
PROF_API PROF_I_NO_PLT uint64_t prof_i_begin_text_1(prof_site *site, const char *text,
                                                    uint32_t text_bytes) PROF_I_NOEXCEPT;
PROF_API PROF_I_NO_PLT uint64_t prof_i_begin_name_1(prof_site *site, const char *name,
                                                    uint32_t name_bytes) PROF_I_NOEXCEPT;
enum { PROF_I_VALUES_MAX = 4 };
#define PROF_I_NOT_SHORT UINT64_MAX
/* Closes a scope. start is not 0: call sites check it. Any thread. Signal-safe. */
PROF_API PROF_I_NO_PLT void prof_i_end_1(uint64_t start) PROF_I_NOEXCEPT;

/* Opens and closes a scope of work on a device's stream. If a back end serves the device, the
   device's times are recorded, too.
   Any thread. Not signal-safe, as vendors' calls are not. */
PROF_API uint64_t prof_i_gpu_begin_1(prof_site *site, const prof_details *details) PROF_I_NOEXCEPT;
PROF_API void prof_i_gpu_end_1(uint64_t start) PROF_I_NOEXCEPT;

/* Records an instant or a counter. Any thread. */
PROF_API void prof_i_instant_1(prof_site *site, const prof_details *details) PROF_I_NOEXCEPT;
PROF_API void prof_i_counter_1(prof_site *site, const char *name, double value) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#define PROF_I_INLINE static inline __attribute__((always_inline, unused))

#ifdef __cplusplus
PROF_I_INLINE bool prof_i_is_on(uint32_t level) noexcept {
#else
PROF_I_INLINE _Bool prof_i_is_on(uint32_t level) {
#endif
  return __atomic_load_n(__atomic_load_n(&prof_i_level_1, __ATOMIC_RELAXED), __ATOMIC_RELAXED) >=
         level;
}

/* In the condition itself: clang ignores an expectation inside an inlined function. */
#define PROF_I_IS_ON(level) __builtin_expect(prof_i_is_on(level), 0)

/* Is the text, after expansion, a string literal? Then it belongs to the site. Other texts are
   copied: a constant pointer may differ between the inlined copies of a function. */
#define PROF_I_STARTS_QUOTED(...) ((#__VA_ARGS__)[0] == '"')
/* Does the text begin so, after expansion? */
#define PROF_I_STARTS(text, ...) (__builtin_strncmp(#__VA_ARGS__, text, sizeof(text) - 1) == 0)

#ifdef __cplusplus
#define PROF_I_DOUBLE(value) static_cast<double>(value)
#define PROF_I_VOID(value) static_cast<void>(value)
#else
#define PROF_I_DOUBLE(value) ((double)(value))
#define PROF_I_VOID(value) ((void)(value))
#endif

#define PROF_I_SITE(level_) {0, __FILE__, __func__, __LINE__, (level_), 0}

#ifdef __cplusplus
#define PROF_I_LEVEL_CHECK(level_) \
  static_assert((level_) == 1 || (level_) == 2, "the level of a scope is the constant 1 or 2")
#else
#define PROF_I_LEVEL_CHECK(level_) \
  _Static_assert((level_) == 1 || (level_) == 2, "the level of a scope is the constant 1 or 2")
#endif

#ifndef __cplusplus

#define PROF_I_IS_LITERAL(...)          \
  (PROF_I_STARTS_QUOTED(__VA_ARGS__) && \
   __builtin_types_compatible_p(__typeof__(__VA_ARGS__), char[]))

PROF_I_INLINE _Bool prof_i_is_value(const prof_args *args, uint32_t i) {
  return i >= args->count ||
         (args->items[i].type != PROF_ARG_TENSOR &&
          (args->items[i].type != PROF_ARG_STRING || args->items[i].bytes == PROF_NUL_TERMINATED));
}

PROF_I_INLINE _Bool prof_i_are_values(const prof_args *args) {
  return args->kind == (PROF_ARGS_PAIRS | PROF_I_KEYS_LITERAL) && args->count > 0 &&
         args->count <= PROF_I_VALUES_MAX && prof_i_is_value(args, 0) && prof_i_is_value(args, 1) &&
         prof_i_is_value(args, 2) && prof_i_is_value(args, 3);
}

PROF_I_INLINE uint64_t prof_i_value(const prof_args *args, uint32_t i) {
  return i < args->count ? args->items[i].value.u64 : 0;
}

/* Arguments that are in the macro's own parameters are the same at each call, except for their
   values. Those of a variable are not. */
PROF_I_INLINE uint64_t prof_i_enter(prof_site *site, prof_device device, const char *name,
                                    const char *category, uint32_t flags, uint64_t stream,
                                    _Bool is_in_place, prof_args args) {
  if (!is_in_place) args.kind &= ~(uint32_t)PROF_I_KEYS_LITERAL;
  const _Bool is_host = device.type == PROF_DEVICE_CPU && device.index == 0;
  if (is_host && args.count == 0 && flags == (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL))
    return prof_i_begin_1(site, name, category);
  /* The compiler knows the following conditions: one of the two calls remains, or none. */
  uint64_t start = PROF_I_NOT_SHORT;
  if (is_host && args.count == 0 && flags == PROF_I_CATEGORY_LITERAL)
    start = prof_i_begin_name_1(site, name, PROF_NUL_TERMINATED);
  if (is_host && flags == (PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL) &&
      prof_i_are_values(&args))
    start = args.count == 1 && args.items[0].type == PROF_ARG_STRING
                ? prof_i_begin_text_1(site, args.items[0].value.text, args.items[0].bytes)
                : prof_i_begin_values_1(site, prof_i_value(&args, 0), prof_i_value(&args, 1),
                                        prof_i_value(&args, 2), prof_i_value(&args, 3));
  if (__builtin_expect(start != PROF_I_NOT_SHORT, 1)) return start;
  const prof_details details = {
      name, category, PROF_NUL_TERMINATED, PROF_NUL_TERMINATED, flags, device, 0, stream, args};
  return flags & PROF_I_ON_STREAM ? prof_i_gpu_begin_1(site, &details)
                                  : prof_i_begin_details_1(site, &details);
}

PROF_I_INLINE void prof_i_leave(const uint64_t *start) {
  if (__builtin_expect(*start != 0, 0)) prof_i_end_1(*start);
}
PROF_I_INLINE void prof_i_leave_stream(const uint64_t *start) {
  if (__builtin_expect(*start != 0, 0)) prof_i_gpu_end_1(*start);
}

#define PROF_I_OPEN(id, level_, dev, name, cat, flags, stream, args) \
  PROF_I_OPEN_UNTIL(prof_i_leave, id, level_, dev, name, cat, flags, stream, args)
#define PROF_I_OPEN_ON_STREAM(id, level_, dev, name, cat, flags, stream, args) \
  PROF_I_OPEN_UNTIL(prof_i_leave_stream, id, level_, dev, name, cat, flags, stream, args)
#define PROF_I_OPEN_UNTIL(leave, id, level_, dev, name, cat, flags, stream, args)               \
  __extension__ static prof_site PROF_I_CONCAT(prof_i_site_, id) = PROF_I_SITE(level_);         \
  PROF_I_LEVEL_CHECK(level_);                                                                   \
  const uint64_t PROF_I_CONCAT(prof_i_scope_, id) __attribute__((cleanup(leave), unused)) =     \
      PROF_I_IS_ON(level_)                                                                      \
          ? prof_i_enter(&PROF_I_CONCAT(prof_i_site_, id), (dev), (name), (cat),                \
                         (PROF_I_IS_LITERAL(name) ? PROF_I_NAME_LITERAL : 0u) |                 \
                             (PROF_I_IS_LITERAL(cat) ? PROF_I_CATEGORY_LITERAL : 0u) | (flags), \
                         (uint64_t)(stream),                                                    \
                         PROF_I_STARTS("((prof_args){(const prof_arg[]){", args), args)         \
          : 0

#define PROF_I_TYPE_CHECK(dev, name, cat, stream, args) \
  (void)sizeof(prof_i_enter((prof_site *)0, (dev), (name), (cat), 0, (uint64_t)(stream), 0, args))

#else /* C++ */

#include <prof/scope_cxx.h>

#endif

#ifndef PROF_DISABLE

#define PROF_I_WITH(id, level_, dev, name, cat, flags, stream, args, ...) \
  __extension__({                                                         \
    PROF_I_OPEN(id, level_, dev, name, cat, flags, stream, args);         \
    __VA_ARGS__;                                                          \
    (void)0;                                                              \
  })
#define PROF_I_WITH_STREAM(id, level_, dev, name, cat, stream, args, ...)              \
  __extension__({                                                                      \
    PROF_I_OPEN_ON_STREAM(id, level_, dev, name, cat, PROF_I_ON_STREAM, stream, args); \
    __VA_ARGS__;                                                                       \
    (void)0;                                                                           \
  })

/* A scope from here to the end of the enclosing block. */
#define PROF_SCOPE_LEVEL(level_, dev, name, cat, args) \
  PROF_I_OPEN(__COUNTER__, level_, dev, name, cat, 0u, 0, args)
#define PROF_GPU_SCOPE_LEVEL(level_, dev, stream, name, cat, args) \
  PROF_I_OPEN_ON_STREAM(__COUNTER__, level_, dev, name, cat, PROF_I_ON_STREAM, stream, args)
/* __func__ belongs to the site, as a literal does. */
#define PROF_I_FUNCTION(id) \
  PROF_I_OPEN(id, 1, PROF_HOST, __func__, "function", PROF_I_NAME_LITERAL, 0, PROF_NO_ARGS)

#define PROF_I_INSTANT(id, name, cat, args)                                              \
  __extension__({                                                                        \
    __extension__ static prof_site PROF_I_CONCAT(prof_i_site_, id) = PROF_I_SITE(1);     \
    if (PROF_I_IS_ON(1)) prof_i_mark(&PROF_I_CONCAT(prof_i_site_, id), name, cat, args); \
    (void)0;                                                                             \
  })
#define PROF_I_COUNTER(id, name, value)                                                 \
  __extension__({                                                                       \
    __extension__ static prof_site PROF_I_CONCAT(prof_i_site_, id) = PROF_I_SITE(1);    \
    if (PROF_I_IS_ON(1))                                                                \
      prof_i_counter_1(&PROF_I_CONCAT(prof_i_site_, id), (name), PROF_I_DOUBLE(value)); \
    (void)0;                                                                            \
  })

#else /* PROF_DISABLE: only the code remains, but all parameters are type-checked */

#define PROF_I_WITH(id, level_, dev, name, cat, flags, stream, args, ...) \
  __extension__({                                                         \
    PROF_I_LEVEL_CHECK(level_);                                           \
    PROF_I_TYPE_CHECK(dev, name, cat, stream, args);                      \
    __VA_ARGS__;                                                          \
    (void)0;                                                              \
  })
#define PROF_I_WITH_STREAM(id, level_, dev, name, cat, stream, args, ...) \
  PROF_I_WITH(id, level_, dev, name, cat, 0u, stream, args, __VA_ARGS__)
#define PROF_SCOPE_LEVEL(level_, dev, name, cat, args) \
  PROF_I_LEVEL_CHECK(level_);                          \
  PROF_I_TYPE_CHECK(dev, name, cat, 0, args)
#define PROF_GPU_SCOPE_LEVEL(level_, dev, stream, name, cat, args) \
  PROF_I_LEVEL_CHECK(level_);                                      \
  PROF_I_TYPE_CHECK(dev, name, cat, stream, args)
#define PROF_I_FUNCTION(id) PROF_SCOPE_LEVEL(1, PROF_HOST, __func__, "function", PROF_NO_ARGS)
#define PROF_I_INSTANT(id, name, cat, args) PROF_I_TYPE_CHECK(PROF_HOST, name, cat, 0, args)
#define PROF_I_COUNTER(id, name, value) \
  PROF_I_VOID(sizeof((prof_i_counter_1(NULL, (name), PROF_I_DOUBLE(value)), 0)))

#endif

/* WITH_BASE_PROFILER(dev, name, cat, args, code...): a scope around the code, one statement. Level
   1. Name and order of arguments are RAF's. */
#define WITH_BASE_PROFILER(dev, name, cat, args, ...) \
  PROF_I_WITH(__COUNTER__, 1, dev, name, cat, 0u, 0, args, __VA_ARGS__)
/* The same at level 1 or 2, a constant. */
#define WITH_BASE_PROFILER_LEVEL(level_, dev, name, cat, args, ...) \
  PROF_I_WITH(__COUNTER__, level_, dev, name, cat, 0u, 0, args, __VA_ARGS__)
/* A scope around code that puts work on a device's stream. If a back end serves the device
   (docs/reference/backends.md), an event is put on the stream before and after the code. Nothing
   waits for the events. The trace has the device's times as a scope of the stream. Not in a signal
   handler. */
#define WITH_GPU_PROFILER(dev, stream, name, cat, args, ...) \
  PROF_I_WITH_STREAM(__COUNTER__, 1, dev, name, cat, stream, args, __VA_ARGS__)
#define WITH_GPU_PROFILER_LEVEL(level_, dev, stream, name, cat, args, ...) \
  PROF_I_WITH_STREAM(__COUNTER__, level_, dev, name, cat, stream, args, __VA_ARGS__)
#define WITH_CUDA_PROFILER(dev, stream, name, cat, args, ...) \
  WITH_GPU_PROFILER(dev, stream, name, cat, args, __VA_ARGS__)
#define WITH_HIP_PROFILER(dev, stream, name, cat, args, ...) \
  WITH_GPU_PROFILER(dev, stream, name, cat, args, __VA_ARGS__)

/* Block forms: a scope from here to the end of the enclosing block. */
#define PROF_SCOPE(name) PROF_SCOPE_LEVEL(1, PROF_HOST, name, "scope", PROF_NO_ARGS)
#define PROF_GPU_SCOPE(dev, stream, name) \
  PROF_GPU_SCOPE_LEVEL(1, dev, stream, name, "scope", PROF_NO_ARGS)
/* The same with the function's name, __func__. */
#define PROF_FUNCTION() PROF_I_FUNCTION(__COUNTER__)

/* An instant, and a value of a graph. Level 1. A counter's name is stored with the site: use a
   literal. */
#define PROF_INSTANT(name, cat, args) PROF_I_INSTANT(__COUNTER__, name, cat, args)
#define PROF_COUNTER(name, value) PROF_I_COUNTER(__COUNTER__, name, value)

#ifndef __cplusplus
#define prof_i_mark(site, name, cat, args)                                                     \
  prof_i_instant_1(                                                                            \
      site, &(const prof_details){(name),                                                      \
                                  (cat),                                                       \
                                  PROF_NUL_TERMINATED,                                         \
                                  PROF_NUL_TERMINATED,                                         \
                                  (PROF_I_IS_LITERAL(name) ? PROF_I_NAME_LITERAL : 0u) |       \
                                      (PROF_I_IS_LITERAL(cat) ? PROF_I_CATEGORY_LITERAL : 0u), \
                                  {PROF_DEVICE_CPU, 0},                                        \
                                  0,                                                           \
                                  0,                                                           \
                                  args})
#endif

#endif
