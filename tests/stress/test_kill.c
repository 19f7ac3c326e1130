/* kill -9 at random instants. Four threads record into a capture file at full rate, and count each
   ended scope in a page that survives with the parent. The oracle (fault/support/arena_check.h) and
   the library read what is left. For each thread all ended scopes are there, in order and whole,
   and at most the one that was just ending besides. In a ring the newest are there without a gap,
   and those before them are counted as overwritten, exactly. The scope that each thread has open
   all the time is shown so.

   PROF_KILL_RUNS: how many kills (200; 40 under a sanitizer). PROF_KILL_SEED: of the instants. */
#define _GNU_SOURCE
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "fault/support/arena_check.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"

enum { THREADS = 4, NUMBERED_EVERY = 8, SERIALS_MAX = 64 };

/* How one run records, and how long before it is killed. */
typedef struct way {
  const char *name;
  uint32_t policy, helper_thread;
  uint64_t cap_bytes;
  uint32_t longest_us;
} way;

static const way ways[] = {
    {"stream", PROF_POLICY_STREAM, 0, 512u << 20, 40000},
    {"ring", PROF_POLICY_RING, 0, 4u << 20, 60000},
    {"stream with helper", PROF_POLICY_STREAM, 1, 512u << 20, 40000},
    {"ring with helper", PROF_POLICY_RING, 1, 4u << 20, 60000},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Shared with the child; each thread's count in a cache line of its own. */
static struct {
  volatile struct { uint64_t ended, pad[7]; } * threads;
} shared;

static uint64_t mixed(uint64_t number) { return number * 0x9e3779b97f4a7c15ull; }

/* ---- the child ---- */

static const char *name_of(int thread) {
  static const char *const names[THREADS] = {"worker 0", "worker 1", "worker 2", "worker 3"};
  return names[thread];
}

/* The number and its check, without a byte 0. Each thread has its own. */
enum { TEXT_BYTES = 12, DIGITS = 8, TEXT_EVERY = 8 };
static void text_of(uint64_t number, int thread, char text[TEXT_BYTES + 1]) {
  for (int i = 0; i < DIGITS; i++) text[i] = (char)(0x80 | (number >> 7 * i & 0x7f));
  for (int i = DIGITS; i < TEXT_BYTES - 1; i++) text[i] = (char)(0x80 | mixed(number) >> 8 * i);
  text[TEXT_BYTES - 1] = (char)(0x80 | thread);
  text[TEXT_BYTES] = '\0';
}

static void record_text(uint64_t number, int thread) {
  char text[TEXT_BYTES + 1];
  text_of(number, thread, text);
  WITH_BASE_PROFILER(PROF_HOST, "text", "text", PROF_ARGS("number", text), {});
}

static void record_numbers(int thread) {
  for (uint64_t number = 1;; number++) {
    if (number % NUMBERED_EVERY == 1) {
      WITH_BASE_PROFILER(PROF_HOST, name_of(thread), "numbered",
                         PROF_ARGS("number", number, "mixed", mixed(number)), {});
    } else if (number % TEXT_EVERY == 0) {
      record_text(number, thread);
    } else {
      WITH_BASE_PROFILER(PROF_HOST, "plain", "plain", PROF_NO_ARGS, {});
    }
    shared.threads[thread].ended = number;
  }
}

static void *work(void *which) {
  WITH_BASE_PROFILER(PROF_HOST, "whole life", "life", PROF_ARGS("worker", (intptr_t)which),
                     { record_numbers((int)(intptr_t)which); });
  return NULL;
}

static void record_until_killed(const way *how) {
  const prof_options options = {.size = sizeof options,
                                .policy = how->policy,
                                .path = captures_path("out.json"),
                                .cap_bytes = how->cap_bytes,
                                .helper_thread = how->helper_thread};
  pthread_t threads[THREADS];
  if (prof_start_with(&options) != PROF_OK) _exit(1);
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) != 0) _exit(2);
  pause();
  _exit(3);
}

/* ---- what is left ---- */

typedef struct left_thread {
  uint64_t serial, recovered, lost;
  uint64_t first_number, number; /* of the newest record, from the last numbered one on */
  uint64_t last_end;
  int worker; /* -1: not known */
} left_thread;

