/* See state.h. */
#include "state.h"

#include <stdio.h>

#include "event.h"

enum { BIN_SHIFT = 56, BINS_CHOSEN = 4 };
static const uint64_t origin_ticks = UINT64_C(1)
                                     << 58; /* of 60 bits, with as much room before as behind */

bool import_times_read(import_times *times, const import_event *event, uint64_t *time_out) {
  const import_value *const value = &event->members[IMPORT_TS];
  const bool is_told = value->type == IMPORT_NUMBER || value->type == IMPORT_TEXT;
  int64_t ns;
  if (!is_told || !import_number_us(import_text_of(event, value), &ns)) return false;
  const uint64_t time = (uint64_t)ns ^ UINT64_C(1) << 63;
  import_time_bin *const stretch = &times->time_bins[time >> BIN_SHIFT];
  if (stretch->count++ == 0) {
    const import_text name = import_text_of(event, &event->members[IMPORT_NAME]);
    const int bytes = (int)(name.bytes < sizeof stretch->name ? name.bytes : sizeof stretch->name);
    stretch->first = time;
    snprintf(stretch->name, sizeof stretch->name, "%.*s", bytes, name.data);
  }
  *time_out = time;
  return true;
}

/* Of two that have as many the later one: what is wrong is mostly 0. */
void import_times_choose_range(import_times *times) {
  uint64_t most = 0, begin = 0;
  for (uint64_t i = 0; i < IMPORT_TIME_BINS; i++) {
    uint64_t count = 0;
    for (uint64_t n = i; n < i + BINS_CHOSEN && n < IMPORT_TIME_BINS; n++)
      count += times->time_bins[n].count;
    if (count < most || times->time_bins[i].count == 0) continue;
    most = count;
    begin = i;
  }
  times->low = begin << BIN_SHIFT;
  times->high = times->low + ((uint64_t)BINS_CHOSEN << BIN_SHIFT) - 1;
  if (times->high < times->low) times->high = UINT64_MAX;
  times->shift = times->time_bins[begin].first - origin_ticks;
}

const char *import_times_outlier(const import_times *times) {
  for (uint64_t i = 0; i < IMPORT_TIME_BINS; i++)
    if (times->time_bins[i].count && !import_times_has(times, times->time_bins[i].first))
      return times->time_bins[i].name;
  return "";
}
