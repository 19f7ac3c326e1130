/* Functions of this folder that need no header of their own, by the file that defines them. src/op
   and src/lib use those of host.c and activity.c. */
#ifndef PROF_DEVICE_INTERNAL_H
#define PROF_DEVICE_INTERNAL_H

#include <prof/backend.h>
#include <prof/device.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "../core/buffer/thread.h"
#include "../format/layout.h"
#include "registry.h"

/* ---- device_clock.c ---- */

/* Converts a device's times to the host's counter, with the possible error. One for each device;
   one for each stream if events have only distances. The collector alone. Conversions never change:
   all times go through the same knots. So what a device did inside of a scope is inside of it in
   the trace, too. */

enum { PROF_I_CLOCK_KNOTS_MAX = 512 };

/* At device_ns the host's counter stood between the other two. */
typedef struct prof_i_clock_bound {
  uint64_t device_ns, low_ticks, high_ticks;
} prof_i_clock_bound;

/* A point of the line. Up to the next knot, the host's counter at the device's time t is
   ticks + rate * (t - device_ns), and at least floor_ticks. It is wrong by at most error_ticks. */
typedef struct prof_i_clock_knot {
  uint64_t device_ns, ticks, error_ticks, floor_ticks;
  double rate;
} prof_i_clock_knot;

typedef struct prof_i_device_clock {
  prof_i_backend *backend;
  uint32_t index;
  /* its times come from distances between events; it has no readings */
  bool has_distances_only;
  bool has_readings; /* it can be read */
  /* the counter's ticks in a ns; as a share of it, what that may be wrong by */
  double rate, rate_error;
  /* the same when the first knot was put: what lies before it */
  double before_rate, before_rate_error;
  prof_i_clock_knot knots[PROF_I_CLOCK_KNOTS_MAX]; /* by the device's time */
  uint32_t count;
  uint64_t mapped_end_ns; /* the latest device time that was converted */
  /* Of a clock that cannot be read, as of the last bound. The counter is ahead of the line through
     the first bound's lower end by low_ticks to high_ticks. */
  uint64_t zero_ns, zero_ticks, bound_ticks;
  int64_t low_ticks, high_ticks;
  uint64_t step_count; /* how often the two clocks parted: a clock was set, or the machine slept */
} prof_i_device_clock;

void prof_i_device_clock_init(prof_i_device_clock *clock, prof_i_backend *backend, uint32_t index);

/* Reads both clocks if that is possible, unless device_ns is before the last reading. False:
   device_ns is too far ahead of the device's clock to be a time of it. */
bool prof_i_device_clock_update(prof_i_device_clock *clock, uint64_t device_ns);

/* Adds a reading that was taken before the clock existed, as its first one. Does nothing if it has
   one. */
void prof_i_device_clock_add_reading(prof_i_device_clock *clock, const prof_backend_pair *pair);

/* Adds the limits that an event gives: not past when it was recorded, past when it was polled. */
void prof_i_device_clock_add_bound(prof_i_device_clock *clock, const prof_i_clock_bound *bound);

/* The host's counter at device_ns, and its possible error. False: nothing is known yet. */
bool prof_i_device_clock_to_host(prof_i_device_clock *clock, uint64_t device_ns,
                                 uint64_t *ticks_out, uint64_t *error_ticks_out);

/* The same for a begin. If the line changes at device_ns, the new line is used, as for the end.
   Otherwise a scope that begins when another one ends would get the step added to its length. */
bool prof_i_device_clock_to_host_begin(prof_i_device_clock *clock, uint64_t device_ns,
                                       uint64_t *ticks_out, uint64_t *error_ticks_out);

/* ---- gpu_scope.c, stream.c: pairs of events ---- */

/* Device times of scopes: pairs of events on their way from the thread that put them on a stream to
   the collector that reads them, and back. No lock is taken while a scope begins or ends. */

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

/* ---- backend_table.c: a vendor's table has any size, and may have holes ---- */

/* Copies the table; members beyond its size become NULL. PROF_E_INVALID, PROF_E_VERSION with a
   reason; what: whose table it is, for that reason. *to is then all 0. */
int prof_i_backend_table_copy(prof_backend *to, const prof_backend *from, const char *what);