typedef struct left {
  const way *how;
  arena_view view;
  arena_seen seen;
  left_thread threads[SERIALS_MAX];
  int thread_count;
  uint64_t lives; /* scopes that are open outside of all others */
  uint64_t texts; /* records that are identified by a text */
  char fault[256];
} left;

static void left_fault(left *l, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void left_fault(left *l, const char *format, ...) {
  va_list values;
  if (l->fault[0]) return;
  va_start(values, format);
  vsnprintf(l->fault, sizeof l->fault, format, values);
  va_end(values);
}

static left_thread *thread_of(left *l, uint64_t serial) {
  for (int i = 0; i < l->thread_count; i++)
    if (l->threads[i].serial == serial) return &l->threads[i];
  if (l->thread_count == SERIALS_MAX) {
    left_fault(l, "more than %d threads", SERIALS_MAX);
    return &l->threads[0];
  }
  l->threads[l->thread_count] = (left_thread){.serial = serial, .worker = -1};
  return &l->threads[l->thread_count++];
}

/* A numbered record says whose it is, and which: the ones between must be as many as the numbers
   between. */
static void see_number(left *l, left_thread *t, const arena_record *record) {
  /* a word of padding may follow */
  const uint64_t number = record->value_words >= 2 ? record->values[0] : 0;
  const arena_text name = arena_name(&l->view, record); /* the site's, where it came before */
  int worker = 0;
  while (worker < THREADS && (!name.data || strlen(name_of(worker)) != name.bytes ||
                              memcmp(name_of(worker), name.data, name.bytes) != 0))
    worker++;
  if (worker == THREADS || number == 0 || record->values[1] != mixed(number)) {
    left_fault(l, "record at %llu is torn: number %llu", (unsigned long long)record->offset,
               (unsigned long long)number);
    return;
  }
  if (t->worker >= 0 && t->worker != worker)
    left_fault(l, "record at %llu: '%s' among the records of '%s'",
               (unsigned long long)record->offset, name_of(worker), name_of(t->worker));
  /* plain ones before it included */
  if (t->worker < 0)
    t->first_number = number - t->recovered + 1;
  else if (l->how->helper_thread ? number <= t->number : number != t->number + 1)
    left_fault(l, "record at %llu: '%s' number %llu behind number %llu",
               (unsigned long long)record->offset, name_of(worker), (unsigned long long)number,
               (unsigned long long)t->number);
  t->worker = worker;
  t->number = number;
}

static bool is_behind(const left *l, const left_thread *t, uint64_t number) {
  return l->how->helper_thread ? number > t->number : number == t->number + 1;
}

/* One that says which it is by its text. Of the first ones of a thread it is not known whose they
   are. */
static void see_text(left *l, left_thread *t, const char *data, uint64_t bytes,
                     const arena_record *record) {
  char text[TEXT_BYTES + 1];
  uint64_t number = 0;
  for (int i = 0; i < DIGITS && bytes == TEXT_BYTES; i++)
    number |= (uint64_t)(data[i] & 0x7f) << 7 * i;
  text_of(number, bytes == TEXT_BYTES ? data[TEXT_BYTES - 1] & 0x7f : 0, text);
  if (bytes != TEXT_BYTES || memcmp(text, data, bytes) != 0) {
    left_fault(l, "record at %llu is torn: a text of %llu bytes",
               (unsigned long long)record->offset, (unsigned long long)bytes);
    return;
  }
  if (t->worker >= 0 && !is_behind(l, t, number))
    left_fault(l, "record at %llu: text of number %llu behind number %llu",
               (unsigned long long)record->offset, (unsigned long long)number,
               (unsigned long long)t->number);
  l->texts++;
  if (t->worker >= 0) t->number = number;
}

static void see_record(void *context, const arena_record *record) {
  left *const l = context;
  left_thread *const t = thread_of(l, record->thread);
  t->recovered++;
  if (record->start < t->last_end)
    left_fault(l, "record at %llu starts %llu ticks before the one before it ended",
               (unsigned long long)record->offset,
               (unsigned long long)(t->last_end - record->start));
  t->last_end = record->start + record->duration;
  const char *data = record->text;
  uint64_t bytes = record->text_bytes;
  /* A long record. */
  if (!data && record->schema && record->value_words && record->values[0] == TEXT_BYTES)
    arena_take_text(record->values, 0, record->value_words, &data, &bytes);
  if (data)
    see_text(l, t, data, bytes, record);
  else if (record->schema)
    see_number(l, t, record);
  else if (t->worker >= 0)
    t->number++;
}

static void see_slot(void *context, const prof_i_thread_slot *slot) {
  left *const l = context;
  if (!slot->serial) return;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    thread_of(l, slot->serial)->lost +=
        prof_i_slot_lost(slot, slot->ledger, i) - slot->lost_before[i];
}

static void see_open(void *context, const arena_open *open) {
  ((left *)context)->lives += open->index == 1;
}

static void check_lives(left *l) {
  uint64_t alive = 0;
  for (int i = 0; i < THREADS; i++) alive += shared.threads[i].ended > 0;
  if (l->lives < alive || l->lives > THREADS)
    left_fault(l, "%llu threads had ended a scope, %llu have one open around it",
               (unsigned long long)alive, (unsigned long long)l->lives);
}

/* Per thread, the ring excepted, where what gave way is counted over all. */
static void check_thread(left *l, const left_thread *t) {
  if (t->worker < 0) {
    if (t->recovered > NUMBERED_EVERY)
      left_fault(l, "thread %llu: %llu records, and none has a number",
                 (unsigned long long)t->serial, (unsigned long long)t->recovered);
    return;
  }
  const uint64_t ended = shared.threads[t->worker].ended;
  const bool is_ring = l->how->policy == PROF_POLICY_RING;
  const uint64_t there = t->recovered + t->lost;
  if (!is_ring && (there < ended || there > ended + 1))
    left_fault(l, "'%s': %llu recovered, %llu lost, %llu had ended", name_of(t->worker),
               (unsigned long long)t->recovered, (unsigned long long)t->lost,
               (unsigned long long)ended);
  if (!l->how->helper_thread && (t->number < ended || t->number > ended + 1))
    left_fault(l, "'%s': the newest has number %llu, %llu had ended", name_of(t->worker),
               (unsigned long long)t->number, (unsigned long long)ended);
  if (!is_ring && !l->how->helper_thread && t->first_number != 1)
    left_fault(l, "'%s': the first has number %llu", name_of(t->worker),
               (unsigned long long)t->first_number);
}

/* recovered + lost = ended, and up to one more a thread: also of what a ring was giving away at
   that moment. */
static void check_sum(left *l, uint64_t *recovered_out, uint64_t *lost_out) {
  uint64_t ended = 0, recovered = 0;
  const uint64_t lost = arena_lost(&l->seen);
  for (int i = 0; i < THREADS; i++) ended += shared.threads[i].ended;
  for (int i = 0; i < l->thread_count; i++) recovered += l->threads[i].recovered;
  const uint64_t sum = recovered + lost;
  if (sum < ended || sum > ended + THREADS)
    left_fault(l, "%llu recovered, %llu lost, %llu had ended", (unsigned long long)recovered,
               (unsigned long long)lost, (unsigned long long)ended);
  *recovered_out = recovered;
  *lost_out = lost;
}

static void check_reader(left *l, const char *path, uint64_t recovered) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  const int status = prof_trace_open(path, &trace);
  if (status != PROF_OK) {
    left_fault(l, "prof_trace_open: %s: %s", prof_status_name(status), prof_last_error());
    return;
  }
  prof_trace_info_get(trace, &info);
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    lost += i == PROF_LOSS_UNFINISHED ? 0 : info.lost_count[i];
  /* what has its record is not open */
  if (info.open_count < l->lives || info.open_count > l->seen.opens)
    left_fault(l, "the reader: %llu open, %llu to %llu are", (unsigned long long)info.open_count,
               (unsigned long long)l->lives, (unsigned long long)l->seen.opens);
  if (info.scope_count != recovered || info.bad_count || info.is_live ||
      (recovered && info.was_clean) || lost != arena_lost(&l->seen))
    left_fault(l,
               "the reader: %llu scopes instead of %llu, %llu bad, %llu lost instead of %llu, live "
               "%u, clean %u",
               (unsigned long long)info.scope_count, (unsigned long long)recovered,
               (unsigned long long)info.bad_count, (unsigned long long)lost,
               (unsigned long long)arena_lost(&l->seen), info.is_live, info.was_clean);
  prof_trace_destroy(trace);
}

