/* See emulated.h. */
#define _GNU_SOURCE
#include "emulated.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "meters.h"
#include "tracing.h"

struct prof_backend_self {
  const prof_backend_host *host;
};

typedef struct event {
  uint32_t is_past; /* past_lock */
  uint64_t device_ns;
  emulated_own *own_event; /* that it is the end of */
} event;

typedef struct command {
  struct command *next;
  event *of;        /* NULL: work */
  uint64_t busy_ns; /* of work */
  uint64_t number;
  uint64_t bytes; /* of a copy */
  emulated_launch_mark mark;
} command;

typedef struct span {
  uint64_t begin_ns, end_ns;
} span;

struct emulated_stream {
  pthread_t thread;
  pthread_mutex_t lock;
  pthread_cond_t changed;
  command *first, **end;
  bool quits, is_busy;
  uint32_t device;
  uint64_t launched;
  span *truth;
  uint64_t truth_room;
};

emulated_faults emulated_fault;
/* An event's time, and that it is past, come at once. A caller that learns that the event is not
   past knows that its time is later, even if the stream's thread has no processor in between. */
static pthread_mutex_t past_lock = PTHREAD_MUTEX_INITIALIZER;
static struct {
  uint64_t events, records, begun_ns;
  uint64_t last_ns; /* of the device's clock, as it was told last; relaxed */
} own;

static uint64_t host_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* The device's clock at a moment of the host's. */
static uint64_t device_ns_at(uint64_t now) {
  uint64_t begun = 0;
  if (__atomic_compare_exchange_n(&own.begun_ns, &begun, now, false, __ATOMIC_RELAXED,
                                  __ATOMIC_RELAXED))
    begun = now;
  return now + (uint64_t)(emulated_fault.clock_offset_ns + emulated_fault.clock_step_ns +
                          (int64_t)((double)(now - begun) * emulated_fault.clock_drift));
}

static uint64_t device_ns(void) { return device_ns_at(host_ns()); }
uint64_t emulated_time_ns(void) { return device_ns(); }

/* A test may change its mind while a stream is at work. */
static bool is_time_for(const uint32_t *every, uint64_t count) {
  const uint32_t value = __atomic_load_n(every, __ATOMIC_RELAXED);
  return value && count % value == value - 1;
}

/* ---- streams ---- */

static void pass(event *e) {
  const uint64_t count = __atomic_fetch_add(&own.records, 1, __ATOMIC_RELAXED);
  if (is_time_for(&emulated_fault.lost_every, count)) return;
  pthread_mutex_lock(&past_lock);
  const uint64_t now = device_ns();
  e->device_ns = is_time_for(&emulated_fault.zero_every, count)       ? 0
                 : is_time_for(&emulated_fault.reversed_every, count) ? now - 1000000000
                                                                      : now;
  e->is_past = 1;
  pthread_mutex_unlock(&past_lock);
}

static uint32_t is_past(const event *e) {
  pthread_mutex_lock(&past_lock);
  const uint32_t is = e->is_past;
  pthread_mutex_unlock(&past_lock);
  return is;
}

static void note(emulated_stream *s, uint64_t number, span when) {
  pthread_mutex_lock(&s->lock);
  if (number >= s->truth_room) {
    s->truth_room = number * 2 + 64;
    s->truth = realloc(s->truth, s->truth_room * sizeof *s->truth);
  }
  s->truth[number] = when;
  pthread_mutex_unlock(&s->lock);
}

static void run(emulated_stream *s, const command *c) {
  if (c->of) {
    emulated_own *const own_event = c->of->own_event;
    pass(c->of);
    if (own_event) emulated_own_release(own_event); /* the stream's own hold on it */
    return;
  }
  const uint64_t begin = host_ns();
  if (c->busy_ns > 200000) {
    const struct timespec nap = {(time_t)(c->busy_ns / 1000000000),
                                 (long)(c->busy_ns % 1000000000)};
    nanosleep(&nap, NULL);
  }
  while (host_ns() < begin + c->busy_ns) {
  }
  while (__atomic_load_n(&emulated_fault.holds, __ATOMIC_RELAXED)) usleep(1000);
  const uint64_t end = host_ns();
  note(s, c->number, (span){begin, end});
  emulated_tracing_done(&c->mark, (uintptr_t)s, s->device, c->bytes, device_ns_at(begin),
                        device_ns_at(end));
}

static void *work(void *stream) {
  emulated_stream *const s = stream;
  pthread_mutex_lock(&s->lock);
  for (;;) {
    while (!s->first && !s->quits) pthread_cond_wait(&s->changed, &s->lock);
    command *const c = s->first;
    if (!c) break;
    if ((s->first = c->next) == NULL) s->end = &s->first;
    s->is_busy = true;
    pthread_mutex_unlock(&s->lock);
    run(s, c);
    free(c);
    pthread_mutex_lock(&s->lock);
    s->is_busy = false;
    pthread_cond_broadcast(&s->changed);
  }
  pthread_mutex_unlock(&s->lock);
  return NULL;
}

