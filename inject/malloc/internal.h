/* The allocator behind this library: what RTLD_NEXT finds, libc's or another preloaded one. Found
   at the first call. Until then, and for dlsym() itself, a few KiB of static memory serve. */
#ifndef PROF_INJECT_MALLOC_INTERNAL_H
#define PROF_INJECT_MALLOC_INTERNAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_malloc_functions {
  void *(*malloc)(size_t);
  void *(*calloc)(size_t, size_t);
  void *(*realloc)(void *, size_t);
  void (*free)(void *);
  void *(*memalign)(size_t, size_t);
  void *(*aligned_alloc)(size_t, size_t);
  int (*posix_memalign)(void **, size_t, size_t);
  void *(*valloc)(size_t);
  void *(*pvalloc)(size_t);
  /* NULL: the allocator has none, so what a free gives back is not known */
  size_t (*malloc_usable_size)(void *);
} prof_i_malloc_functions;

/* written once, by the process's first call, when it has one thread */
extern prof_i_malloc_functions prof_i_next_functions;
extern bool prof_i_next_allocator_is_found;

__attribute__((cold)) void prof_i_next_allocator_find(void);

static inline const prof_i_malloc_functions *prof_i_next_allocator(void) {
  if (__builtin_expect(!prof_i_next_allocator_is_found, 0)) prof_i_next_allocator_find();
  return &prof_i_next_functions;
}

/* Blocks of the static memory are not reported, and never freed. */
enum { PROF_I_BOOTSTRAP_BYTES = 16384 };
extern char prof_i_bootstrap_memory[PROF_I_BOOTSTRAP_BYTES];
static inline bool prof_i_is_bootstrap_memory(const void *piece) {
  return (uintptr_t)piece - (uintptr_t)prof_i_bootstrap_memory < PROF_I_BOOTSTRAP_BYTES;
}
size_t prof_i_bootstrap_bytes_at(
    const void *piece); /* from here to the end: at least the piece's */

#endif
