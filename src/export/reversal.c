/* See reversal.h. */
#include "reversal.h"

#include <prof/status.h>
#include <stdlib.h>

#include "../reader/capture.h"

/* A longer run is put in order piece by piece: it bounds what the sink holds. */
enum { RUN_BYTES_MAX = 16 << 20 };

void prof_i_reversal_add_text(prof_i_reversal *reversal, prof_i_sink *sink) {
  if (sink->status != PROF_OK) return;
  const size_t at = (size_t)(sink->next - sink->held);
  if (at <= RUN_BYTES_MAX && prof_i_make_room((void **)&reversal->begins, &reversal->room,
                                              reversal->count, sizeof *reversal->begins)) {
    reversal->begins[reversal->count++] = at;
    return;
  }
  prof_i_reversal_flush(reversal, sink);
  sink->held = sink->next;
}

static void reverse_bytes(char *from, char *end) {
  while (from < end) {
    const char last = *--end;
    *end = *from;
    *from++ = last;
  }
}

/* Each text is turned over, and then all of them together: so their order alone changes. */
void prof_i_reversal_flush(prof_i_reversal *reversal, prof_i_sink *sink) {
  const size_t count = reversal->count;
  reversal->count = 0;
  if (sink->status != PROF_OK || count == 0) return;
  const size_t bytes = (size_t)(sink->next - sink->held);
  for (size_t i = 0; i <= count; i++) {
    const size_t from = i ? reversal->begins[i - 1] : 0,
                 end = i < count ? reversal->begins[i] : bytes;
    reverse_bytes(sink->held + from, sink->held + end);
  }
  reverse_bytes(sink->held, sink->next);
}

void prof_i_reversal_fini(prof_i_reversal *reversal) { free(reversal->begins); }