/* PROF_CAN_* that the table has functions for. */
uint32_t prof_i_backend_table_abilities(const prof_backend *table);

/* ---- plugin.c: back ends in shared libraries ---- */

/* True while this thread runs a plug-in's own code. */
bool prof_i_plugins_is_loading(void);

/* Loads and lists what these paths name: see prof_backend_load(). */
int prof_i_plugins_load(const char *paths);

/* ---- gpu_scope.c ---- */

/* In a forked child the threads' pairs are the parent's. */
void prof_i_gpu_scopes_forget(void);

/* ---- collector.c ---- */

/* When the library is loaded. From then on the core reports starts and stops to it. */
void prof_i_collector_prepare(void);

/* ---- device_memory.c ---- */

/* The collector alone. */

/* Creates the pools of all its devices before it begins to report. False: not now, a start or stop
   is under way. Without a lock, outside of the arena guard. */
bool prof_i_device_memory_prepare(prof_i_backend *backend);

/* Writes one block at that host time. Returns the loss, or -1: written, or it was not handed out
   since. Inside the arena guard. */
int prof_i_device_memory_write(const prof_i_backend *backend, const prof_backend_memory *it,
                               uint64_t ticks);

/* Recording ends, and its virtual thread with it. */
void prof_i_device_memory_end_thread(void);

/* In a forked child. */
void prof_i_device_memory_forget(void);

/* ---- device_state.c ---- */

/* That device's record in the arena in force, made if it was not there; NULL: no room. Its counts
   are for atomic stores. Inside the arena guard: the record is the arena's. Any thread. */
prof_i_device_state *prof_i_device_state_get(prof_device device, const prof_i_backend *backend);

/* Says why the device's own times are missing. If it has some: why others are missing. The first
   reason stays. backend: NULL if none serves the device. Inside the arena guard. Any thread. */
void prof_i_device_state_set_reason(prof_device device, const prof_i_backend *backend,
                                    int32_t result, const char *reason);

/* The same outside of the arena guard: enters it, or does nothing while the arena is being
   replaced. Any thread, as all below. */
void prof_i_device_state_report(prof_device device, const prof_i_backend *backend, int32_t result,
                                const char *reason);
/* No back end serves the device: the registry says why. */
void prof_i_device_state_report_unserved(prof_device device);
/* Another thread is just opening its back end. */
void prof_i_device_state_report_too_early(prof_device device);
/* The device was not done with its work when recording stopped. */
void prof_i_device_state_report_unfinished(prof_device device, const prof_i_backend *backend);
/* The back end's records began late (backend->late_ns): of its first device, and of those that have
   a record already. */
void prof_i_device_state_report_late(const prof_i_backend *backend);

/* In a forked child: the records are the parent's. */
void prof_i_device_states_forget(void);

static inline void prof_i_device_count_add(uint64_t *count, uint64_t more) {
  __atomic_fetch_add(count, more, __ATOMIC_RELAXED);
}
static inline void prof_i_device_count_raise(uint64_t *most, uint64_t value) {
  uint64_t seen = __atomic_load_n(most, __ATOMIC_RELAXED);
  while (seen < value && !__atomic_compare_exchange_n(most, &seen, value, true, __ATOMIC_RELAXED,
                                                      __ATOMIC_RELAXED)) {
  }
}

/* ---- external_events.c ---- */

/* The collector: takes those that are past. True: some are not. */
bool prof_i_external_events_round(void);

/* Some wait: of this recording, or of the previous one if they came while it was ending. Any
   thread. */
bool prof_i_external_events_pending(void);

/* Recording ends: the rest is lost, and counted. */
void prof_i_external_events_end(void);

/* In a forked child. */
void prof_i_external_events_forget(void);

/* ---- names.c ---- */

/* Any thread. */

/* Its number, the same for the same text; 0: no room. */
uint32_t prof_i_name_intern(const char *text, size_t bytes);

/* The call site in tables and captures for work of that name and category. The category is a
   literal. Without a name it has the text `otherwise`. level: 1, or 2 for the runtime's own. 0: no
   room. */
uint32_t prof_i_name_site(uint32_t number, const char *category, const char *otherwise,
                          uint32_t level);

/* NUL-terminated, and stays; of 0 and of no number that was given: empty. */
const char *prof_i_name_text(uint32_t number);

