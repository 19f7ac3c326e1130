/* See memory_curve.h. */
#include "memory_curve.h"

#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../analysis/memory.h"
#include "../base/display.h"
#include "../base/log.h"

enum { TICKS_MAX = 6 };

static uint32_t time_column(const prof_i_memory_curve *curve, uint64_t ns) {
  if (ns <= curve->begin_ns) return 0;
  const double share = (double)(ns - curve->begin_ns) / (double)(curve->end_ns - curve->begin_ns);
  return share >= 1 ? curve->count - 1 : (uint32_t)(share * curve->count);
}

/* The pool's own peak is right whatever was lost. The curve is made of records, so it may be lower
   there. */
static void set_mark(const prof_i_memory_curve *curve, prof_i_memory_mark *mark, int64_t *columns,
                     int64_t bytes, uint64_t ns) {
  *mark = (prof_i_memory_mark){bytes, ns, time_column(curve, ns)};
  if (columns[mark->column] < mark->bytes) columns[mark->column] = mark->bytes;
}

static int64_t floor_to(int64_t bytes, int64_t step) {
  return bytes >= 0 ? bytes / step * step : -((-bytes + step - 1) / step * step);
}

static void curve_include_bytes(prof_i_memory_curve *curve, int64_t bytes) {
  if (bytes < curve->low) curve->low = bytes;
  if (bytes > curve->high) curve->high = bytes;
}

/* Over all that is drawn, and 0. */
static void set_axis(prof_i_memory_curve *curve) {
  curve->low = 0;
  curve->high = curve->step = 1;
  for (uint32_t i = 0; i < curve->count * 2; i++) curve_include_bytes(curve, curve->used[i]);
  curve_include_bytes(curve, curve->used_peak.bytes);
  curve_include_bytes(curve, curve->allocated_peak.bytes);
  while ((curve->high - curve->low) / curve->step >= TICKS_MAX) curve->step *= 2;
  curve->low = floor_to(curve->low, curve->step);
  curve->high = -floor_to(-curve->high, curve->step);
}

int prof_i_memory_curve_init(prof_i_memory_curve *curve, const prof_memory *memory, uint32_t index,
                             uint32_t count) {
  *curve = (prof_i_memory_curve){
      .count = count, .begin_ns = prof_i_memory_begin_ns(memory, index), .end_ns = memory->end_ns};
  if (curve->end_ns <= curve->begin_ns)
    curve->begin_ns = curve->end_ns ? curve->end_ns - 1 : 0, curve->end_ns = curve->begin_ns + 1;
  curve->used = malloc((size_t)count * 2 * sizeof *curve->used);
  if (!curve->used) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u columns", count);
  curve->allocated = curve->used + count;
  const int status = prof_i_memory_series(memory, index, count, curve->used, curve->allocated);
  if (status) {
    prof_i_memory_curve_fini(curve);
    return status;
  }
  const prof_memory_info *const info = &memory->pools[index].info;
  set_mark(curve, &curve->used_peak, curve->used, info->peak_used.used_bytes, info->peak_used.ns);
  curve->has_allocated = info->peak_allocated.allocated_bytes > 0;
  set_mark(curve, &curve->allocated_peak, curve->allocated, info->peak_allocated.allocated_bytes,
           info->peak_allocated.ns);
  set_axis(curve);
  return 0;
}

void prof_i_memory_curve_fini(prof_i_memory_curve *curve) {
  free(curve->used);
  curve->used = curve->allocated = NULL;
}

uint64_t prof_i_memory_time_step(uint64_t span_ns, uint32_t ticks_max) {
  static const uint32_t of_ten[] = {1, 2, 5};
  for (uint64_t power = 1; power < UINT64_MAX / 100; power *= 10)
    for (uint32_t i = 0; i < 3; i++)
      if (span_ns / (power * of_ten[i]) < ticks_max) return power * of_ten[i];
  return UINT64_MAX;
}

void prof_i_memory_tick_bytes(char *to, size_t room, int64_t bytes) {
  prof_i_put_bytes(to, room, bytes);
  prof_i_trim_zeros(to);
  if (bytes == 0) memcpy(to, "0", 2);
}

void prof_i_memory_tick_time(char *to, size_t room, uint64_t ns) {
  prof_i_put_time(to, room, ns, 0);
  prof_i_trim_zeros(to);
  if (ns == 0) memcpy(to, "0", 2);
}
