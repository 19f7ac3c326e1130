/* See turn.h. */
#include "turn.h"

#include <prof/status.h>
#include <stdlib.h>

/* A longer run is put in order piece by piece: it bounds what the sink holds. */
enum { RUN_BYTES_MAX = 16 << 20, FIRST_ROOM = 16 };

static bool make_room(prof_i_turn *turn) {
  if (turn->count < turn->room) return true;
  const size_t room = turn->room ? 2 * turn->room : FIRST_ROOM;
  size_t *const larger = realloc(turn->begins, room * sizeof *larger);
  if (!larger) return false;
  turn->begins = larger;
  turn->room = room;
  return true;
}

void prof_i_turn_more(prof_i_turn *turn, prof_i_sink *sink) {
  if (sink->status != PROF_OK) return;
  const size_t at = (size_t)(sink->next - sink->held);
  if (at <= RUN_BYTES_MAX && make_room(turn)) {
    turn->begins[turn->count++] = at;
    return;
  }
  prof_i_turn_over(turn, sink);
  sink->held = sink->next;
}

static void reverse(char *from, char *end) {
  while (from < end) {
    const char last = *--end;
    *end = *from;
    *from++ = last;
  }
}

/* Each text is turned over, and then all of them together: so their order alone changes. */
void prof_i_turn_over(prof_i_turn *turn, prof_i_sink *sink) {
  const size_t count = turn->count;
  turn->count = 0;
  if (sink->status != PROF_OK || count == 0) return;
  const size_t bytes = (size_t)(sink->next - sink->held);
  for (size_t i = 0; i <= count; i++) {
    const size_t from = i ? turn->begins[i - 1] : 0, end = i < count ? turn->begins[i] : bytes;
    reverse(sink->held + from, sink->held + end);
  }
  reverse(sink->held, sink->next);
}

void prof_i_turn_fini(prof_i_turn *turn) { free(turn->begins); }
