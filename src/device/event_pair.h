/* Device times of scopes: pairs of events on their way from the thread that put them on a stream to
   the collector that reads them, and back. No lock is taken while a scope begins or ends. */
#ifndef PROF_DEVICE_EVENT_PAIR_H
#define PROF_DEVICE_EVENT_PAIR_H

#include "../core/buffer/thread.h"
#include "device_clock.h"
#include "registry.h"

enum {
  PROF_I_EVENT_PAIR_NAME_BYTES = 112,
  /* of a thread on a stream. If more wait for the device, scopes have no device times */
  PROF_I_EVENT_PAIRS_MAX = 4096,
  PROF_I_STREAMS_MAX = 4096
};

/* Fields that the collector writes and fields that a scope's thread writes are on separate cache
   lines, so that they do not invalidate each other at each scope. */
#define PROF_I_CACHE_LINE_BYTES 64

struct prof_i_thread_stream;

/* Two events around what a scope put on its stream. The thread's, then (done) the collector's, then
   (back) the thread's. At a multiple of a line. */
typedef struct prof_i_event_pair {
  struct prof_i_event_pair *next;
  struct prof_i_thread_stream *thread_stream;
  struct prof_i_stream *stream; /* that its events are on */
  void *events[2];
  uint64_t ticks[2]; /* before each was recorded: it cannot be past by then */
  /* ticks of the last query that found the second event not past; 0: none */
  uint64_t pending_ticks;
  uint64_t launch_serial;  /* of the host's scope: its thread's serial, and its start */
  uint64_t start;          /* ticks << 4 */
  uint64_t arena, session; /* in which it began */
  uint32_t is_late;        /* 1: counted as lost: its recording has ended */
  uint32_t site, flags;    /* flags: PROF_I_FLAG_NAME, PROF_I_FLAG_CATEGORY, PROF_I_FLAG_CUT */
  uint32_t name_bytes, category_bytes;
  /* PROF_I_EVENT_PAIR_NAME_BYTES, made when first needed: the name, then the category, where they
     are made at run time */
  char *names;
} prof_i_event_pair;
_Static_assert(sizeof(prof_i_event_pair) % PROF_I_CACHE_LINE_BYTES == 0 || sizeof(void *) != 8,
               "pairs that stand in a row begin with a line");

/* A stream of a device, and the thread that it is in the capture. Once listed it stays. The device
   is the back end's word, where it has one: what the program says may be another number. */
typedef struct prof_i_stream {
  prof_i_backend *backend;
  uint64_t handle;
  prof_device device;
  char before_done[PROF_I_CACHE_LINE_BYTES];
  prof_i_event_pair *done; /* newest first; any thread pushes, the collector takes all */
  char before_pending[PROF_I_CACHE_LINE_BYTES];
  prof_i_event_pair *pending; /* this and what follows is the collector's: oldest first */
  prof_i_event_pair **pending_end;
  prof_i_virtual_thread line;
  prof_i_device_clock *clock; /* the collector's, of its device or its own; NULL: not met yet */
  void *zero_event;           /* see resolver.c */
  uint64_t zero_ns;
  struct prof_i_stream *next;
} prof_i_stream;

/* One thread's use of one stream. */
typedef struct prof_i_thread_stream {
  prof_i_stream *stream; /* NULL: no back end serves it */
  uint64_t handle;
  prof_device device;
  uint64_t unserved_session; /* without a stream: the session in which no back end served it */
  prof_i_event_pair *free;   /* the thread's own */
  uint32_t count;            /* pairs made */
  /* the last result but OK that the registry and the capture know */
  int32_t reported_result;
  uint64_t reported_session; /* the session then */
  char before_returned[PROF_I_CACHE_LINE_BYTES];
  prof_i_event_pair *returned; /* the collector pushes, the thread takes all */
  char behind_returned[PROF_I_CACHE_LINE_BYTES];
} prof_i_thread_stream;

/* Finds or adds the stream. NULL with *loss_out -1: no back end serves its device type. NULL with a
   loss: this scope's device times are lost, but a later scope may have some. Another thread is
   opening the back end, there are too many streams, or there is no memory. Any thread. */
prof_i_stream *prof_i_stream_of(prof_device device, uint64_t handle, int *loss_out);
/* All, as they came. */
prof_i_stream *prof_i_stream_first(void);
static inline prof_i_stream *prof_i_stream_next(const prof_i_stream *stream) {
  return __atomic_load_n(&stream->next, __ATOMIC_ACQUIRE);
}
/* A call for that stream has failed: the status and the capture say so, in the vendor's words.
   Right after the call, on the same thread, outside of the arena guard. */
void prof_i_stream_report_error(const prof_i_stream *stream, int result);
/* In a forked child. */
void prof_i_streams_forget(void);

/* A pair, both events past or never to be, goes back to its thread. The collector. */
void prof_i_event_pair_give_back(prof_i_event_pair *pair,
                                 bool is_read); /* is_read: both have been asked */

#endif
