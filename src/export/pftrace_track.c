/* Perfetto's protobuf: begins of sequences, and descriptions of tracks. */
#include <stdio.h>

#include "../base/error.h"
#include "../reader/capture.h"
#include "../reader/internal.h"
#include "pftrace.h"

enum {
  DESCRIPTOR_UUID = 1,
  DESCRIPTOR_NAME = 2,
  DESCRIPTOR_PROCESS = 3,
  DESCRIPTOR_THREAD = 4,
  DESCRIPTOR_PARENT = 5,
  DESCRIPTOR_COUNTER = 8,
  DESCRIPTOR_ORDERING = 11,
  DESCRIPTOR_RANK = 12,
  PROCESS_PID = 1,
  PROCESS_NAME = 6,
  THREAD_PID = 1,
  THREAD_TID = 2,
  THREAD_NAME = 5,
  COUNTER_UNIT = 3,
  UNIT_BYTES = 3,
  ORDERING_EXPLICIT = 3,
  INT32_IDS_END = 0x7fffffff
};

void prof_i_pf_begin_packet(prof_i_pftrace *p, uint32_t sequence, size_t *at_out) {
  p->pb.used = 0;
  *at_out = prof_i_protobuf_begin(&p->pb, PF_TRACE_PACKET);
  prof_i_protobuf_number(&p->pb, PF_PACKET_SEQUENCE, p->sequence_base + sequence);
}

void prof_i_pf_end_packet(prof_i_export *run, size_t at) {
  prof_i_pftrace *const p = run->state;
  if (p->interned.used && prof_i_protobuf_reserve(&p->pb, 2 * PROF_I_VARINT_ROOM)) {
    const size_t interned = prof_i_protobuf_begin(&p->pb, PF_PACKET_INTERNED);
    if (prof_i_protobuf_reserve(&p->pb, p->interned.used)) {
      memcpy(p->pb.bytes + p->pb.used, p->interned.bytes, p->interned.used);
      p->pb.used += p->interned.used;
    }
    prof_i_protobuf_end(&p->pb, interned);
    p->interned.used = 0;
  }
  prof_i_protobuf_end(&p->pb, at);
  if (!p->pb.has_failed && !p->interned.has_failed)
    prof_i_sink_bytes(run->sink, p->pb.bytes, p->pb.used);
}

/* ---- clocks ---- */

static void put_clock(prof_i_protobuf *pb, uint32_t id, uint64_t ns, bool is_incremental) {
  const size_t at = prof_i_protobuf_begin(pb, 1);
  prof_i_protobuf_number(pb, 1, id);
  prof_i_protobuf_number(pb, 2, ns);
  if (is_incremental) prof_i_protobuf_number(pb, 3, 1);
  prof_i_protobuf_end(pb, at);
}

/* Begins a sequence: its state, its clock, and the track of its events. */
static void put_sequence_begin(prof_i_export *run, uint32_t sequence, uint64_t track) {
  prof_i_pftrace *const p = run->state;
  prof_i_protobuf *const pb = &p->pb;
  const uint32_t clock = track ? PF_CLOCK_DELTA : PF_CLOCK_REALTIME;
  size_t at;
  prof_i_pf_begin_packet(p, sequence, &at);
  prof_i_protobuf_number(pb, PF_PACKET_FLAGS, 1);
  const size_t defaults = prof_i_protobuf_begin(pb, PF_PACKET_DEFAULTS);
  prof_i_protobuf_number(pb, PF_PACKET_TIMESTAMP_CLOCK, clock);
  if (track) {
    const size_t event = prof_i_protobuf_begin(pb, PF_PACKET_TRACK_EVENT);
    prof_i_protobuf_number(pb, PF_EVENT_TRACK, track);
    prof_i_protobuf_end(pb, event);
  }
  prof_i_protobuf_end(pb, defaults);
  prof_i_pf_end_packet(run, at);

  prof_i_pf_begin_packet(p, sequence, &at);
  const size_t snapshot = prof_i_protobuf_begin(pb, PF_PACKET_CLOCK_SNAPSHOT);
  put_clock(pb, PF_CLOCK_REALTIME, run->info.start_unix_ns, false);
  if (track) put_clock(pb, PF_CLOCK_DELTA, 0, true);
  prof_i_protobuf_number(pb, 2, PF_CLOCK_REALTIME);
  prof_i_protobuf_end(pb, snapshot);
  prof_i_pf_end_packet(run, at);
  p->last_ns = 0;
}