static struct {
  uint64_t random;
  int runs;
  uint64_t recovered[WAYS], lost[WAYS], early[WAYS];
} own;

static uint64_t next_random(void) {
  own.random ^= own.random << 13;
  own.random ^= own.random >> 7;
  own.random ^= own.random << 17;
  return own.random;
}

static void judge(left *l, int which) {
  uint64_t recovered = 0, lost = 0, ended = 0;
  captures_look();
  captures_measure();
  for (int i = 0; i < THREADS; i++) ended += shared.threads[i].ended;
  if (captures.count == 1) l->view.bytes = captures.bytes[0], l->view.count = captures.sizes[0];
  if (captures.count != 1 || !arena_is_made(&l->view)) {
    own.early[which]++;
    if (ended)
      left_fault(l, "%llu scopes had ended, and %zu captures are there", (unsigned long long)ended,
                 captures.count);
    return;
  }
  l->view.record = see_record;
  l->view.slot = see_slot;
  l->view.open = see_open;
  l->view.context = l;
  if (!arena_walk(&l->view, &l->seen)) left_fault(l, "%s", l->seen.fault);
  for (int i = 0; i < l->thread_count; i++) check_thread(l, &l->threads[i]);
  check_sum(l, &recovered, &lost);
  check_lives(l);
  if (!l->fault[0]) check_reader(l, captures_path(captures.names[0]), recovered);
  if (recovered > 100 * THREADS && !l->texts) left_fault(l, "no record has a text");
  own.recovered[which] += recovered;
  own.lost[which] += lost;
  arena_forget(&l->view);
}

