/* A pool of buffers that CUPTI fills with records. CUPTI requests them on any thread and gives them
   back full. Nothing here takes a lock or calls malloc(), because CUPTI asks under its own locks. A
   buffer is freed only after CUPTI has given it back. */
#ifndef PROF_CUDA_BUFFERS_H
#define PROF_CUDA_BUFFERS_H

#include <prof/backend.h>
#include <stdbool.h>

#include "api.h"

enum {
  PROF_I_CUPTI_BUFFER_BYTES = 1 << 20,
  PROF_I_CUPTI_BUFFERS = 64, /* a thread that uses CUDA holds one, from CUDA 13 on */
  PROF_I_CUPTI_SMALL_BYTES = 1 << 16,
  PROF_I_CUPTI_SMALL_BUFFERS = 448 /* beyond those; their memory goes when they come back */
};

typedef struct prof_i_cupti_buffer {
  struct prof_i_cupti_buffer *next;
  uint8_t *records;
  size_t valid_bytes; /* bytes of them that are filled */
  uint32_t is_lent;   /* acquire, release */
} prof_i_cupti_buffer;

/* may_refuse: this CUPTI can be refused a buffer; it then counts what it drops. False: no memory.
   One thread at a time. */
bool prof_i_cupti_buffers_prepare(const prof_backend_host *host, bool may_refuse);

/* For cuptiActivityRegisterCallbacks(). Any thread. */
void prof_i_cupti_buffer_request(uint8_t **records_out, size_t *bytes_out, size_t *records_max_out);
void prof_i_cupti_buffer_complete(prof_i_cu_context context, uint32_t stream, uint8_t *records,
                                  size_t bytes, size_t valid_bytes);

/* Takes the full buffers, oldest first, and returns each to the pool when it has been read. The
   collector. */
prof_i_cupti_buffer *prof_i_cupti_buffers_take_full(void);
void prof_i_cupti_buffer_give_back(prof_i_cupti_buffer *buffer);

/* How many are with CUPTI. Any thread. */
uint32_t prof_i_cupti_buffers_lent(void);

/* How many buffers of records were lost since the last call: the pool was empty, and this CUPTI
   cannot be refused. The collector. */
uint64_t prof_i_cupti_buffers_lost(void);

#endif
