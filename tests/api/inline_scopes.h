/* Scopes in inline functions of a header: the test program and plugins/second_unit include it, as
   two translation units of one program would. Whichever copy runs, it is one call site, and its
   name is its own. */
#ifndef PROF_TEST_API_INLINE_SCOPES_H
#define PROF_TEST_API_INLINE_SCOPES_H

#include <prof/profiler.h>

static inline void inline_literal_scope(void) {
  WITH_BASE_PROFILER(PROF_HOST, "in a header", "inline", PROF_NO_ARGS, { __asm__ volatile(""); });
}

/* The trap: inlined, the name is a constant of each call, and still it does not belong to the
   site. */
static inline void inline_named_scope(const char *name) {
  WITH_BASE_PROFILER(PROF_HOST, name, "inline", PROF_NO_ARGS, { __asm__ volatile(""); });
}

static inline void inline_block_scope(void) {
  PROF_FUNCTION();
  PROF_INSTANT("inside", "inline", PROF_NO_ARGS);
}

#ifdef __cplusplus
template <class T>
inline int template_scope(T value) {
  WITH_BASE_PROFILER(PROF_HOST, "in a template", "inline", PROF_ARGS("value", value),
                     { return static_cast<int>(value); });
  return -1;
}
#endif

#endif
