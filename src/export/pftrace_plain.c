/* Perfetto's protobuf: plain scopes. Of a packet all but its time is the same for a thread and a
   call site: two copies and one number. The bytes are those that pftrace.c writes. The driver calls
   this between the events that pftrace.c writes. */
#include <string.h>

#include "pftrace.h"

enum {
  HEAD_ROOM = 16,   /* copied whole; the used part is shorter */
  PACKET_ROOM = 64, /* head, a number of at most 10 bytes, TrackEvent */
  ID_BYTES_MAX = 5,
  SHORT_BITS = 28 /* of a number that put_short() takes */
};

/* What a packet of this thread has before the time. */
typedef struct packet_head {
  char bytes[HEAD_ROOM];
  uint32_t count;
} packet_head;

static const char end_event[PF_PLAIN_EVENT_ROOM] = {PF_PACKET_TRACK_EVENT << 3 | PROF_I_WIRE_BYTES,
                                                    2, PF_EVENT_TYPE << 3, PF_TYPE_END};
enum { END_EVENT_BYTES = 4 };

static char *put_varint(char *to, uint64_t value) {
  for (; value >= 0x80; value >>= 7) *to++ = (char)(value | 0x80);
  *to++ = (char)value;
  return to;
}

/* The same below 2^28 without a branch. Writes 4 bytes, as a little-endian word. */
static inline char *put_short(char *to, uint32_t value) {
  const uint32_t more = (31 - (uint32_t)__builtin_clz(value | 1)) / 7; /* bytes but one */
  const uint32_t spread =
      (value & 0x7f) | (value << 1 & 0x7f00) | (value << 2 & 0x7f0000) | (value << 3 & 0x7f000000);
  const uint32_t bytes = spread | (0x808080 & ((1u << 8 * more) - 1));
  memcpy(to, &bytes, sizeof bytes);
  return to + more + 1;
}

void prof_i_pf_set_plain_event(prof_i_pf_site *site) {
  _Static_assert(PF_PLAIN_EVENT_ROOM >= 2 + 2 + 2 * (1 + ID_BYTES_MAX), "whole event");
  char *const event = (char *)site->event, *to = event;
  *to++ = PF_PACKET_TRACK_EVENT << 3 | PROF_I_WIRE_BYTES;
  to++; /* the length */
  *to++ = PF_EVENT_TYPE << 3;
  *to++ = PF_TYPE_BEGIN;
  *to++ = PF_EVENT_NAME_IID << 3;
  to = put_varint(to, site->iid);
  *to++ = PF_EVENT_CATEGORY_IIDS << 3;
  to = put_varint(to, site->iid);
  event[1] = (char)(to - event - 2);
  site->event_bytes = (uint32_t)(to - event);
}

/* sequence: of the thread in the file. */
static packet_head make_head(uint32_t sequence) {
  packet_head head = {{PF_TRACE_PACKET << 3 | PROF_I_WIRE_BYTES, 0, PF_PACKET_SEQUENCE << 3}, 0};
  char *to = put_varint(head.bytes + 3, sequence);
  *to++ = PF_PACKET_TIMESTAMP << 3;
  head.count = (uint32_t)(to - head.bytes);
  return head;
}

/* There is room of PACKET_ROOM. Returns the packet's end. */
static inline char *put_packet(char *packet, const packet_head *head, uint64_t passed_ns,
                               const void *event, uint32_t event_bytes) {
  char *to = packet + head->count;
  memcpy(packet, head->bytes, HEAD_ROOM);
  to = __builtin_expect(passed_ns < 1u << SHORT_BITS, 1) ? put_short(to, (uint32_t)passed_ns)
                                                         : put_varint(to, passed_ns);
  memcpy(to, event, PF_PLAIN_EVENT_ROOM);
  to += event_bytes;
  packet[1] = (char)(to - packet - 2);
  return to;
}

/* The ends of scopes that ended until then. False: the last open one is not plain, or its end goes
   back in time. */
static inline bool put_ends(prof_i_sink *sink, const packet_head *head, uint64_t until_ns,
                            prof_i_pending_ends *open, uint64_t *last_ns) {
  while (open->count > 0) {
    const prof_i_pending_end *const scope = &open->items[open->count - 1];
    if (scope->end_ns > until_ns) return true;
    if (scope->lane > 0 || scope->end_ns < *last_ns) return false;
    char *const packet = prof_i_sink_reserve(sink, PACKET_ROOM);
    prof_i_sink_advance(
        sink, put_packet(packet, head, scope->end_ns - *last_ns, end_event, END_EVENT_BYTES));
    *last_ns = scope->end_ns;
    open->count--;
  }
  return true;
}

size_t prof_i_pf_put_plain(prof_i_export *run, prof_i_pending_ends *open, const prof_i_span *spans,
                           size_t count) {
  prof_i_pftrace *const p = run->state;
  prof_i_sink *const sink = run->sink;
  const prof_i_window window = run->options->window;
  const packet_head head = make_head(p->sequence_base + PF_SEQUENCE_FIRST + run->thread);
  uint64_t last_ns = p->last_ns;
  size_t left = count;
  for (; left > 0; left--) {
    const prof_i_span *const span = &spans[left - 1];
    const uint64_t start_ns = span->start_ns, end_ns = start_ns + span->duration_ns;
    if (!prof_i_window_contains(&window, start_ns, end_ns)) continue;
    if (span->kind != PROF_EVENT_SCOPE || span->record || span->lane || span->site >= p->site_count)
      break;
    const prof_i_pf_site *const site = &p->sites[span->site];
    if (site->generation != p->generation || open->count == open->room ||
        !put_ends(sink, &head, start_ns, open, &last_ns) || start_ns < last_ns ||
        (open->count > 0 && open->items[open->count - 1].end_ns < end_ns))
      break;
    char *const packet = prof_i_sink_reserve(sink, PACKET_ROOM);
    prof_i_sink_advance(
        sink, put_packet(packet, &head, start_ns - last_ns, site->event, site->event_bytes));
    last_ns = start_ns;
    open->items[open->count++] = (prof_i_pending_end){.start_ns = start_ns, .end_ns = end_ns};
  }
  p->last_ns = last_ns;
  return count - left;
}
