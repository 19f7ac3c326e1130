/* A pool of buffers that CUPTI fills with records. CUPTI requests them on any thread and gives them
   back full. Nothing here takes a lock or calls malloc(), because CUPTI asks under its own locks. A
   buffer is freed only after CUPTI has given it back.
   The large ones are one mapping, whose pages come when they are first written. CUPTI before
   12.9 crashes if it is given none, so there is always one. */
#define _GNU_SOURCE
#include "internal.h"

#include <stddef.h>
#include <sys/mman.h>

static struct {
  const prof_backend_host *host;
  uint8_t *memory;                /* of the large ones */
  uint32_t may_refuse;            /* relaxed */
  uint32_t lent, first_index;     /* relaxed; first: where the last one was found */
  uint64_t lost;                  /* relaxed */
  prof_i_cupti_buffer *completed; /* newest first */
  prof_i_cupti_buffer large[PROF_I_CUPTI_BUFFERS], small[PROF_I_CUPTI_SMALL_BUFFERS];
} cupti_pool;

/* NULL: all are in use. */
static uint8_t *map_buffer_pages(size_t bytes) {
  uint8_t *const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  return memory;
}

bool prof_i_cupti_buffers_prepare(const prof_backend_host *host, bool may_refuse) {
  __atomic_store_n(&cupti_pool.may_refuse, may_refuse, __ATOMIC_RELAXED);
  if (cupti_pool.memory) return true;
  uint8_t *const memory =
      map_buffer_pages((size_t)PROF_I_CUPTI_BUFFERS * PROF_I_CUPTI_BUFFER_BYTES);
  if (!memory) return false;
  for (uint32_t i = 0; i < PROF_I_CUPTI_BUFFERS; i++)
    cupti_pool.large[i].records = memory + (size_t)i * PROF_I_CUPTI_BUFFER_BYTES;
  cupti_pool.host = host;
  cupti_pool.memory = memory;
  return true;
}

/* ---- CUPTI's threads ---- */

static bool try_lend_buffer(prof_i_cupti_buffer *buffer) {
  uint32_t is_lent = 0;
  return __atomic_compare_exchange_n(&buffer->is_lent, &is_lent, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* The same few again and again: the others' pages never come. */
static uint8_t *lend_large_buffer(void) {
  const uint32_t first_index = __atomic_load_n(&cupti_pool.first_index, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < PROF_I_CUPTI_BUFFERS; i++) {
    const uint32_t at = (first_index + i) % PROF_I_CUPTI_BUFFERS;
    if (!try_lend_buffer(&cupti_pool.large[at])) continue;
    __atomic_store_n(&cupti_pool.first_index, at, __ATOMIC_RELAXED);
    return cupti_pool.large[at].records;
  }
  return NULL;
}

static uint8_t *lend_small_buffer(void) {
  for (uint32_t i = 0; i < PROF_I_CUPTI_SMALL_BUFFERS; i++) {
    prof_i_cupti_buffer *const buffer = &cupti_pool.small[i];
    if (!try_lend_buffer(buffer)) continue;
    uint8_t *const records = map_buffer_pages(PROF_I_CUPTI_SMALL_BYTES);
    __atomic_store_n(&buffer->records, records, __ATOMIC_RELEASE);
    if (!records) __atomic_store_n(&buffer->is_lent, 0, __ATOMIC_RELEASE);
    return records;
  }
  return NULL;
}

/* A buffer that comes back with an unknown address: its memory and its records are lost. */
static uint8_t *lend_untracked_pages(void) {
  __atomic_fetch_add(&cupti_pool.lost, 1, __ATOMIC_RELAXED);
  return map_buffer_pages(PROF_I_CUPTI_SMALL_BYTES);
}

void prof_i_cupti_buffer_request(uint8_t **records_out, size_t *bytes_out,
                                 size_t *records_max_out) {
  const bool may_refuse = __atomic_load_n(&cupti_pool.may_refuse, __ATOMIC_RELAXED);
  *records_max_out = 0; /* as many as fit */
  *bytes_out = PROF_I_CUPTI_BUFFER_BYTES;
  if ((*records_out = lend_large_buffer()) == NULL) {
    cupti_pool.host->wake();
    *bytes_out = PROF_I_CUPTI_SMALL_BYTES;
    *records_out = lend_small_buffer();
  }
  if (*records_out)
    __atomic_fetch_add(&cupti_pool.lent, 1, __ATOMIC_RELAXED);
  else if (!may_refuse)
    *records_out = lend_untracked_pages();
  if (!*records_out) *bytes_out = 0;
}

/* NULL: it is not ours. Whoever registered his callbacks before may have lent it. */
static prof_i_cupti_buffer *find_buffer(const uint8_t *records) {
  const size_t offset = (size_t)(records - cupti_pool.memory);
  if (records >= cupti_pool.memory &&
      offset < (size_t)PROF_I_CUPTI_BUFFERS * PROF_I_CUPTI_BUFFER_BYTES)
    return &cupti_pool.large[offset / PROF_I_CUPTI_BUFFER_BYTES];
  for (uint32_t i = 0; records && i < PROF_I_CUPTI_SMALL_BUFFERS; i++)
    if (__atomic_load_n(&cupti_pool.small[i].records, __ATOMIC_ACQUIRE) == records)
      return &cupti_pool.small[i];
  return NULL;
}

void prof_i_cupti_buffer_complete(prof_i_cu_context context, uint32_t stream, uint8_t *records,
                                  size_t bytes, size_t valid_bytes) {
  prof_i_cupti_buffer *const buffer = find_buffer(records);
  (void)context;
  (void)stream;
  if (!buffer) return;
  buffer->valid_bytes = valid_bytes < bytes ? valid_bytes : bytes;
  buffer->next = __atomic_load_n(&cupti_pool.completed, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&cupti_pool.completed, &buffer->next, buffer, true,
                                      __ATOMIC_RELEASE, __ATOMIC_RELAXED)) {
  }
  cupti_pool.host->wake();
}

/* ---- the collector ---- */

prof_i_cupti_buffer *prof_i_cupti_buffers_take_full(void) {
  prof_i_cupti_buffer *newest = __atomic_exchange_n(&cupti_pool.completed, NULL, __ATOMIC_ACQUIRE),
                      *first_index = NULL;
  while (newest) {
    prof_i_cupti_buffer *const next = newest->next;
    newest->next = first_index;
    first_index = newest;
    newest = next;
  }
  return first_index;
}

void prof_i_cupti_buffer_give_back(prof_i_cupti_buffer *buffer) {
  uint8_t *const records = buffer->records;
  if (buffer >= cupti_pool.small && buffer < cupti_pool.small + PROF_I_CUPTI_SMALL_BUFFERS) {
    __atomic_store_n(&buffer->records, NULL, __ATOMIC_RELAXED);
    munmap(records, PROF_I_CUPTI_SMALL_BYTES);
  }
  __atomic_fetch_sub(&cupti_pool.lent, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&buffer->is_lent, 0, __ATOMIC_RELEASE);
}

uint32_t prof_i_cupti_buffers_lent(void) {
  return __atomic_load_n(&cupti_pool.lent, __ATOMIC_RELAXED);
}

uint64_t prof_i_cupti_buffers_lost(void) {
  return __atomic_exchange_n(&cupti_pool.lost, 0, __ATOMIC_RELAXED);
}
