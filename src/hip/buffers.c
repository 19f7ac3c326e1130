/* rocprofiler's records on their way to the collector. rocprofiler hands them out on its own
   threads, only during its call. So they are copied into blocks of a pool. Nothing here takes a
   lock or calls malloc().
   Blocks and names are two mappings. The kernel adds their pages at the first write. */
#define _GNU_SOURCE
#include "internal.h"

#include <string.h>
#include <sys/mman.h>

static struct {
  const prof_backend_host *host;
  uint8_t *memory, *names;
  size_t name_bytes;    /* claimed; may be more than there are */
  uint32_t first_index; /* relaxed: where the last one was found */
  /* relaxed. dropped: by rocprofiler in all; reported_count: the part that the collector has
     counted */
  uint64_t lost, dropped, reported_count;
  prof_i_rocp_block *completed; /* newest first */
  prof_i_rocp_block blocks[PROF_I_ROCP_BLOCKS];
} rocp_pool;

/* False: there is no memory. What is mapped stays. */
static bool map_block_pages(uint8_t **memory, size_t bytes) {
  if (*memory) return true;
  void *const mapped =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped != MAP_FAILED) *memory = mapped;
  return *memory != NULL;
}

bool prof_i_rocp_buffers_prepare(const prof_backend_host *host) {
  rocp_pool.host = host;
  if (!map_block_pages(&rocp_pool.memory, (size_t)PROF_I_ROCP_BLOCKS * PROF_I_ROCP_BLOCK_BYTES) ||
      !map_block_pages(&rocp_pool.names, PROF_I_ROCP_NAMES_BYTES))
    return false;
  for (uint32_t i = 0; i < PROF_I_ROCP_BLOCKS; i++)
    rocp_pool.blocks[i].words =
        (uint64_t *)(void *)(rocp_pool.memory + (size_t)i * PROF_I_ROCP_BLOCK_BYTES);
  return true;
}

/* ---- rocprofiler's threads ---- */

/* Always prefers the same few, so that the others' pages are never added. */
static prof_i_rocp_block *take_free_block(void) {
  const uint32_t first_index = __atomic_load_n(&rocp_pool.first_index, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < PROF_I_ROCP_BLOCKS; i++) {
    const uint32_t at = (first_index + i) % PROF_I_ROCP_BLOCKS;
    uint32_t is_taken = 0;
    if (!__atomic_compare_exchange_n(&rocp_pool.blocks[at].is_taken, &is_taken, 1, false,
                                     __ATOMIC_ACQUIRE, __ATOMIC_RELAXED))
      continue;
    __atomic_store_n(&rocp_pool.first_index, at, __ATOMIC_RELAXED);
    rocp_pool.blocks[at].bytes = 0;
    return &rocp_pool.blocks[at];
  }
  return NULL;
}

static void complete_block(prof_i_rocp_block *block) {
  block->next = __atomic_load_n(&rocp_pool.completed, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&rocp_pool.completed, &block->next, block, true,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  rocp_pool.host->wake();
}

/* 0: it is no record. */
static size_t record_bytes_of(const prof_i_rocp_header *header) {
  const prof_i_rocp_record *const record = header->record;
  if (header->category != PROF_I_ROCP_BUFFER_CATEGORY_TRACING || !record) return 0;
  return record->size >= sizeof *record && record->size <= PROF_I_ROCP_BLOCK_BYTES
             ? ((size_t)record->size + 7) / 8 * 8
             : 0;
}

void prof_i_rocp_buffers_copy_records(prof_i_rocp_id context, prof_i_rocp_id buffer,
                                      prof_i_rocp_header **headers, size_t count, void *user,
                                      uint64_t dropped) {
  prof_i_rocp_block *block = NULL;
  (void)context;
  (void)buffer;
  (void)user;
  __atomic_store_n(&rocp_pool.dropped, dropped, __ATOMIC_RELAXED);
  for (size_t i = 0; i < count; i++) {
    const size_t bytes = headers[i] ? record_bytes_of(headers[i]) : 0;
    if (block && block->bytes + bytes > PROF_I_ROCP_BLOCK_BYTES) {
      complete_block(block);
      block = NULL;
    }
    if (bytes && !block) block = take_free_block();
    if (!bytes || !block) {
      __atomic_fetch_add(&rocp_pool.lost, 1, __ATOMIC_RELAXED);
      continue;
    }
    memcpy((uint8_t *)block->words + block->bytes, headers[i]->record,
           ((const prof_i_rocp_record *)headers[i]->record)->size);
    block->bytes += bytes;
  }
  if (block) complete_block(block);
}

void prof_i_rocp_name_add(uint64_t kernel, const char *text) {
  const size_t length = text ? strlen(text) : 0,
               bytes = (sizeof(prof_i_rocp_name) + length + 1 + 7) / 8 * 8;
  if (!length || bytes > PROF_I_ROCP_NAMES_BYTES) return;
  const size_t at = __atomic_fetch_add(&rocp_pool.name_bytes, bytes, __ATOMIC_RELAXED);
  if (at > PROF_I_ROCP_NAMES_BYTES - bytes) return;
  prof_i_rocp_name *const name = (prof_i_rocp_name *)(void *)(rocp_pool.names + at);
  name->kernel = kernel;
  name->bytes = (uint32_t)length;
  memcpy(name->text, text, length + 1);
  __atomic_store_n(&name->is_there, 1, __ATOMIC_RELEASE);
}

/* ---- the collector ---- */

prof_i_rocp_block *prof_i_rocp_blocks_take_full(void) {
  prof_i_rocp_block *newest = __atomic_exchange_n(&rocp_pool.completed, NULL, __ATOMIC_ACQUIRE),
                    *first_index = NULL;
  while (newest) {
    prof_i_rocp_block *const next = newest->next;
    newest->next = first_index;
    first_index = newest;
    newest = next;
  }
  return first_index;
}

void prof_i_rocp_block_give_back(prof_i_rocp_block *block) {
  __atomic_store_n(&block->is_taken, 0, __ATOMIC_RELEASE);
}

uint64_t prof_i_rocp_buffers_lost(void) {
  const uint64_t dropped = __atomic_load_n(&rocp_pool.dropped, __ATOMIC_RELAXED),
                 fresh =
                     dropped > rocp_pool.reported_count ? dropped - rocp_pool.reported_count : 0;
  rocp_pool.reported_count = dropped;
  return fresh + __atomic_exchange_n(&rocp_pool.lost, 0, __ATOMIC_RELAXED);
}

const prof_i_rocp_name *prof_i_rocp_name_next(size_t *at) {
  if (*at + sizeof(prof_i_rocp_name) > PROF_I_ROCP_NAMES_BYTES) return NULL;
  const prof_i_rocp_name *const name =
      (const prof_i_rocp_name *)(const void *)(rocp_pool.names + *at);
  if (!__atomic_load_n(&name->is_there, __ATOMIC_ACQUIRE)) return NULL;
  *at += (sizeof *name + name->bytes + 1 + 7) / 8 * 8;
  return name;
}
