/* The memory of the emulated CUDA driver: what it hands out, on which device, and the reports to
   its observer. */
#include "cuda_driver.h"

#include <stddef.h>

#include "memory.h"

enum { PIECES = 4096, PINNED = 2, DEVICE = 3, MANAGED = 5 };
static emulated_cuda_piece pieces[PIECES]; /* live; lock held */

static int find_piece(uint64_t address) {
  for (int i = 0; i < PIECES; i++)
    if (pieces[i].address == address) return i;
  return -1;
}

static int take_memory(emulated_cuda_piece *it) {
  const int at = find_piece(0);
  if (!cuda_is_current(&it->device, &it->context)) return INVALID_CONTEXT;
  if (!it->bytes || at < 0) return INVALID_VALUE;
  it->address = memory_take(it->bytes, it->place != DEVICE);
  if (!it->address) return OUT_OF_MEMORY;
  it->time_ns = cuda_real_ns();
  pieces[at] = *it;
  return SUCCESS;
}

static int let_memory_go(emulated_cuda_piece *it) {
  const uint32_t correlation = it->correlation;
  const int at = it->address ? find_piece(it->address) : -1;
  if (at < 0) return INVALID_VALUE;
  *it = pieces[at];
  it->time_ns = cuda_real_ns();
  it->correlation = correlation;
  it->is_release = 1;
  pieces[at].address = 0;
  memory_give_back(it->address);
  return SUCCESS;
}

static int change_memory(uint32_t number, emulated_cuda_piece *it,
                         int (*change)(emulated_cuda_piece *it)) {
  const call c = cuda_enter(number);
  const emulated_cuda_observer *const by = cuda_observer();
  it->correlation = c.correlation;
  cuda_lock();
  const int error = change(it);
  cuda_unlock();
  if (error == SUCCESS && by) by->piece(it);
  return cuda_leave(&c, DRIVER, error);
}

enum {
  CBID_ALLOC = 243,
  CBID_FREE = 245,
  CBID_ALLOC_HOST = 239,
  CBID_FREE_HOST = 77,
  CBID_ALLOC_MANAGED = 434,
  CBID_ALLOC_ASYNC = 598,
  CBID_FREE_ASYNC = 600
};

CU int cuMemAlloc_v2(unsigned long long *out, size_t bytes);
CU int cuMemAlloc_v2(unsigned long long *out, size_t bytes) {
  emulated_cuda_piece it = {.bytes = bytes, .place = DEVICE};
  const int error = change_memory(CBID_ALLOC, &it, take_memory);
  *out = it.address;
  return error;
}
CU int cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes);
CU int cuMemGetInfo_v2(size_t *free_bytes, size_t *all_bytes) {
  uint32_t device, context_number;
  cuda_lock();
  const int is_current = cuda_is_current(&device, &context_number);
  cuda_unlock();
  if (!is_current) return INVALID_CONTEXT;
  *all_bytes = (size_t)(80 + device) << 30;
  *free_bytes = *all_bytes / 2;
  return SUCCESS;
}

CU int cuMemAllocManaged(unsigned long long *out, size_t bytes, unsigned flags);
CU int cuMemAllocManaged(unsigned long long *out, size_t bytes, unsigned flags) {
  emulated_cuda_piece it = {.bytes = bytes, .place = MANAGED};
  const int error = change_memory(CBID_ALLOC_MANAGED, &it, take_memory);
  (void)flags;
  *out = it.address;
  return error;
}
CU int cuMemFree_v2(unsigned long long at);
CU int cuMemFree_v2(unsigned long long at) {
  emulated_cuda_piece it = {.address = at};
  return change_memory(CBID_FREE, &it, let_memory_go);
}
CU int cuMemAllocHost_v2(void **out, size_t bytes);
CU int cuMemAllocHost_v2(void **out, size_t bytes) {
  emulated_cuda_piece it = {.bytes = bytes, .place = PINNED};
  const int error = change_memory(CBID_ALLOC_HOST, &it, take_memory);
  *out = (void *)(uintptr_t)it.address;
  return error;
}
CU int cuMemHostAlloc(void **out, size_t bytes, unsigned flags);
CU int cuMemHostAlloc(void **out, size_t bytes, unsigned flags) {
  (void)flags;
  return cuMemAllocHost_v2(out, bytes);
}
CU int cuMemFreeHost(void *at);
CU int cuMemFreeHost(void *at) {
  emulated_cuda_piece it = {.address = (uint64_t)(uintptr_t)at};
  return change_memory(CBID_FREE_HOST, &it, let_memory_go);
}

/* Stream-ordered: from its pool, without waiting for the stream. */
static int take_on_stream(emulated_cuda_piece *it, void *handle) {
  cuda_lock();
  const int error = cuda_stream_number(handle, &it->stream);
  cuda_unlock();
  return error;
}
CU int cuMemAllocAsync(unsigned long long *out, size_t bytes, void *handle);
CU int cuMemAllocAsync(unsigned long long *out, size_t bytes, void *handle) {
  emulated_cuda_piece it = {.bytes = bytes, .place = DEVICE};
  int error = take_on_stream(&it, handle);
  if (error == SUCCESS) error = change_memory(CBID_ALLOC_ASYNC, &it, take_memory);
  *out = it.address;
  return error;
}
CU int cuMemFreeAsync(unsigned long long at, void *handle);
CU int cuMemFreeAsync(unsigned long long at, void *handle) {
  emulated_cuda_piece it = {.address = at};
  const int error = take_on_stream(&it, handle);
  return error == SUCCESS ? change_memory(CBID_FREE_ASYNC, &it, let_memory_go) : error;
}
