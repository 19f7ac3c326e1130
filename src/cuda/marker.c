/* See marker.h. Nothing about a stream is kept from one call to the next: its handle may be another
   stream's by then, of another context. */
#include "marker.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>

#include "library.h"
#include "streams.h"

/* While a stream is captured into a graph globally, any thread that queries an event breaks the
   capture, unless it has relaxed its capture mode. Drivers before 10.1 have no such modes. */
static int32_t exchange_cuda_capture_mode(int32_t mode) {
  if (prof_i_cuda.cuThreadExchangeStreamCaptureMode)
    prof_i_cuda.cuThreadExchangeStreamCaptureMode(&mode);
  return mode;
}
#define WITH_RELAXED_CAPTURE(error, ...)                                                           \
  do {                                                                                             \
    const int32_t mode_before = exchange_cuda_capture_mode(PROF_I_CU_STREAM_CAPTURE_MODE_RELAXED); \
    (error) = (__VA_ARGS__);                                                                       \
    exchange_cuda_capture_mode(mode_before);                                                       \
  } while (0)

/* A driver before 12.0 says whether the handle is a context's: one that was made at the same place
   since is taken for it. */
static int32_t context_number_of(prof_i_cu_context context, unsigned long long *number_out) {
  uint32_t version;
  *number_out = 0;
  return prof_i_cuda.cuCtxGetId ? prof_i_cuda.cuCtxGetId(context, number_out)
                                : prof_i_cuda.cuCtxGetApiVersion(context, &version);
}

/* An event is destroyed with its context, and a query afterwards may crash the driver. Then the
   event is dropped here. */
static bool cuda_marker_has_event(prof_i_cuda_marker *marker) {
  unsigned long long number;
  if (marker->event &&
      (context_number_of(marker->context, &number) != 0 || number != marker->context_number))
    marker->event = NULL;
  return marker->event != NULL;
}

/* In the stream's context, which is current meanwhile. */
static int make_cuda_event(prof_i_cu_stream stream, prof_i_cuda_marker *made) {
  prof_i_cu_context popped;
  int32_t error = prof_i_cuda.cuStreamGetCtx(stream, &made->context);
  if (error != 0) return prof_i_cuda_fail_call("cuStreamGetCtx", error);
  error = context_number_of(made->context, &made->context_number);
  if (error == 0) error = prof_i_cuda.cuCtxPushCurrent(made->context);
  if (error != 0) return prof_i_cuda_fail_call("cuCtxPushCurrent", error);
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventCreate(&made->event, PROF_I_CU_EVENT_DEFAULT));
  prof_i_cuda.cuCtxPopCurrent(&popped);
  return error == 0 ? PROF_BACKEND_OK : prof_i_cuda_fail_call("cuEventCreate", error);
}

static void destroy_cuda_event(prof_i_cu_event event) {
  int32_t error;
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventDestroy(event));
  (void)error;
}

prof_i_cuda_marker *prof_i_cuda_marker_create(void) {
  return calloc(1, sizeof(prof_i_cuda_marker));
}

void prof_i_cuda_marker_destroy(prof_i_cuda_marker *marker) {
  if (prof_i_cuda_check_fatal() == PROF_BACKEND_OK && cuda_marker_has_event(marker))
    destroy_cuda_event(marker->event);
  free(marker);
}

/* It has none yet, or one of another context than the stream's: the handle is another stream's now,
   or the default stream's of another current context. */
static int record_new_cuda_event(prof_i_cuda_marker *marker, prof_i_cu_stream stream) {
  prof_i_cuda_marker fresh = {0};
  const int result = make_cuda_event(stream, &fresh);
  if (result != PROF_BACKEND_OK) return result;
  const int32_t error = prof_i_cuda.cuEventRecord(fresh.event, stream);
  if (error != 0) {
    destroy_cuda_event(fresh.event);
    return prof_i_cuda_fail_call("cuEventRecord", error);
  }
  if (marker->event) destroy_cuda_event(marker->event);
  *marker = fresh;
  prof_i_cuda_stream_register(marker->context, stream, &marker->registered_generation);
  return PROF_BACKEND_OK;
}

int prof_i_cuda_marker_record(prof_i_cuda_marker *marker, prof_i_cu_stream stream) {
  if (!cuda_marker_has_event(marker)) return record_new_cuda_event(marker, stream);
  const int32_t error = prof_i_cuda.cuEventRecord(marker->event, stream);
  if (error == 0) {
    prof_i_cuda_stream_register(marker->context, stream, &marker->registered_generation);
    return PROF_BACKEND_OK;
  }
  return error == PROF_I_CU_ERROR_INVALID_HANDLE ? record_new_cuda_event(marker, stream)
                                                 : prof_i_cuda_fail_call("cuEventRecord", error);
}

static int refuse_empty_cuda_marker(void) {
  return prof_i_backend_fail_text(
      PROF_BACKEND_INVALID, "the event was never put on a stream, or has gone with its context");
}

int prof_i_cuda_marker_query(prof_i_cuda_marker *marker) {
  int32_t error;
  if (!cuda_marker_has_event(marker)) return refuse_empty_cuda_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventQuery(marker->event));
  if (error == 0) return PROF_BACKEND_OK;
  return error == PROF_I_CU_ERROR_NOT_READY ? PROF_BACKEND_NOT_READY
                                            : prof_i_cuda_fail_call("cuEventQuery", error);
}

int prof_i_cuda_marker_elapsed(prof_i_cuda_marker *a, prof_i_cuda_marker *b, int64_t *ns_out) {
  float ms = 0;
  int32_t error;
  if (!cuda_marker_has_event(a) || !cuda_marker_has_event(b)) return refuse_empty_cuda_marker();
  WITH_RELAXED_CAPTURE(error, prof_i_cuda.cuEventElapsedTime(&ms, a->event, b->event));
  if (error != 0)
    return error == PROF_I_CU_ERROR_NOT_READY ? PROF_BACKEND_NOT_READY
                                              : prof_i_cuda_fail_call("cuEventElapsedTime", error);
  const double ns = (double)ms * 1e6;
  if (!(fabs(ns) < 1e18))
    return prof_i_backend_fail(PROF_BACKEND_VENDOR, "cuEventElapsedTime: %g ms", (double)ms);
  *ns_out = (int64_t)(ns < 0 ? ns - 0.5 : ns + 0.5);
  return PROF_BACKEND_OK;
}
