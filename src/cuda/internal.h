/* CUDA's two back ends, for the list of those that are built in. Below, by file, what the files of
   this folder share. */
#ifndef PROF_CUDA_INTERNAL_H
#define PROF_CUDA_INTERNAL_H

#include <prof/backend.h>
#include <stdbool.h>
#include <stdint.h>

#include "../device/vendor.h"
#include "api.h"
#include "tracer_api.h"

/* backend.c: scopes by events on the program's streams, and CUPTI's records. */
extern const prof_backend prof_i_cuda_backend;

/* meters.c: NVML's meters: power, energy, memory, utilisation, clocks, temperature. A back end of
   its own, because a program that samples need not use CUDA. */
extern const prof_backend prof_i_nvml_backend;

/* ---- backend.c ---- */

typedef struct prof_i_cuda_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_CU_MEMBER(need, name, symbol, arguments) int32_t(*name) arguments;
  PROF_I_CU_FUNCTIONS(PROF_I_CU_MEMBER)
#undef PROF_I_CU_MEMBER
} prof_i_cuda_functions;

/* Written only by cuda_library_open(). Call these only after it returned OK. */
extern prof_i_cuda_functions prof_i_cuda __attribute__((visibility("hidden")));

/* Their number. Any thread, as all below. */
uint32_t prof_i_cuda_devices_count(void);

/* Describes it, except for the size. */
void prof_i_cuda_device_describe(uint32_t number, prof_backend_device *out);

/* ---- tracer_library.c ---- */

typedef struct prof_i_cupti_functions {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define PROF_I_CUPTI_MEMBER(need, name, arguments) int32_t(*name) arguments;
  PROF_I_CUPTI_FUNCTIONS(PROF_I_CUPTI_MEMBER)
#undef PROF_I_CUPTI_MEMBER
} prof_i_cupti_functions;

/* Written only by prof_i_cupti_library_open(). Call these only after it returned OK. */
extern prof_i_cupti_functions prof_i_cupti __attribute__((visibility("hidden")));

/* Takes a loaded copy, or the file of the option CUPTI (PROF_BACKEND_CUPTI), or the newest
   installed one that the driver can serve, or the toolkit's. ABSENT, VERSION. Calls nothing of it.
   One thread at a time. */
int prof_i_cupti_library_open(const prof_backend_host *host, int32_t driver_version);

/* Keeps a text of the CUptiResult, and returns the result that fits. */
int prof_i_cupti_fail_call(const char *function, int32_t error);

/* ---- records.c ---- */

/* Starts or stops registering the streams that scopes are put on. The collector. */
void prof_i_cuda_streams_set_tracking(bool do_meet);

/* Registers a stream of that context, which an event was just put on. Any thread; one load if
   tracking is off. *seen: the caller's, 0 at first, so that each caller registers once. */
void prof_i_cuda_stream_register(prof_i_cu_context context, prof_i_cu_stream stream,
                                 uint32_t *seen);

/* The collector alone. */

/* Has CUPTI record only the calls that put work on devices. False: this CUPTI records all or none.
   */
bool prof_i_cuda_calls_enable_work(bool enable);

/* kinds: the wanted ones, as bits of prof_backend_kind. Calls may be recorded only to find
   launches. is_last: work without an end is not done, and lost. */
void prof_i_cuda_records_begin(const prof_backend_host *host, uint32_t kinds, bool is_last);

/* Adds one record. Other kinds are ignored. */
void prof_i_cuda_record_add(const void *record);

/* Hands over records that wait for their call: those that waited at the last flush already, or
   (are_all) all. */
void prof_i_cuda_records_flush(bool are_all);

/* The number of records that were not done, since the last call. */
uint64_t prof_i_cuda_records_unfinished(void);

/* ---- activity.c ---- */

/* Starts and stops CUPTI's records, and fetches them. The collector alone. */

/* prof_backend's. */
int prof_i_cuda_activity_start(const prof_backend_host *host, uint32_t kinds, uint32_t *kinds_out);
int prof_i_cuda_activity_stop(void);
int prof_i_cuda_activity_drain(const prof_backend_host *host, uint32_t how, uint64_t *lost_out);
int prof_i_cuda_activity_clock(const prof_backend_host *host, prof_backend_pair *out);

/* Inside of cuInit(), on its thread, when the driver loads what CUDA_INJECTION64_PATH names.
   Records the kinds from the program's first kernel on, until start() takes over. look_out: a
   reading of CUPTI's clock. Calls nothing of the driver but its version, and nothing of CUPTI that
   needs a context. A failed call leaves nothing behind. */
int prof_i_cuda_activity_begin_preinit(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out);

#endif
