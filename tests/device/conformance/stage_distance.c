/* The same emulated vendor, whose events tell distances alone. */
#include "../emulated/emulated.h"
#include "stage.h"

static uint64_t create(void) { return (uintptr_t)emulated_create(0); }
static void destroy(uint64_t stream) { emulated_destroy((emulated_stream *)(uintptr_t)stream); }
static void work(uint64_t stream, uint64_t least_us) {
  emulated_launch((emulated_stream *)(uintptr_t)stream, least_us * 1000);
}
static void wait_for(uint64_t stream) { emulated_wait((emulated_stream *)(uintptr_t)stream); }

static const conformance_stage stage = {"emulated by distance",
                                        &emulated_by_distance,
                                        {EMULATED_BY_DISTANCE_TYPE, 0},
                                        NULL,
                                        create,
                                        destroy,
                                        work,
                                        wait_for,
                                        0,
                                        0,
                                        NULL};
const conformance_stage *conformance_stage_get(void) { return &stage; }