/* ---- descriptors ---- */

typedef struct open_descriptor {
  size_t packet, descriptor;
} open_descriptor;

static open_descriptor begin_descriptor(prof_i_export *run, uint64_t uuid, uint64_t parent) {
  prof_i_pftrace *const p = run->state;
  open_descriptor open;
  prof_i_pf_begin_packet(p, PF_SEQUENCE_GLOBAL, &open.packet);
  open.descriptor = prof_i_protobuf_begin(&p->pb, PF_PACKET_DESCRIPTOR);
  prof_i_protobuf_number(&p->pb, DESCRIPTOR_UUID, uuid);
  if (parent) prof_i_protobuf_number(&p->pb, DESCRIPTOR_PARENT, parent);
  return open;
}

static void end_descriptor(prof_i_export *run, open_descriptor open) {
  prof_i_pftrace *const p = run->state;
  prof_i_protobuf_end(&p->pb, open.descriptor);
  prof_i_pf_end_packet(run, open.packet);
}

static void put_process_track(prof_i_export *run, uint64_t uuid, uint64_t pid, prof_i_text name) {
  prof_i_pftrace *const p = run->state;
  const prof_i_export_place *const place = run->options->place;
  const bool is_labelled = place && place->is_process_labelled;
  const open_descriptor open = begin_descriptor(run, uuid, 0);
  const size_t process = prof_i_protobuf_begin(&p->pb, DESCRIPTOR_PROCESS);
  prof_i_protobuf_number(&p->pb, PROCESS_PID, pid);
  if (is_labelled) {
    const size_t at = prof_i_protobuf_begin(&p->pb, PROCESS_NAME);
    prof_i_protobuf_text_part(&p->pb, place->label, strlen(place->label));
    if (name.bytes) prof_i_protobuf_text_part(&p->pb, ": ", 2);
    prof_i_protobuf_text_part(&p->pb, name.data, (size_t)name.bytes);
    prof_i_protobuf_end(&p->pb, at);
  } else if (name.bytes) {
    prof_i_protobuf_text(&p->pb, PROCESS_NAME, name.data, (size_t)name.bytes);
  }
  prof_i_protobuf_end(&p->pb, process);
  end_descriptor(run, open);
}

static void put_named_track(prof_i_export *run, uint64_t uuid, uint64_t parent, const char *name,
                            uint64_t rank) {
  prof_i_pftrace *const p = run->state;
  const open_descriptor open = begin_descriptor(run, uuid, parent);
  prof_i_protobuf_text(&p->pb, DESCRIPTOR_NAME, name, strlen(name));
  if (parent)
    prof_i_protobuf_number(&p->pb, DESCRIPTOR_RANK, rank);
  else
    prof_i_protobuf_number(&p->pb, DESCRIPTOR_ORDERING, ORDERING_EXPLICIT);
  end_descriptor(run, open);
}

