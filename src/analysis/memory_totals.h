/* Bytes that scopes allocate, less those that they free, counted as in torch.profiler. They are
   added up during a walk. The walk emits an event before the scope around it, and inner scopes
   before outer ones. So sums are kept by depth until the enclosing scope ends. The memory is the
   caller's. aggregate_thread.c adds up. One thread at a time. */
#ifndef PROF_ANALYSIS_MEMORY_TOTALS_H
#define PROF_ANALYSIS_MEMORY_TOTALS_H

#include <stdbool.h>

#include "../reader/walk.h"

/* Bytes; device: of all devices but the host. */
typedef struct prof_i_scope_bytes {
  int64_t host, self_host, device, self_device;
} prof_i_scope_bytes;

/* Allocations and frees that no scope encloses. */
typedef struct prof_i_unscoped_memory {
  uint64_t count, first_ns; /* first_ns: of the earliest one */
  int64_t host, device;
} prof_i_unscoped_memory;

/* What is at one depth: its own bytes (self) and all of them; the count and the time of its own. */
typedef struct prof_i_pending_memory {
  prof_i_scope_bytes scope_bytes;
  uint64_t count, first_ns;
} prof_i_pending_memory;

typedef struct prof_i_memory_totals {
  prof_i_pending_memory *pending; /* by depth */
  uint32_t room;
} prof_i_memory_totals;

void prof_i_memory_totals_fini(prof_i_memory_totals *sums);

/* A damaged capture may have any values. Sums wrap around, without undefined behaviour. */
static inline int64_t prof_i_bytes_add_wrapping(int64_t a, int64_t b) {
  return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline void prof_i_scope_bytes_add(prof_i_scope_bytes *to, const prof_i_scope_bytes *from) {
  to->host = prof_i_bytes_add_wrapping(to->host, from->host);
  to->self_host = prof_i_bytes_add_wrapping(to->self_host, from->self_host);
  to->device = prof_i_bytes_add_wrapping(to->device, from->device);
  to->self_device = prof_i_bytes_add_wrapping(to->self_device, from->self_device);
}

#endif
