/* Finds the allocator behind this library, and serves calls until then. See internal.h. */
#define _GNU_SOURCE
#include "internal.h"

#include <dlfcn.h>
#include <errno.h>
#include <string.h>

enum { ALIGNMENT = 16 };

_Alignas(ALIGNMENT) char prof_i_bootstrap_memory[PROF_I_BOOTSTRAP_BYTES];
bool prof_i_next_allocator_is_found;

static size_t bootstrap_used;

size_t prof_i_bootstrap_bytes_at(const void *piece) {
  return PROF_I_BOOTSTRAP_BYTES - ((uintptr_t)piece - (uintptr_t)prof_i_bootstrap_memory);
}

/* Atomic, in case there is a second thread that early. */
static void *bootstrap_memalign(size_t alignment, size_t bytes) {
  const size_t slack = alignment > ALIGNMENT ? alignment : 0;
  const size_t room = bytes < PROF_I_BOOTSTRAP_BYTES && slack < PROF_I_BOOTSTRAP_BYTES
                          ? (bytes + slack + ALIGNMENT) & ~(size_t)(ALIGNMENT - 1)
                          : PROF_I_BOOTSTRAP_BYTES;
  const size_t at = __atomic_fetch_add(&bootstrap_used, room, __ATOMIC_RELAXED);
  if (at >= PROF_I_BOOTSTRAP_BYTES || room > PROF_I_BOOTSTRAP_BYTES - at) {
    errno = ENOMEM;
    return NULL;
  }
  const uintptr_t address = (uintptr_t)&prof_i_bootstrap_memory[at];
  return &prof_i_bootstrap_memory[at + (slack ? (0 - address) & (slack - 1) : 0)];
}

static void *bootstrap_malloc(size_t bytes) { return bootstrap_memalign(ALIGNMENT, bytes); }

/* Never used before, so it is zero. */
static void *bootstrap_calloc(size_t count, size_t bytes) {
  size_t all;
  return bootstrap_malloc(__builtin_mul_overflow(count, bytes, &all) ? SIZE_MAX : all);
}

static void *bootstrap_realloc(void *piece, size_t bytes) {
  void *const fresh = bootstrap_malloc(bytes);
  if (fresh && piece)
    memcpy(fresh, piece,
           prof_i_bootstrap_bytes_at(piece) < bytes ? prof_i_bootstrap_bytes_at(piece) : bytes);
  return fresh;
}

static void bootstrap_free(void *piece) { (void)piece; }

static int bootstrap_posix_memalign(void **piece_out, size_t alignment, size_t bytes) {
  void *const piece = bootstrap_memalign(alignment, bytes);
  if (piece) *piece_out = piece;
  return piece ? 0 : ENOMEM;
}

static size_t bootstrap_usable_size(void *piece) {
  (void)piece;
  return 0;
}

/* pvalloc, valloc: not used that early. */
prof_i_malloc_functions prof_i_next_functions = {.malloc = bootstrap_malloc,
                                                 .calloc = bootstrap_calloc,
                                                 .realloc = bootstrap_realloc,
                                                 .free = bootstrap_free,
                                                 .memalign = bootstrap_memalign,
                                                 .aligned_alloc = bootstrap_memalign,
                                                 .posix_memalign = bootstrap_posix_memalign,
                                                 .valloc = bootstrap_malloc,
                                                 .pvalloc = bootstrap_malloc,
                                                 .malloc_usable_size = bootstrap_usable_size};

static void *refused_size(size_t bytes) {
  (void)bytes;
  errno = ENOMEM;
  return NULL;
}

/* dlsym() gives functions as objects. What another C library lacks (pvalloc) keeps the entry that
   is there. */
#define FIND(next, name)                                    \
  do {                                                      \
    void *const found = dlsym(RTLD_NEXT, #name);            \
    if (found) memcpy(&(next)->name, &found, sizeof found); \
  } while (0)

static const void *shared_object_of(const void *function) {
  Dl_info info;
  return dladdr(function, &info) ? info.dli_fbase : NULL;
}

/* An allocator without malloc_usable_size() would get libc's, which must not be called with blocks
   that are not libc's. */
static bool has_own_sizes(const prof_i_malloc_functions *next) {
  const void *get, *size;
  memcpy(&get, &next->malloc, sizeof get);
  memcpy(&size, &next->malloc_usable_size, sizeof size);
  return shared_object_of(get) == shared_object_of(size);
}

/* Calls that dlsym() makes meanwhile find the first memory in the table. */
void prof_i_next_allocator_find(void) {
  static bool is_finding;
  if (is_finding) return;
  is_finding = true;
  const int saved = errno;
  prof_i_malloc_functions next = prof_i_next_functions;
  next.valloc = next.pvalloc = refused_size;
  FIND(&next, malloc);
  FIND(&next, calloc);
  FIND(&next, realloc);
  FIND(&next, free);
  FIND(&next, memalign);
  FIND(&next, aligned_alloc);
  FIND(&next, posix_memalign);
  FIND(&next, valloc);
  FIND(&next, pvalloc);
  FIND(&next, malloc_usable_size);
  if (!has_own_sizes(&next)) next.malloc_usable_size = NULL;
  prof_i_next_functions = next;
  prof_i_next_allocator_is_found = true;
  errno = saved;
}