/* The track of that key and name, made if it does not exist. NULL: no memory. */
static prof_i_pf_track *find_track(prof_i_export *run, uint64_t key, prof_i_text name,
                                   bool *is_new_out) {
  prof_i_pftrace *const p = run->state;
  *is_new_out = false;
  for (uint32_t i = 0; i < p->track_count; i++) {
    prof_i_pf_track *const track = &p->tracks[i];
    if (track->key == key && track->name.bytes == name.bytes &&
        (name.bytes == 0 || memcmp(track->name.data, name.data, name.bytes) == 0))
      return track;
  }
  if (!prof_i_make_room((void **)&p->tracks, &p->track_room, p->track_count, sizeof *p->tracks)) {
    p->pb.has_failed = true;
    return NULL;
  }
  *is_new_out = true;
  p->tracks[p->track_count] = (prof_i_pf_track){key, p->next_uuid++, name, NULL};
  return &p->tracks[p->track_count++];
}

static void put_device_track(prof_i_export *run, uint64_t uuid, const char *name) {
  const prof_i_export_place *const place = run->options->place;
  char text[PROF_I_DEVICE_NAME_BYTES + 128];
  snprintf(text, sizeof text, "%s%s%s", place ? place->label : "", place ? ": " : "", name);
  put_named_track(run, uuid, 0, text, 0);
}

static uint64_t device_track(prof_i_export *run, prof_device device) {
  char name[PROF_I_DEVICE_NAME_BYTES];
  bool is_new;
  const prof_i_pf_track *const track =
      find_track(run, prof_i_export_device_pid(run, device), (prof_i_text){"", 0}, &is_new);
  if (!track) return 0;
  const uint64_t uuid = track->uuid;
  prof_i_device_name(device, name);
  if (is_new) put_device_track(run, uuid, name);
  return uuid;
}

/* Of the thread, which may be of another process than the capture's. */
static uint64_t process_track(prof_i_export *run, uint32_t thread) {
  const prof_i_pftrace *const p = run->state;
  const prof_i_tids *const ids = &run->tids[thread];
  bool is_new;
  if (!ids->is_elsewhere) return prof_i_pf_process_uuid(p);
  const prof_i_pf_track *const track = find_track(run, ids->pid, (prof_i_text){"", 0}, &is_new);
  if (!track) return 0;
  const uint64_t uuid = track->uuid;
  const prof_i_text name = prof_i_trace_process(run->trace, thread).name;
  if (is_new) put_process_track(run, uuid, ids->pid, name);
  return uuid;
}

void prof_i_pf_put_global_begin(prof_i_export *run) {
  put_sequence_begin(run, PF_SEQUENCE_GLOBAL, 0);
  const char *const name = run->info.process_name;
  put_process_track(run, prof_i_pf_process_uuid(run->state), run->info.pid,
                    (prof_i_text){name, strlen(name)});
}

/* The user's name for a stream, or none. */
static prof_i_text stream_name(const prof_trace *trace, const prof_trace_thread *thread) {
  prof_device device;
  prof_i_text name;
  uint64_t handle;
  for (uint32_t i = 0; prof_i_trace_track(trace, i, &device, &handle, &name) != 0; i++)
    if (prof_i_is_same_device(device, thread->device) && handle == thread->stream) return name;
  return (prof_i_text){"", 0};
}

static void put_stream_track(prof_i_export *run, uint64_t uuid, const prof_trace_thread *thread) {
  enum { NAME_SHOWN_BYTES = 256 };
  const uint64_t number = run->tids[run->thread].first;
  const prof_i_text own = stream_name(run->trace, thread);
  char name[NAME_SHOWN_BYTES + 64];
  const int shown = own.bytes < NAME_SHOWN_BYTES ? (int)own.bytes : NAME_SHOWN_BYTES;
  snprintf(name, sizeof name, "stream %llu%s%.*s", (unsigned long long)number, shown ? ": " : "",
           shown, own.data);
  put_named_track(run, uuid, device_track(run, thread->device), name, number);
}