static void run_once(int run) {
  static left l;
  const int which = run % WAYS;
  memset(&l, 0, sizeof l);
  l.how = &ways[which];
  memset((void *)(uintptr_t)shared.threads, 0, THREADS * sizeof *shared.threads);
  /* One in four is killed while it starts. */
  const uint64_t wait_us = next_random() % (next_random() % 4 ? l.how->longest_us : 2000);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) record_until_killed(l.how);
  nanosleep(&(const struct timespec){0, (long)wait_us * 1000}, NULL);
  kill(child, SIGKILL);
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (!WIFSIGNALED(status))
    fail_msg("%s: the child ended by itself, status %x", l.how->name, (unsigned)status);
  judge(&l, which);
  if (l.fault[0]) {
    print_error("%s, run %d, killed after %llu us: %s\n", l.how->name, run,
                (unsigned long long)wait_us, l.fault);
    fail();
  }
  captures_clear();
}

static void what_had_ended_is_there_after_kill_9(void **state) {
  (void)state;
  for (int run = 0; run < own.runs; run++) run_once(run);
  for (int i = 0; i < WAYS; i++)
    print_message(
        "  %-20s %10llu scopes recovered, %10llu counted as lost, %llu of %d killed before the "
        "capture was there\n",
        ways[i].name, (unsigned long long)own.recovered[i], (unsigned long long)own.lost[i],
        (unsigned long long)own.early[i], (own.runs + WAYS - 1 - i) / WAYS);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_had_ended_is_there_after_kill_9)};
  const char *const runs = getenv("PROF_KILL_RUNS"), *const seed = getenv("PROF_KILL_SEED");
  own.runs = runs ? atoi(runs) : SKIP_SANITIZED ? 40 : 200;
  own.random = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull | 1;
  shared.threads = mmap(NULL, THREADS * sizeof *shared.threads, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared.threads == MAP_FAILED || !captures_make_folder(false)) return 1;
  print_message("%d kills, PROF_KILL_SEED=%#llx\n", own.runs, (unsigned long long)own.random);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
