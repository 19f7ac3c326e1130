/* See device_sums.h. */
#include "device_sums.h"

#include <stdlib.h>
#include <string.h>

#include "capture.h"

int prof_i_device_sums_init(prof_i_device_sums *sums, const prof_trace *trace, bool are_alone) {
  const int status = prof_i_launches_find(trace, &sums->launches, are_alone);
  if (status || !sums->launches.count) return status;
  sums->met = malloc(sums->launches.count * sizeof *sums->met);
  return sums->met ? 0 : PROF_E_NO_MEMORY;
}

void prof_i_device_sums_fini(prof_i_device_sums *sums) {
  prof_i_launches_fini(&sums->launches);
  free(sums->met);
  free(sums->waiting);
  *sums = (prof_i_device_sums){0};
}

bool prof_i_device_sums_go(prof_i_device_sums *sums, uint32_t thread) {
  const uint32_t count = prof_i_launches_of(&sums->launches, thread, &sums->first);
  sums->next = sums->first + count;
  sums->met_count = 0;
  if (sums->room) memset(sums->waiting, 0, sums->room * sizeof *sums->waiting);
  return count != 0;
}

bool prof_i_device_sums_take(prof_i_device_sums *sums, const prof_i_span *span, prof_i_device_time *time_out) {
  const prof_i_launch *const items = sums->launches.items;
  const uint64_t end_ns = span->start_ns + span->duration_ns;
  *time_out = (prof_i_device_time){0};
  while (sums->next > sums->first && items[sums->next - 1].at_ns >= span->start_ns) sums->met[sums->met_count++] = --sums->next;
  for (; sums->met_count > 0 && items[sums->met[sums->met_count - 1]].at_ns <= end_ns; sums->met_count--) {
    time_out->self_ns += items[sums->met[sums->met_count - 1]].self_ns;
    time_out->count++;
  }
  time_out->total_ns = time_out->self_ns;
  if (span->lane != 0) return true;
  if (!prof_i_reach_place((void **)&sums->waiting, &sums->room, span->depth + 1u, sizeof *sums->waiting)) return false;
  time_out->total_ns += sums->waiting[span->depth + 1u];
  sums->waiting[span->depth + 1u] = 0;
  sums->waiting[span->depth] += time_out->total_ns;
  return true;
}

void prof_i_device_sums_pass(prof_i_device_sums *sums, const prof_i_span *span) {
  if (span->lane != 0 || span->depth + 1u >= sums->room) return;
  sums->waiting[span->depth] += sums->waiting[span->depth + 1u];
  sums->waiting[span->depth + 1u] = 0;
}

const prof_i_launch *prof_i_device_sums_left(prof_i_device_sums *sums) {
  if (sums->met_count > 0) return &sums->launches.items[sums->met[--sums->met_count]];
  return sums->next > sums->first ? &sums->launches.items[--sums->next] : NULL;
}