/* Numbers that Perfetto's 32 bits do not hold make a track without a thread. */
static void put_thread_track(prof_i_export *run, uint64_t uuid, const prof_trace_thread *thread) {
  prof_i_pftrace *const p = run->state;
  const prof_i_tids *const ids = &run->tids[run->thread];
  const char *const name = prof_i_tids_name_in_process(run->trace, run->thread, thread->name);
  const uint64_t parent = process_track(run, run->thread);
  if (ids->first == 0 || ids->first >= INT32_IDS_END || ids->pid == 0) {
    char made[sizeof thread->name + 64];
    snprintf(made, sizeof made, "%s%sthread %llu", name, *name ? ", " : "",
             (unsigned long long)thread->tid);
    put_named_track(run, uuid, parent, made, run->thread);
    return;
  }
  const open_descriptor open = begin_descriptor(run, uuid, parent);
  const size_t inner = prof_i_protobuf_begin(&p->pb, DESCRIPTOR_THREAD);
  prof_i_protobuf_number(&p->pb, THREAD_PID, ids->pid);
  prof_i_protobuf_number(&p->pb, THREAD_TID, ids->first);
  if (*name) prof_i_protobuf_text(&p->pb, THREAD_NAME, name, strlen(name));
  prof_i_protobuf_end(&p->pb, inner);
  end_descriptor(run, open);
}

int prof_i_pf_put_thread_begin(prof_i_export *run, const prof_trace_thread *thread) {
  prof_i_pftrace *const p = run->state;
  const uint64_t uuid = prof_i_pf_lane_uuid(p, run->thread, 0);
  p->generation = run->thread + 1;
  p->next_iid = 1;
  p->lanes_named = 1;
  prof_i_flows_next_thread(&p->flows);
  if (thread->event_count == 0) return PROF_OK;
  if (thread->is_stream)
    put_stream_track(run, uuid, thread);
  else
    put_thread_track(run, uuid, thread);
  put_sequence_begin(run, PF_SEQUENCE_FIRST + run->thread, uuid);
  return PROF_OK;
}

void prof_i_pf_name_lanes(prof_i_export *run, uint32_t lane) {
  prof_i_pftrace *const p = run->state;
  char name[32];
  for (; p->lanes_named <= lane; p->lanes_named++) {
    snprintf(name, sizeof name, "overlapping %u", p->lanes_named);
    put_named_track(run, prof_i_pf_lane_uuid(p, run->thread, p->lanes_named),
                    prof_i_pf_lane_uuid(p, run->thread, 0), name, p->lanes_named);
  }
}

/* The caller's name does not last. */
static bool keep_name(prof_i_pf_track *track) {
  char *const copy = malloc((size_t)track->name.bytes + 1);
  if (!copy) {
    track->name = (prof_i_text){"", 0};
    return false;
  }
  memcpy(copy, track->name.data, (size_t)track->name.bytes);
  track->own_name = copy;
  track->name.data = copy;
  return true;
}

uint64_t prof_i_pf_counter_track(prof_i_export *run, prof_i_text name, prof_device device,
                                 uint32_t key, bool is_bytes) {
  prof_i_pftrace *const p = run->state;
  const bool is_host = prof_i_device_is_host(device);
  const uint64_t parent = is_host ? process_track(run, run->thread) : device_track(run, device);
  bool is_new;
  const prof_i_pf_track *const track =
      find_track(run, ((uint64_t)key + 1) << 32 | parent, name, &is_new);
  if (!track) return 0;
  const uint64_t uuid = track->uuid;
  if (!is_new) return uuid;
  if (is_bytes && !keep_name(&p->tracks[p->track_count - 1])) {
    p->pb.has_failed = true;
    return 0;
  }
  const open_descriptor open = begin_descriptor(run, uuid, parent);
  prof_i_protobuf_text(&p->pb, DESCRIPTOR_NAME, name.data, (size_t)name.bytes);
  const size_t counter = prof_i_protobuf_begin(&p->pb, DESCRIPTOR_COUNTER);
  if (is_bytes) prof_i_protobuf_number(&p->pb, COUNTER_UNIT, UNIT_BYTES);
  prof_i_protobuf_end(&p->pb, counter);
  end_descriptor(run, open);
  return uuid;
}
