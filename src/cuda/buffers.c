/* See buffers.h. The large ones are one mapping, whose pages come when they are first written.
   CUPTI before 12.9 crashes if it is given none, so there is always one. */
#define _GNU_SOURCE
#include "buffers.h"

#include <stddef.h>
#include <sys/mman.h>

static struct {
  const prof_backend_host *host;
  uint8_t *memory;                /* of the large ones */
  uint32_t may_refuse;            /* relaxed */
  uint32_t lent, first;           /* relaxed; first: where the last one was found */
  uint64_t lost;                  /* relaxed */
  prof_i_cupti_buffer *completed; /* newest first */
  prof_i_cupti_buffer large[PROF_I_CUPTI_BUFFERS], small[PROF_I_CUPTI_SMALLS];
} own;

/* NULL: there is none. */
static uint8_t *map(size_t bytes) {
  uint8_t *const memory =
      mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) return NULL;
  return memory;
}

bool prof_i_cupti_buffers_prepare(const prof_backend_host *host, bool may_refuse) {
  __atomic_store_n(&own.may_refuse, may_refuse, __ATOMIC_RELAXED);
  if (own.memory) return true;
  uint8_t *const memory = map((size_t)PROF_I_CUPTI_BUFFERS * PROF_I_CUPTI_BUFFER_BYTES);
  if (!memory) return false;
  for (uint32_t i = 0; i < PROF_I_CUPTI_BUFFERS; i++)
    own.large[i].records = memory + (size_t)i * PROF_I_CUPTI_BUFFER_BYTES;
  own.host = host;
  own.memory = memory;
  return true;
}

/* ---- CUPTI's threads ---- */

static bool take(prof_i_cupti_buffer *buffer) {
  uint32_t is_lent = 0;
  return __atomic_compare_exchange_n(&buffer->is_lent, &is_lent, 1, false, __ATOMIC_ACQUIRE,
                                     __ATOMIC_RELAXED);
}

/* The same few again and again: the others' pages never come. */
static uint8_t *take_large(void) {
  const uint32_t first = __atomic_load_n(&own.first, __ATOMIC_RELAXED);
  for (uint32_t i = 0; i < PROF_I_CUPTI_BUFFERS; i++) {
    const uint32_t at = (first + i) % PROF_I_CUPTI_BUFFERS;
    if (!take(&own.large[at])) continue;
    __atomic_store_n(&own.first, at, __ATOMIC_RELAXED);
    return own.large[at].records;
  }
  return NULL;
}

static uint8_t *take_small(void) {
  for (uint32_t i = 0; i < PROF_I_CUPTI_SMALLS; i++) {
    prof_i_cupti_buffer *const buffer = &own.small[i];
    if (!take(buffer)) continue;
    uint8_t *const records = map(PROF_I_CUPTI_SMALL_BYTES);
    __atomic_store_n(&buffer->records, records, __ATOMIC_RELEASE);
    if (!records) __atomic_store_n(&buffer->is_lent, 0, __ATOMIC_RELEASE);
    return records;
  }
  return NULL;
}

/* What comes back of it is nobody's: its memory is lost, and its records are. */
static uint8_t *take_last(void) {
  __atomic_fetch_add(&own.lost, 1, __ATOMIC_RELAXED);
  return map(PROF_I_CUPTI_SMALL_BYTES);
}

void prof_i_cupti_buffer_request(uint8_t **records_out, size_t *bytes_out,
                                 size_t *records_max_out) {
  const bool may_refuse = __atomic_load_n(&own.may_refuse, __ATOMIC_RELAXED);
  *records_max_out = 0; /* as many as fit */
  *bytes_out = PROF_I_CUPTI_BUFFER_BYTES;
  if ((*records_out = take_large()) == NULL) {
    own.host->wake();
    *bytes_out = PROF_I_CUPTI_SMALL_BYTES;
    *records_out = take_small();
  }
  if (*records_out)
    __atomic_fetch_add(&own.lent, 1, __ATOMIC_RELAXED);
  else if (!may_refuse)
    *records_out = take_last();
  if (!*records_out) *bytes_out = 0;
}

/* NULL: it is not ours. Whoever registered his callbacks before may have lent it. */
static prof_i_cupti_buffer *buffer_of(const uint8_t *records) {
  const size_t offset = (size_t)(records - own.memory);
  if (records >= own.memory && offset < (size_t)PROF_I_CUPTI_BUFFERS * PROF_I_CUPTI_BUFFER_BYTES)
    return &own.large[offset / PROF_I_CUPTI_BUFFER_BYTES];
  for (uint32_t i = 0; records && i < PROF_I_CUPTI_SMALLS; i++)
    if (__atomic_load_n(&own.small[i].records, __ATOMIC_ACQUIRE) == records) return &own.small[i];
  return NULL;
}

void prof_i_cupti_buffer_complete(prof_i_cu_context context, uint32_t stream, uint8_t *records,
                                  size_t bytes, size_t valid) {
  prof_i_cupti_buffer *const buffer = buffer_of(records);
  (void)context;
  (void)stream;
  if (!buffer) return;
  buffer->valid = valid < bytes ? valid : bytes;
  buffer->next = __atomic_load_n(&own.completed, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&own.completed, &buffer->next, buffer, true, __ATOMIC_RELEASE,
                                      __ATOMIC_RELAXED)) {
  }
  own.host->wake();
}

/* ---- the collector ---- */

prof_i_cupti_buffer *prof_i_cupti_buffers_take(void) {
  prof_i_cupti_buffer *newest = __atomic_exchange_n(&own.completed, NULL, __ATOMIC_ACQUIRE),
                      *first = NULL;
  while (newest) {
    prof_i_cupti_buffer *const next = newest->next;
    newest->next = first;
    first = newest;
    newest = next;
  }
  return first;
}

void prof_i_cupti_buffer_give_back(prof_i_cupti_buffer *buffer) {
  uint8_t *const records = buffer->records;
  if (buffer >= own.small && buffer < own.small + PROF_I_CUPTI_SMALLS) {
    __atomic_store_n(&buffer->records, NULL, __ATOMIC_RELAXED);
    munmap(records, PROF_I_CUPTI_SMALL_BYTES);
  }
  __atomic_fetch_sub(&own.lent, 1, __ATOMIC_RELAXED);
  __atomic_store_n(&buffer->is_lent, 0, __ATOMIC_RELEASE);
}

uint32_t prof_i_cupti_buffers_lent(void) { return __atomic_load_n(&own.lent, __ATOMIC_RELAXED); }

uint64_t prof_i_cupti_buffers_lost(void) {
  return __atomic_exchange_n(&own.lost, 0, __ATOMIC_RELAXED);
}
