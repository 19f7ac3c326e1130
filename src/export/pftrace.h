/* Perfetto's protobuf trace: what the files pftrace*.c share. The file is a list of packets. Each
   thread and stream is a sequence of packets with its own interned names. Its own clock counts from
   packet to packet. Overlapping scopes have tracks of their own. */
#ifndef PROF_EXPORT_PFTRACE_H
#define PROF_EXPORT_PFTRACE_H

#include "exporter.h"
#include "flow.h"
#include "names.h"
#include "protobuf.h"

/* Field numbers of Perfetto's messages. */
enum {
  PF_TRACE_PACKET = 1,

  PF_PACKET_CLOCK_SNAPSHOT = 6,
  PF_PACKET_TIMESTAMP = 8,
  PF_PACKET_SEQUENCE = 10,
  PF_PACKET_TRACK_EVENT = 11,
  PF_PACKET_INTERNED = 12,
  PF_PACKET_FLAGS = 13,
  PF_PACKET_TIMESTAMP_CLOCK = 58,
  PF_PACKET_DEFAULTS = 59,
  PF_PACKET_DESCRIPTOR = 60,
  PF_PACKET_SERVICE_EVENT = 69,

  PF_SERVICE_FLUSHED = 3,
  PF_SERVICE_BUFFERS_READ = 4,

  PF_EVENT_CATEGORY_IIDS = 3,
  PF_EVENT_ANNOTATIONS = 4,
  PF_EVENT_TYPE = 9,
  PF_EVENT_NAME_IID = 10,
  PF_EVENT_TRACK = 11,
  PF_EVENT_CATEGORIES = 22,
  PF_EVENT_NAME = 23,
  PF_EVENT_COUNTER = 30,
  PF_EVENT_DOUBLE_COUNTER = 44,
  PF_EVENT_FLOWS = 47,
  PF_EVENT_LAST_FLOWS = 48,

  PF_TYPE_BEGIN = 1,
  PF_TYPE_END = 2,
  PF_TYPE_INSTANT = 3,
  PF_TYPE_COUNTER = 4,

  PF_INTERNED_CATEGORIES = 1,
  PF_INTERNED_NAMES = 2,
  PF_INTERNED_KEYS = 3,

  PF_CLOCK_REALTIME = 1,
  PF_CLOCK_DELTA = 64 /* of a sequence */
};

/* Of a file of several captures, each adds its base. */
enum { PF_KEY_COUNT = 256, PF_PROCESS_TRACK = 1, PF_UUID_BASE_SHIFT = 48, PF_FLOW_BASE_SHIFT = 40 };
enum { PF_PLAIN_EVENT_ROOM = 16, PF_FLUSH_SCOPES = 8192 /* at least */ };
#define PF_NO_FLUSH UINT64_MAX

/* A place of the site table, valid if the generation is the thread's. */
typedef struct prof_i_pf_site {
  uint32_t generation, iid;
  uint64_t event_bytes; /* 64 bits, so that a place has 32 bytes and is found by a shift */
  unsigned char event[PF_PLAIN_EVENT_ROOM]; /* the TrackEvent of a plain scope's begin */
} prof_i_pf_site;

typedef struct prof_i_pf_key {
  prof_i_text text;
  uint32_t generation, iid;
} prof_i_pf_key;

/* A track with a key: a process, a device or a counter. */
typedef struct prof_i_pf_track {
  uint64_t key, uuid;
  prof_i_text name; /* of a counter */
  char *own_name;   /* its bytes, if it is of memory; else the trace's */
} prof_i_pf_track;

typedef struct prof_i_pftrace {
  prof_i_protobuf pb;       /* the packet at hand */
  prof_i_protobuf interned; /* new names for it */
  prof_i_protobuf name;     /* of a counter */
  prof_i_flows flows;
  prof_i_pf_site *sites;
  uint32_t site_count;
  prof_i_pf_key keys[PF_KEY_COUNT];
  uint32_t generation; /* thread index + 1 */
  uint32_t next_iid;
  uint64_t last_ns;         /* of the sequence's clock */
  uint64_t flush_scopes;    /* begins from one flush mark to the next */
  uint64_t scopes_to_flush; /* begins until the next flush mark; PF_NO_FLUSH: no more marks */
  uint32_t last_thread;     /* with events; the number of threads if none has */
  uint32_t lanes_named;
  prof_i_pf_track *tracks;
  uint32_t track_count, track_room;
  uint64_t uuid_base, next_uuid, launch_count;
  uint32_t sequence_base;
  char format_text[PROF_I_FORMAT_BYTES];
} prof_i_pftrace;

enum { PF_SEQUENCE_GLOBAL = 1, PF_SEQUENCE_FIRST = 2 };

static inline uint64_t prof_i_pf_lane_uuid(const prof_i_pftrace *p, uint32_t thread,
                                           uint32_t lane) {
  return p->uuid_base | (uint64_t)(thread + 1) << 24 | lane;
}
static inline uint64_t prof_i_pf_process_uuid(const prof_i_pftrace *p) {
  return p->uuid_base | PF_PROCESS_TRACK;
}

/* pftrace_track.c: packets that describe tracks. */
void prof_i_pf_begin_packet(prof_i_pftrace *p, uint32_t sequence, size_t *at_out);
/* Closes the packet and writes it. */
void prof_i_pf_end_packet(prof_i_export *run, size_t at);
void prof_i_pf_put_global_begin(prof_i_export *run);
int prof_i_pf_put_thread_begin(prof_i_export *run, const prof_trace_thread *thread);
void prof_i_pf_name_lanes(prof_i_export *run, uint32_t lane);
/* The counter's track, described before its first value. 0: no memory. is_bytes: of memory. */
uint64_t prof_i_pf_counter_track(prof_i_export *run, prof_i_text name, prof_device device,
                                 uint32_t key, bool is_bytes);

/* pftrace_args.c: debug annotations of the event. New keys go to p->interned. */
void prof_i_pf_put_args(prof_i_export *run, const prof_event *event);
void prof_i_pf_put_text_arg(prof_i_pftrace *p, const char *key, const char *text, size_t bytes);
void prof_i_pf_put_number_arg(prof_i_pftrace *p, const char *key, uint64_t value);

#endif