/* In a forked child, whose parent may just have been at it. */
void prof_i_names_forget(void);

/* ---- records.c ---- */

/* Writes a vendor's records to the capture. A kernel, a copy or a fill is a scope of its stream.
   A call of the vendor's library is a scope of a virtual thread beside its own; readers put it
   among its thread's scopes. The collector alone. */

/* Between these the back end's records are written. */
void prof_i_records_begin(prof_i_backend *backend);
void prof_i_records_end(void);

/* Writes records of the back end whose drain is under way. False: there is no drain. What is no
   record is counted as lost. */
bool prof_i_records_write(const void *records, size_t bytes);

/* Recording ends, and its virtual threads with it. */
void prof_i_records_end_threads(void);

/* In a forked child. */
void prof_i_records_forget(void);

/* ---- resolver.c ---- */

/* The collector alone. */

/* Creates the stream's clock, and reads it if that is possible. False: no memory. */
bool prof_i_resolver_prepare(prof_i_stream *stream);

/* Writes the pair's scope. now: the counter after the pair was found past. Inside the arena guard.
   Returns the loss, or -1. */
int prof_i_resolver_write_scope(prof_i_stream *stream, prof_i_event_pair *pair, uint64_t now);

/* The clock of a device's own times, which its vendor's records have: its events may have another.
   NULL: no memory. */
prof_i_device_clock *prof_i_resolver_device_clock(prof_i_backend *backend, uint32_t index);

/* In a forked child: the clocks are the parent's. */
void prof_i_resolver_forget(void);

/* ---- stream.c ---- */

/* The collector alone, inside the arena guard. */

enum { PROF_I_STREAM_VALUES_MAX = 64 }; /* words */

typedef struct prof_i_stream_scope {
  prof_i_stream *stream;
  prof_i_device_clock *clock; /* that its times are of */
  uint64_t device_ns[2];      /* begin and end, by the device's clock */
  uint64_t ticks[2];          /* the same by the host's counter */
  uint64_t serial;            /* of the thread that launched it; 0: not known */
  uint64_t launch_ticks;      /* when */
  /* flags: PROF_I_FLAG_NAME, PROF_I_FLAG_CATEGORY, PROF_I_FLAG_CUT. schema: of the four launch
     words and the values behind them; 0: there are none */
  uint32_t site, flags, schema;
  uint32_t name_bytes, category_bytes;
  const char *names; /* the name, then the category, where they are made at run time */
  const uint64_t *values;
  size_t value_words;
} prof_i_stream_scope;

/* Returns the loss, or -1: it was written. */
int prof_i_stream_scope_write(const prof_i_stream_scope *scope);

/* Converts device_ns to ticks. False: the clocks know nothing yet, or these times are impossible. A
   begin or end before bounds->earliest is moved there and counted. */
typedef struct prof_i_stream_bounds {
  uint64_t earliest[2]; /* of begin and end: ticks of the launch */
  uint64_t unfinished;  /* the last time it was found not past, or earliest's */
  uint64_t now;         /* after it was found past */
} prof_i_stream_bounds;
bool prof_i_stream_scope_set_times(prof_i_stream_scope *scope, const prof_i_stream_bounds *bounds);

/* ---- host.c ---- */

/* What prof gives to back ends: see prof_backend_host of <prof/backend.h>. Higher files set where
   records go; the host knows nothing of them. */

extern const prof_backend_host prof_i_device_host;

/* Takes records that a back end emits. False: they are not for this sink. */
typedef bool prof_i_host_sink(const void *records, size_t bytes);

/* Each emitted record goes to this sink first; NULL ends that. One sink at a time: the caller
   ensures it. Any thread. */
void prof_i_host_set_first_sink(prof_i_host_sink *sink);

/* Then to the sink of the drain that is under way. Without one, records are counted as lost. The
   collector. */
void prof_i_host_set_drain_sink(prof_i_host_sink *sink);

/* Counts records. A malformed tail counts as one. */
uint64_t prof_i_host_count_records(const void *records, size_t bytes);

/* The recording asks all back ends for records. Any thread. */
bool prof_i_host_wants_records(void);

/* Bits of prof_backend_kind. Level 1: what devices do; 2: also the calls of their library. */
uint32_t prof_i_host_kinds_at_level(uint32_t level);