/* False: no memory. */
static bool put(emulated_stream *s, event *of, uint64_t busy_ns, uint64_t bytes,
                uint64_t *number_out) {
  command *const c = calloc(1, sizeof *c);
  if (!c) return false;
  *c = (command){.of = of, .busy_ns = busy_ns, .bytes = bytes};
  if (!of) c->mark = emulated_tracing_mark();
  pthread_mutex_lock(&s->lock);
  if (!of) c->number = s->launched++;
  *number_out = c->number;
  *s->end = c;
  s->end = &c->next;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  return true;
}

emulated_stream *emulated_create(uint32_t device) {
  emulated_stream *const s = calloc(1, sizeof *s);
  if (!s) abort();
  s->device = device;
  s->end = &s->first;
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  if (pthread_create(&s->thread, NULL, work, s) != 0) abort();
  return s;
}

void emulated_destroy(emulated_stream *s) {
  pthread_mutex_lock(&s->lock);
  s->quits = true;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
  pthread_join(s->thread, NULL);
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  free(s->truth);
  free(s);
}

uint64_t emulated_copy(emulated_stream *s, uint64_t busy_ns, uint64_t bytes) {
  uint64_t number;
  if (!put(s, NULL, busy_ns, bytes, &number)) abort();
  return number;
}
uint64_t emulated_launch(emulated_stream *s, uint64_t busy_ns) {
  return emulated_copy(s, busy_ns, 0);
}

void emulated_wait(emulated_stream *s) {
  pthread_mutex_lock(&s->lock);
  while (s->first || s->is_busy) pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}

void emulated_truth(const emulated_stream *s, uint64_t number, uint64_t *begin_ns_out,
                    uint64_t *end_ns_out) {
  *begin_ns_out = s->truth[number].begin_ns;
  *end_ns_out = s->truth[number].end_ns;
}

uint64_t emulated_event_count(void) { return __atomic_load_n(&own.events, __ATOMIC_RELAXED); }

/* ---- the table ---- */

static int probe(const prof_backend_host *host) {
  (void)host;
  return PROF_BACKEND_OK;
}
static int open_it(const prof_backend_host *host, prof_backend_self **self_out) {
  static prof_backend_self self;
  self.host = host;
  if (emulated_fault.open_ms) usleep(emulated_fault.open_ms * 1000);
  *self_out = &self;
  emulated_tracing_open(host);
  return PROF_BACKEND_OK;
}
static int event_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  (void)self, (void)stream;
  *event_out = calloc(1, sizeof(event));
  if (!*event_out) return PROF_BACKEND_NO_MEMORY;
  __atomic_fetch_add(&own.events, 1, __ATOMIC_RELAXED);
  return PROF_BACKEND_OK;
}
static int event_record(prof_backend_self *self, uint64_t stream, void **of) {
  static uint64_t count;
  (void)self;
  if (!stream) return PROF_BACKEND_INVALID;
  if (is_time_for(&emulated_fault.refused_every, __atomic_fetch_add(&count, 1, __ATOMIC_RELAXED)))
    return PROF_BACKEND_VENDOR;
  event *const e = *of;
  uint64_t unused;
  pthread_mutex_lock(&past_lock);
  e->is_past = 0;
  pthread_mutex_unlock(&past_lock);
  return put((emulated_stream *)(uintptr_t)stream, e, 0, 0, &unused) ? PROF_BACKEND_OK
                                                                     : PROF_BACKEND_NO_MEMORY;
}
static int event_query(prof_backend_self *self, void *of) {
  (void)self;
  while (__atomic_load_n(&emulated_fault.hangs, __ATOMIC_RELAXED)) usleep(1000);
  return is_past(of) ? PROF_BACKEND_OK : PROF_BACKEND_NOT_READY;
}
static void event_destroy(prof_backend_self *self, void *of) {
  (void)self;
  free(of);
  __atomic_fetch_sub(&own.events, 1, __ATOMIC_RELAXED);
}
static int event_time(prof_backend_self *self, void *of, uint64_t *ns_out) {
  (void)self;
  *ns_out = ((event *)of)->device_ns;
  return PROF_BACKEND_OK;
}
static int stream_of(prof_backend_self *self, uint64_t stream, uint32_t *device_out,
                     uint32_t *is_capturing_out) {
  (void)self;
  if (!stream) return PROF_BACKEND_INVALID;
  *device_out = ((emulated_stream *)(uintptr_t)stream)->device;
  *is_capturing_out = emulated_fault.is_capturing;
  return PROF_BACKEND_OK;
}
static int device(prof_backend_self *self, uint32_t index, prof_backend_device *out) {
  (void)self;
  if (index >= EMULATED_DEVICES) return PROF_BACKEND_NO_DEVICE;
  memset((char *)out + sizeof out->size, 0, out->size - sizeof out->size);
  strcpy(out->name, "emulated accelerator");
  out->is_emulated = 1;
  out->memory_bytes = EMULATED_MEMORY_BYTES;
  return PROF_BACKEND_OK;
}
static int clock_it(prof_backend_self *self, uint32_t index, prof_backend_pair *out) {
  (void)index;
  if (!emulated_fault.has_clock) return PROF_BACKEND_UNSUPPORTED;
  out->host_before_ns = self->host->now_ns();
  out->device_ns = device_ns();
  out->host_after_ns = self->host->now_ns();
  return PROF_BACKEND_OK;
}

