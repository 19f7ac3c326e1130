/* rocprofiler's records on their way to the collector. rocprofiler hands them out on its own
   threads, only during its call. So they are copied into blocks of a pool. Nothing here takes a
   lock or calls malloc(). */
#ifndef PROF_HIP_BUFFERS_H
#define PROF_HIP_BUFFERS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "tracer_api.h"

enum {
  PROF_I_ROCP_BLOCK_BYTES = 1 << 18,
  PROF_I_ROCP_BLOCKS = 256,
  PROF_I_ROCP_NAMES_BYTES = 64 << 20 /* of address space: all kernels' names of a large library */
};

typedef struct prof_i_rocp_block {
  struct prof_i_rocp_block *next;
  uint64_t *words; /* records, each a multiple of 8 bytes */
  size_t bytes;    /* filled */
  uint32_t is_taken;
} prof_i_rocp_block;

/* A kernel that was loaded. */
typedef struct prof_i_rocp_name {
  uint64_t kernel;
  uint32_t bytes, is_there; /* is_there: release */
  char text[];
} prof_i_rocp_name;

/* False: no memory. One thread at a time. */
bool prof_i_rocp_buffers_prepare(const prof_backend_host *host);

/* ---- rocprofiler's threads, and the program's ---- */

/* For rocprofiler_create_buffer(). */
void prof_i_rocp_buffers_copy_records(prof_i_rocp_id context, prof_i_rocp_id buffer,
                                      prof_i_rocp_header **headers, size_t count, void *user,
                                      uint64_t dropped);
void prof_i_rocp_name_add(uint64_t kernel, const char *text);

/* ---- the collector ---- */

/* Takes the full blocks, oldest first, and returns each to the pool when it has been read. */
prof_i_rocp_block *prof_i_rocp_blocks_take_full(void);
void prof_i_rocp_block_give_back(prof_i_rocp_block *block);

/* How many records found no block, or were dropped by rocprofiler, since the last time. */
uint64_t prof_i_rocp_buffers_lost(void);

/* The next name that was put since *at, which begins with 0; NULL: no more so far. */
const prof_i_rocp_name *prof_i_rocp_name_next(size_t *at);

#endif
