/* The names that the process calls in place of libc's. Each calls the next allocator, and reports
   to prof: an alloc afterwards, a free before. A realloc is a free and an alloc. A pair costs at
   most 60 ns more than without (bench/preload.c); if PROF_MEMORY is not set, 3 to 4. The library is
   linked to libprof.so, so that the process has one prof. */
#define _GNU_SOURCE
#include <errno.h>
#include <stddef.h>
#include <string.h>

#include "malloc_report.h"
#include "next_allocator.h"

#define SHOWN __attribute__((visibility("default")))

/* Not by libc's headers, which declare only some of them, by standard and version. */
SHOWN void *malloc(size_t bytes);
SHOWN void *calloc(size_t count, size_t bytes);
SHOWN void *realloc(void *piece, size_t bytes);
SHOWN void *reallocarray(void *piece, size_t count, size_t bytes);
SHOWN void free(void *piece);
SHOWN void free_sized(void *piece, size_t bytes);
SHOWN void free_aligned_sized(void *piece, size_t alignment, size_t bytes);
SHOWN void *memalign(size_t alignment, size_t bytes);
SHOWN void *aligned_alloc(size_t alignment, size_t bytes);
SHOWN int posix_memalign(void **piece_out, size_t alignment, size_t bytes);
SHOWN void *valloc(size_t bytes);
SHOWN void *pvalloc(size_t bytes);

void *malloc(size_t bytes) {
  void *const piece = prof_i_next_allocator()->malloc(bytes);
  prof_i_malloc_report_alloc(piece, bytes);
  return piece;
}

void *calloc(size_t count, size_t bytes) {
  void *const piece = prof_i_next_allocator()->calloc(count, bytes);
  prof_i_malloc_report_alloc(piece, count * bytes); /* it has fitted */
  return piece;
}

void free(void *piece) {
  if (!piece || prof_i_is_bootstrap_memory(piece)) return;
  const prof_i_malloc_functions *const next = prof_i_next_allocator();
  prof_i_malloc_report_free(piece);
  next->free(piece);
}

void free_sized(void *piece, size_t bytes) {
  (void)bytes;
  free(piece);
}

void free_aligned_sized(void *piece, size_t alignment, size_t bytes) {
  (void)alignment;
  (void)bytes;
  free(piece);
}

static void *move_from_bootstrap(void *piece, size_t bytes) {
  void *const fresh = malloc(bytes);
  const size_t most = prof_i_bootstrap_bytes_at(piece);
  if (fresh) memcpy(fresh, piece, most < bytes ? most : bytes);
  return fresh;
}

/* Reports the free before the call: the block may move, and another thread may get its place before
   the call returns. A failed call leaves the block as it was. The size that its alloc requested is
   not known here, so its real size is reported. With 0 bytes NULL is a free. */
void *realloc(void *piece, size_t bytes) {
  if (!piece) return malloc(bytes);
  if (prof_i_is_bootstrap_memory(piece)) return move_from_bootstrap(piece, bytes);
  const prof_i_malloc_functions *const next = prof_i_next_allocator();
  const size_t told = prof_i_malloc_report_free(piece);
  void *const fresh = next->realloc(piece, bytes);
  if (fresh)
    prof_i_malloc_report_alloc(fresh, bytes);
  else if (bytes && told)
    prof_i_malloc_report_alloc(piece, told);
  return fresh;
}

void *reallocarray(void *piece, size_t count, size_t bytes) {
  size_t all;
  if (!__builtin_mul_overflow(count, bytes, &all)) return realloc(piece, all);
  errno = ENOMEM;
  return NULL;
}

void *memalign(size_t alignment, size_t bytes) {
  void *const piece = prof_i_next_allocator()->memalign(alignment, bytes);
  prof_i_malloc_report_alloc(piece, bytes);
  return piece;
}

void *aligned_alloc(size_t alignment, size_t bytes) {
  void *const piece = prof_i_next_allocator()->aligned_alloc(alignment, bytes);
  prof_i_malloc_report_alloc(piece, bytes);
  return piece;
}

int posix_memalign(void **piece_out, size_t alignment, size_t bytes) {
  const int error = prof_i_next_allocator()->posix_memalign(piece_out, alignment, bytes);
  if (!error) prof_i_malloc_report_alloc(*piece_out, bytes);
  return error;
}

void *valloc(size_t bytes) {
  void *const piece = prof_i_next_allocator()->valloc(bytes);
  prof_i_malloc_report_alloc(piece, bytes);
  return piece;
}

void *pvalloc(size_t bytes) {
  void *const piece = prof_i_next_allocator()->pvalloc(bytes);
  prof_i_malloc_report_alloc(piece, bytes);
  return piece;
}