/* ---- the program's own events ---- */

struct emulated_own {
  void *begin, *end;
  uint32_t owners; /* relaxed */
};

emulated_own *emulated_launch_with_own(emulated_stream *s, uint64_t busy_ns) {
  const uint64_t stream = (uintptr_t)s;
  emulated_own *const e = calloc(1, sizeof *e);
  if (!e || event_create(NULL, stream, &e->begin) != PROF_BACKEND_OK ||
      event_create(NULL, stream, &e->end) != PROF_BACKEND_OK)
    abort();
  e->owners = 2; /* the program, and the stream until it is past */
  ((event *)e->end)->own_event = e;
  if (event_record(NULL, stream, &e->begin) != PROF_BACKEND_OK) abort();
  emulated_launch(s, busy_ns);
  if (event_record(NULL, stream, &e->end) != PROF_BACKEND_OK) abort();
  return e;
}

void emulated_own_release(emulated_own *e) {
  if (__atomic_sub_fetch(&e->owners, 1, __ATOMIC_ACQ_REL) > 0) return;
  event_destroy(NULL, e->begin);
  event_destroy(NULL, e->end);
  free(e);
}

static int own_keep(prof_backend_self *self, uint64_t stream, void *given, void **kept_out) {
  (void)self;
  if (!stream) return PROF_BACKEND_INVALID;
  __atomic_add_fetch(&((emulated_own *)given)->owners, 1, __ATOMIC_RELAXED);
  *kept_out = given;
  return PROF_BACKEND_OK;
}

static int own_times(prof_backend_self *self, void *kept, uint64_t *start_ns_out,
                     uint64_t *end_ns_out) {
  const emulated_own *const e = kept;
  if (event_query(self, e->end) != PROF_BACKEND_OK) return PROF_BACKEND_NOT_READY;
  event_time(self, e->begin, start_ns_out);
  return event_time(self, e->end, end_ns_out);
}

static void own_let_go(prof_backend_self *self, void *kept) {
  (void)self;
  emulated_own_release(kept);
}

const prof_backend emulated_backend = {.size = sizeof emulated_backend,
                                       .major = PROF_BACKEND_MAJOR,
                                       .minor = PROF_BACKEND_MINOR,
                                       .device_type = EMULATED_TYPE,
                                       .is_emulated = 1,
                                       .name = "emulated",
                                       .version = "1",
                                       .probe = probe,
                                       .open = open_it,
                                       .event_create = event_create,
                                       .event_record = event_record,
                                       .event_query = event_query,
                                       .event_destroy = event_destroy,
                                       .event_time = event_time,
                                       .stream_of = stream_of,
                                       .device = device,
                                       .clock = clock_it,
                                       .start = emulated_tracing_start,
                                       .stop = emulated_tracing_stop,
                                       .drain = emulated_tracing_drain,
                                       .metric = emulated_metric,
                                       .sample = emulated_sample,
                                       .own_keep = own_keep,
                                       .own_times = own_times,
                                       .own_let_go = own_let_go};

static int event_elapsed(prof_backend_self *self, void *a, void *b, int64_t *ns_out) {
  (void)self;
  const float ms =
      (float)((double)(int64_t)(((event *)b)->device_ns - ((event *)a)->device_ns) / 1e6);
  *ns_out = (int64_t)((double)ms * 1e6);
  return ((event *)a)->device_ns && ((event *)b)->device_ns ? PROF_BACKEND_OK : PROF_BACKEND_VENDOR;
}

const prof_backend emulated_by_distance = {.size = sizeof emulated_by_distance,
                                           .major = PROF_BACKEND_MAJOR,
                                           .minor = PROF_BACKEND_MINOR,
                                           .device_type = EMULATED_BY_DISTANCE_TYPE,
                                           .is_emulated = 1,
                                           .name = "emulated by distance",
                                           .version = "1",
                                           .probe = probe,
                                           .open = open_it,
                                           .event_create = event_create,
                                           .event_record = event_record,
                                           .event_query = event_query,
                                           .event_destroy = event_destroy,
                                           .event_elapsed = event_elapsed,
                                           .stream_of = stream_of,
                                           .device = device};