/* ---- activity.c ---- */

/* Vendors' own tracing: which back ends record, and since when. Their records go to the capture
   (records.c). Functions without a note are the collector's. */

/* True if a back end is to record. Any thread. */
bool prof_i_activity_is_wanted(void);

/* A recording begins. is_waited_for: its caller waits for the first round. Any thread. */
void prof_i_activity_begin(bool is_waited_for);

/* Opens and starts what is wanted now, and takes the records. how: prof_backend_drain. True: more
   records are on their way. */
bool prof_i_activity_round(uint32_t how);

/* Records are wanted of a library that the program does not use yet. */
bool prof_i_activity_is_awaiting(void);
/* The longest time to the next round in that case. Work that begins before the round is not
   recorded. */
uint64_t prof_i_activity_poll_interval_ns(void);

/* A vendor's tracing is at work, and has buffers to empty. Any thread. */
bool prof_i_activity_is_on(void);

/* Recording ends. */
void prof_i_activity_end(void);

/* Between these an operator's measurement starts, drains and stops the back end. A recording that
   begins meanwhile starts it afterwards. False: it records already, or another measurement has it.
   Any thread. */
bool prof_i_activity_acquire(const prof_i_backend *backend);
void prof_i_activity_release(const prof_i_backend *backend);

/* The vendor of that table is just beginning, on this thread, and allows records to be requested
   already. `begin` requests them and reads the clock; it touches no device. The next round after
   the program has begun takes the records over. Does nothing if no records or also memory are
   wanted, or another thread works on the back end. Waits for no round, and at most 0.2 s for a
   thread that lists or probes back ends. Any thread. */
typedef int prof_i_activity_preinit_fn(const prof_backend_host *host, uint32_t kinds,
                                       prof_backend_pair *look_out);
void prof_i_activity_begin_preinit(const prof_backend *table, prof_i_activity_preinit_fn *begin);

/* In a forked child. */
void prof_i_activity_forget(void);

/* ---- collector_thread.c ---- */

/* The collector's thread: created when first needed, woken, asked for a round, stopped. collector.c
   says what a round does. */

/* What a round found. */
enum {
  PROF_I_ROUND_WAITING = 1, /* devices are not done yet: poll them */
  PROF_I_ROUND_HAD_WORK = 2
};

/* Called by the thread, without a lock, except where noted. */
typedef struct prof_i_collector_work {
  /* Reads what devices have done; returns PROF_I_ROUND_*. is_requested: a caller waits for this
     round, and wants all that has ended by now. */
  uint32_t (*round)(bool is_requested);
  /* A scope has ended since the last round. */
  bool (*has_new_pairs)(void);
  /* Recording ends. */
  void (*end_recording)(void);
  /* Vendors' records are wanted. Any thread. */
  bool (*wants_records)(void);
  /* The longest sleep without work; UINT64_MAX: no limit of its own. */
  uint64_t (*max_sleep_ns)(void);
  /* How long a stop waits for the last round. Any thread, under the collector's lock. */
  uint32_t (*stop_patience_ms)(void);
} prof_i_collector_work;

/* Once, when the library is loaded. No thread can be created before that. */
void prof_i_collector_thread_set_work(const prof_i_collector_work *work);

/* True: the thread exists, or was created now, so scopes may use their devices. Any thread. */
bool prof_i_collector_ensure(void);

/* There is something to ask about. Any thread. Signal-safe. */
void prof_i_collector_wake(void);

/* The same of what back ends have to hand over. Any thread. Signal-safe. */
void prof_i_collector_wake_for_records(void);

/* Waits for a round that begins from now on. False: there was none in time. Any other thread. */
bool prof_i_collector_request_round(uint32_t patience_ms);

/* Asks for a round only if the thread exists. */
void prof_i_collector_flush(uint32_t patience_ms);

/* Ends the thread. Without the control lock: a vendor may take its time. */
void prof_i_collector_stop(void);

/* A vendor's library is loaded now: at exit the collector stops before that library's handlers
   that exist so far. Any thread. */
void prof_i_collector_register_exit(void);

/* Counts a loss of the calling thread's device times. Any thread. */
void prof_i_collector_count_loss(int loss);

/* In a forked child. */
void prof_i_collector_thread_forget(void);

#endif
