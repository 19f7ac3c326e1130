/* See engine.h. */
#define _GNU_SOURCE
#include "engine.h"

#include <pthread.h>
#include <stdlib.h>
#include <time.h>

/* On a stream: an event, or work that takes so long. */
typedef struct command {
  struct command *next;
  engine_event *event;
  uint64_t generation, ns;
  engine_told told; /* or NULL */
  void *user;
} command;

struct engine_stream {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  command *first, **end;
  clockid_t told_by;
  int is_busy, quits;
};

struct engine_event {
  pthread_mutex_t lock;
  uint64_t recorded, past; /* how often */
  uint64_t ns;
  uint32_t holders; /* its owner, and what is on streams */
};

static uint64_t read_clock(clockid_t clock) {
  struct timespec now;
  clock_gettime(clock, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static uint64_t now_ns(void) { return read_clock(CLOCK_MONOTONIC_RAW); }

/* ---- events ---- */

engine_event *engine_event_create(void) {
  engine_event *const event = calloc(1, sizeof *event);
  if (!event) abort();
  pthread_mutex_init(&event->lock, NULL);
  event->holders = 1;
  return event;
}

void engine_event_destroy(engine_event *event) {
  pthread_mutex_lock(&event->lock);
  const uint32_t holders = --event->holders;
  pthread_mutex_unlock(&event->lock);
  if (holders) return;
  pthread_mutex_destroy(&event->lock);
  free(event);
}

static void pass(engine_event *event, uint64_t generation) {
  pthread_mutex_lock(&event->lock);
  if (generation > event->past) {
    event->past = generation;
    event->ns = now_ns();
  }
  pthread_mutex_unlock(&event->lock);
  engine_event_destroy(event);
}

engine_event_state engine_event_look(engine_event *event, uint64_t *ns_out) {
  pthread_mutex_lock(&event->lock);
  const engine_event_state state = !event->recorded                 ? ENGINE_NEVER
                                   : event->past == event->recorded ? ENGINE_PAST
                                                                    : ENGINE_PENDING;
  *ns_out = event->ns;
  pthread_mutex_unlock(&event->lock);
  return state;
}

/* ---- streams ---- */

static void work_for(uint64_t ns) {
  enum { SPIN_NS = 20000 };
  const uint64_t end_ns = now_ns() + ns;
  if (ns > 2 * SPIN_NS) {
    const struct timespec nap = {(time_t)((ns - SPIN_NS) / 1000000000u),
                                 (long)((ns - SPIN_NS) % 1000000000u)};
    nanosleep(&nap, NULL);
  }
  while (now_ns() < end_ns) {
  }
}

static command *take(engine_stream *s) {
  pthread_mutex_lock(&s->lock);
  s->is_busy = 0;
  pthread_cond_broadcast(&s->changed);
  while (!s->first && !s->quits) pthread_cond_wait(&s->changed, &s->lock);
  command *const c = s->first;
  if (c && !(s->first = c->next)) s->end = &s->first;
  s->is_busy = c != NULL;
  pthread_mutex_unlock(&s->lock);
  return c;
}

static void *run(void *stream) {
  engine_stream *const s = stream;
  for (command *c; (c = take(s)) != NULL; free(c)) {
    const uint64_t start_ns = c->told ? read_clock(s->told_by) : 0;
    if (c->event)
      pass(c->event, c->generation);
    else
      work_for(c->ns);
    if (c->told) c->told(c->user, start_ns, read_clock(s->told_by));
  }
  pthread_mutex_destroy(&s->lock);
  pthread_cond_destroy(&s->changed);
  free(s);
  return NULL;
}

engine_stream *engine_stream_create(clockid_t told_by) {
  pthread_t thread;
  engine_stream *const s = calloc(1, sizeof *s);
  if (!s) abort();
  pthread_mutex_init(&s->lock, NULL);
  pthread_cond_init(&s->changed, NULL);
  s->end = &s->first;
  s->told_by = told_by;
  if (pthread_create(&thread, NULL, run, s) != 0) abort();
  pthread_detach(thread);
  return s;
}

void engine_stream_destroy(engine_stream *s) {
  pthread_mutex_lock(&s->lock);
  s->quits = 1;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

static void put(engine_stream *s, const command *what) {
  command *const c = calloc(1, sizeof *c);
  if (!c) abort();
  *c = *what;
  pthread_mutex_lock(&s->lock);
  *s->end = c;
  s->end = &c->next;
  pthread_cond_broadcast(&s->changed);
  pthread_mutex_unlock(&s->lock);
}

void engine_work(engine_stream *s, uint64_t ns) { put(s, &(command){.ns = ns}); }

void engine_work_told(engine_stream *s, uint64_t ns, engine_told told, void *user) {
  put(s, &(command){.ns = ns, .told = told, .user = user});
}

void engine_event_record(engine_event *event, engine_stream *s) {
  pthread_mutex_lock(&event->lock);
  const uint64_t generation = ++event->recorded;
  event->holders++;
  pthread_mutex_unlock(&event->lock);
  put(s, &(command){.event = event, .generation = generation});
}

void engine_stream_wait(engine_stream *s) {
  pthread_mutex_lock(&s->lock);
  while (s->first || s->is_busy) pthread_cond_wait(&s->changed, &s->lock);
  pthread_mutex_unlock(&s->lock);
}
