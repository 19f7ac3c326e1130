/* The emulated vendor's queues: tests/device/emulated. */
#include "../emulated/emulated.h"
#include "stage.h"

static uint64_t create(void) { return (uintptr_t)emulated_create(0); }
static void destroy(uint64_t stream) { emulated_destroy((emulated_stream *)(uintptr_t)stream); }
static void work(uint64_t stream, uint64_t least_us) {
  emulated_launch((emulated_stream *)(uintptr_t)stream, least_us * 1000);
}
static void wait_for(uint64_t stream) { emulated_wait((emulated_stream *)(uintptr_t)stream); }

static const conformance_stage stage = {
    "emulated", &emulated_backend, {EMULATED_TYPE, 0}, NULL, create, destroy, work, wait_for, 0, 0,
    NULL};
const conformance_stage *conformance_stage_get(void) {
  emulated_fault.has_clock = 1;
  return &stage;
}
