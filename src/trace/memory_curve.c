/* See memory_curve.h. */
#include "memory_curve.h"

#include <stdlib.h>
#include <string.h>

#include "../core/log.h"
#include "memory.h"
#include "units.h"

/* More than any pool has; a damaged capture may say anything. */
static const int64_t bytes_max = INT64_C(1) << 50;
enum { TICKS_MAX = 6 };

static int64_t bounded(int64_t bytes) { return bytes > bytes_max ? bytes_max : bytes < -bytes_max ? -bytes_max : bytes; }

static uint32_t column_of(const prof_i_memory_curve *curve, uint64_t ns) {
  if (ns <= curve->begin_ns) return 0;
  const double share = (double)(ns - curve->begin_ns) / (double)(curve->end_ns - curve->begin_ns);
  return share >= 1 ? curve->count - 1 : (uint32_t)(share * curve->count);
}

/* The pool's own peak is right whatever was lost: then the curve, which is made of records, is lower there. */
static void set_mark(const prof_i_memory_curve *curve, prof_i_memory_mark *mark, int64_t *columns, int64_t bytes, uint64_t ns) {
  *mark = (prof_i_memory_mark){bounded(bytes), ns, column_of(curve, ns)};
  if (columns[mark->column] < mark->bytes) columns[mark->column] = mark->bytes;
}

static int64_t floor_to(int64_t bytes, int64_t step) { return bytes >= 0 ? bytes / step * step : -((-bytes + step - 1) / step * step); }

static void set_axis(prof_i_memory_curve *curve) {
  int64_t low = 0, high = 1;
  for (uint32_t i = 0; i < curve->count; i++) {
    if (curve->used[i] < low) low = curve->used[i];
    if (curve->allocated[i] < low) low = curve->allocated[i];
    if (curve->used[i] > high) high = curve->used[i];
    if (curve->allocated[i] > high) high = curve->allocated[i];
  }
  curve->step = 1;
  while ((high - low) / curve->step >= TICKS_MAX) curve->step *= 2;
  curve->low = floor_to(low, curve->step);
  curve->high = -floor_to(-high, curve->step);
}

int prof_i_memory_curve_init(prof_i_memory_curve *curve, const prof_memory *memory, uint32_t index, uint32_t count) {
  *curve = (prof_i_memory_curve){.count = count, .begin_ns = prof_i_memory_begin_ns(memory, index), .end_ns = memory->end_ns};
  if (curve->end_ns <= curve->begin_ns) curve->begin_ns = curve->end_ns ? curve->end_ns - 1 : 0, curve->end_ns = curve->begin_ns + 1;
  curve->used = malloc((size_t)count * 2 * sizeof *curve->used);
  if (!curve->used) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u columns", count);
  curve->allocated = curve->used + count;
  const int status = prof_memory_series(memory, index, count, curve->used, curve->allocated);
  if (status) {
    prof_i_memory_curve_fini(curve);
    return status;
  }
  for (uint32_t i = 0; i < count * 2; i++) curve->used[i] = bounded(curve->used[i]);
  const prof_memory_info *const info = &memory->pools[index].info;
  set_mark(curve, &curve->used_peak, curve->used, info->peak_used.used_bytes, info->peak_used.ns);
  set_mark(curve, &curve->allocated_peak, curve->allocated, info->peak_allocated.allocated_bytes, info->peak_allocated.ns);
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
