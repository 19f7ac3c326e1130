/* kill -9 at random instants, for memory. Threads hand out and take back pieces at one pool that
   all share and at one of their own each. They count each call, once it has returned, in a page
   that survives with the parent. What each call is follows from its number, so the parent knows
   what the capture must say. Every call that had returned is there, in order and to the byte, and
   at most one a thread besides. Each pool's own sum is that of those calls, with or without the
   calls that were under way. Its peak is at least the highest sum of a record, and at most that
   with what was under way. In a ring the newest are there without a gap, and the sums are as exact.

   PROF_KILL_RUNS: how many kills (100; 8 under a sanitizer). PROF_KILL_SEED: of the instants. */
#define _GNU_SOURCE
#include <prof/memory.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "../../src/analysis/memory.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"

enum {
  THREADS = 3,
  POOLS = THREADS + 1,
  SHARED = THREADS,
  PIECES = 8,
  CALLS_A_TURN = 2 * PIECES + 2,
  BYTES_MAX = 4000,
  BLOCK_BYTES = 1 << 20
};

static const struct way {
  const char *name;
  uint32_t policy;
  uint64_t cap_bytes;
  uint32_t longest_us;
} ways[] = {
    {"stream", PROF_POLICY_STREAM, 512u << 20, 40000},
    {"ring", PROF_POLICY_RING, 4u << 20, 40000},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* Shared with the child; each thread's count in a cache line of its own. */
static volatile struct { uint64_t returned, pad[7]; } * calls;

static struct {
  uint64_t random;
  int runs;
  uint64_t events[WAYS], under_way[WAYS], early[WAYS];
} own;

/* ---- what a call is ---- */

typedef struct call {
  prof_i_verb verb;
  int pool;
  uint64_t address, bytes, requested;
  bool has_tag;
} call;

/* Number from 0. A turn: eight pieces are handed out, and come back in the same order; a block
   around. */
static call call_of(int thread, uint64_t number) {
  const uint64_t turn = number / CALLS_A_TURN, at = number % CALLS_A_TURN,
                 base = (uint64_t)(thread + 1) << 40;
  if (at == 0 || at == CALLS_A_TURN - 1)
    return (call){at ? PROF_I_VERB_RELEASE : PROF_I_VERB_RESERVE,
                  thread,
                  base + (UINT64_C(1) << 39),
                  BLOCK_BYTES,
                  0,
                  false};
  const uint64_t piece = turn * PIECES + (at - 1) % PIECES,
                 requested = 1 + (piece + 1) * 0x9e3779b97f4a7c15ull % BYTES_MAX;
  return (call){.verb = at <= PIECES ? PROF_I_VERB_ALLOC : PROF_I_VERB_FREE,
                .pool = piece % 2 ? SHARED : thread,
                .address = base + (piece % (1u << 26)) * 4096,
                .bytes = (requested + 15) / 16 * 16,
                .requested = requested,
                .has_tag = piece % PIECES == 3 && at <= PIECES};
}

static int64_t used_by(const call *c) {
  return c->verb == PROF_I_VERB_ALLOC  ? (int64_t)c->bytes
         : c->verb == PROF_I_VERB_FREE ? -(int64_t)c->bytes
                                       : 0;
}
static int64_t allocated_by(const call *c) {
  return c->verb == PROF_I_VERB_RESERVE   ? (int64_t)c->bytes
         : c->verb == PROF_I_VERB_RELEASE ? -(int64_t)c->bytes
                                          : 0;
}

/* ---- the child ---- */

static prof_pool *pools[POOLS];
static uint32_t tag;

static void make_call(const call *c) {
  const void *const address = (const void *)(uintptr_t)c->address;
  prof_pool *const pool = pools[c->pool];
  if (c->verb == PROF_I_VERB_RESERVE)
    prof_memory_reserve(pool, address, c->bytes);
  else if (c->verb == PROF_I_VERB_RELEASE)
    prof_memory_release(pool, address, c->bytes);
  else if (c->verb == PROF_I_VERB_FREE)
    prof_memory_free(pool, address, c->bytes);
  else if (c->has_tag)
    prof_memory_alloc_for(pool, address, c->requested, c->bytes, tag, 7);
  else
    prof_memory_alloc(pool, address, c->requested, c->bytes);
}

static void call_for_ever(int thread) {
  for (uint64_t number = 0;; number++) {
    const call c = call_of(thread, number);
    make_call(&c);
    __atomic_store_n(&calls[thread].returned, number + 1, __ATOMIC_RELEASE);
  }
}

static void *work(void *which) {
  call_for_ever((int)(intptr_t)which);
  return NULL;
}

static void record_until_killed(const struct way *how) {
  static const char *const names[POOLS] = {"own 0", "own 1", "own 2", "shared"};
  const prof_options options = {.size = sizeof options,
                                .policy = how->policy,
                                .path = captures_path("out.json"),
                                .cap_bytes = how->cap_bytes};
  pthread_t threads[THREADS];
  for (int i = 0; i < POOLS; i++)
    if (prof_pool_create(&(prof_pool_options){.size = sizeof(prof_pool_options), .name = names[i]},
                         &pools[i]) != PROF_OK)
      _exit(1);
  if (prof_start_with(&options) != PROF_OK) _exit(2);
  tag = prof_memory_tag("weights");
  for (int i = 0; i < THREADS; i++)
    if (pthread_create(&threads[i], NULL, work, (void *)(intptr_t)i) != 0) _exit(3);
  pause();
  _exit(4);
}

/* ---- what is left ---- */

typedef struct left {
  const struct way *how;
  const prof_memory *memory;
  uint64_t returned[THREADS], recorded[THREADS]; /* calls, from 0 up to there */
  int pool_of[64];                               /* by the catalog's index */
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

static int pool_named(const prof_memory_info *info) {
  if (strcmp(info->name, "shared") == 0) return SHARED;
  return strncmp(info->name, "own ", 4) == 0 ? info->name[4] - '0' : -1;
}

/* Is this record that call? */
static bool is_call(const left *l, const prof_i_memory_record *record, const call *c) {
  const uint32_t index = prof_i_memory_pool_index(l->memory, record->pool);
  const bool is_piece = c->verb == PROF_I_VERB_ALLOC;
  return record->verb == c->verb && index != UINT32_MAX && l->pool_of[index] == c->pool &&
         record->address == c->address && record->bytes == c->bytes &&
         (!is_piece || record->requested == c->requested) && (record->tag != 0) == c->has_tag;
}

/* The number of the call that this record must be, if it is the first of a ring: looked for
   backwards from what has returned. */
static uint64_t find_first(const left *l, const prof_i_memory_record *record, int worker,
                           uint64_t count) {
  const uint64_t end = l->returned[worker] + 1;
  for (uint64_t first = end >= count ? end - count : 0; first + count + 1 >= end && first < end;
       first--) {
    const call c = call_of(worker, first);
    if (is_call(l, record, &c)) return first;
    if (first == 0) break;
  }
  return UINT64_MAX;
}

/* One thread's records, in its own order: the calls, one after another. */
static void check_thread(left *l, uint32_t first, uint32_t end) {
  const prof_i_memory_record record = prof_i_memory_item_read(&l->memory->items[first]);
  const int worker = (int)(record.address >> 40) - 1;
  if (worker < 0 || worker >= THREADS) {
    left_fault(l, "a record has the address %#llx", (unsigned long long)record.address);
    return;
  }
  const bool is_ring = l->how->policy == PROF_POLICY_RING;
  const uint64_t from = is_ring ? find_first(l, &record, worker, end - first) : 0;
  if (from == UINT64_MAX) {
    left_fault(l, "thread %d: %u records; the first is none of the last calls before call %llu",
               worker, end - first, (unsigned long long)l->returned[worker]);
    return;
  }
  for (uint32_t i = first; i < end; i++) {
    const prof_i_memory_record at = prof_i_memory_item_read(&l->memory->items[i]);
    const call c = call_of(worker, from + i - first);
    if (is_call(l, &at, &c)) continue;
    left_fault(l,
               "thread %d: the record of call %llu has verb %d, address %#llx, %llu bytes instead "
               "of %d, %#llx, %llu",
               worker, (unsigned long long)(from + i - first), (int)at.verb,
               (unsigned long long)at.address, (unsigned long long)at.bytes, (int)c.verb,
               (unsigned long long)c.address, (unsigned long long)c.bytes);
    return;
  }
  l->recorded[worker] = from + end - first;
}

static void check_threads(left *l) {
  const prof_memory *const m = l->memory;
  for (uint32_t first = 0, end; first < m->item_count; first = end) {
    for (end = first; end < m->item_count && m->items[end].thread == m->items[first].thread;) end++;
    check_thread(l, first, end);
  }
  for (int i = 0; i < THREADS; i++)
    if (l->recorded[i] < l->returned[i] || l->recorded[i] > l->returned[i] + 1)
      left_fault(l, "thread %d: %llu calls had returned, the records end with call %llu", i,
                 (unsigned long long)l->returned[i], (unsigned long long)l->recorded[i]);
}

/* What a pool may hold: all calls that are recorded, and any of the others that may have begun. */
typedef struct account {
  int64_t used, allocated;
  uint64_t events;
  call open[THREADS];
  int open_count;
} account;

/* Only an unfinished turn leaves anything. */
static account account_of(const left *l, int pool) {
  account a = {0};
  for (int thread = 0; thread < THREADS; thread++) {
    const uint64_t turns = l->recorded[thread] / CALLS_A_TURN;
    /* half of each turn's calls at pieces are at the shared pool */
    const uint64_t pieces = (uint64_t)PIECES;
    a.events += turns * (pool == SHARED ? pieces : pool == thread ? pieces + 2 : 0);
    for (uint64_t number = turns * CALLS_A_TURN; number < l->recorded[thread]; number++) {
      const call c = call_of(thread, number);
      if (c.pool != pool) continue;
      a.events++;
      a.used += used_by(&c);
      a.allocated += allocated_by(&c);
    }
    const call next = call_of(thread, l->recorded[thread]);
    if (l->recorded[thread] == l->returned[thread] && next.pool == pool)
      a.open[a.open_count++] = next;
  }
  return a;
}

/* A call counts its event with its bytes; a block's bytes are added before. */
static bool fits(const account *a, const prof_i_pool_state *state) {
  const uint64_t numbers = UINT64_MAX >> PROF_I_USED_BITS;
  const int64_t used = prof_i_used_bytes(state->used),
                allocated = (int64_t)(state->allocated - PROF_I_USED_ZERO);
  for (int counted = 0; counted < 1 << a->open_count; counted++)
    for (int added = counted; added < 1 << a->open_count; added++) {
      account with = *a;
      if ((added & counted) != counted) continue;
      for (int i = 0; i < a->open_count; i++) {
        with.events += (uint64_t)(counted >> i & 1);
        if (counted >> i & 1) with.used += used_by(&a->open[i]);
        if (added >> i & 1) with.allocated += allocated_by(&a->open[i]);
      }
      if (with.used == used && with.allocated == allocated &&
          (with.events & numbers) == state->used >> PROF_I_USED_BITS)
        return true;
    }
  return false;
}

static void check_pool(left *l, uint32_t index) {
  const prof_i_pool_state *const state = &l->memory->trace->catalog.pools[index].state;
  const prof_memory_info *const info = &l->memory->pools[index].info;
  const account a = account_of(l, l->pool_of[index]);
  if (!fits(&a, state))
    left_fault(l,
               "pool '%s': %lld bytes in %llu events; the records say %lld in %llu, and %d calls "
               "were under way",
               info->name, (long long)prof_i_used_bytes(state->used),
               (unsigned long long)(state->used >> PROF_I_USED_BITS), (long long)a.used,
               (unsigned long long)a.events, a.open_count);
  if (l->how->policy != PROF_POLICY_RING && info->missing_count > (uint64_t)a.open_count)
    left_fault(l, "pool '%s': %llu missing, %d calls were under way", info->name,
               (unsigned long long)info->missing_count, a.open_count);
  int64_t highest = 0, highest_allocated = 0, more = 0;
  for (uint32_t i = 0; i < l->memory->item_count; i++) {
    const prof_i_memory_record record = prof_i_memory_item_read(&l->memory->items[i]);
    if (prof_i_memory_pool_index(l->memory, record.pool) != index) continue;
    if (prof_i_used_bytes(record.counter) > highest) highest = prof_i_used_bytes(record.counter);
    if (record.verb == PROF_I_VERB_RESERVE) highest_allocated = BLOCK_BYTES;
  }
  for (int i = 0; i < a.open_count; i++) more += used_by(&a.open[i]) > 0 ? used_by(&a.open[i]) : 0;
  const int64_t most = l->how->policy == PROF_POLICY_RING
                           ? (int64_t)THREADS * PIECES * (BYTES_MAX + 16)
                           : highest + more;
  if (info->peak_used.used_bytes < highest || info->peak_used.used_bytes > most)
    left_fault(
        l,
        "pool '%s': the peak is %lld, the records say %lld, and at most %lld more were under way",
        info->name, (long long)info->peak_used.used_bytes, (long long)highest, (long long)more);
  if (info->peak_allocated.allocated_bytes < highest_allocated ||
      info->peak_allocated.allocated_bytes > BLOCK_BYTES)
    left_fault(l, "pool '%s': the peak of allocated is %lld", info->name,
               (long long)info->peak_allocated.allocated_bytes);
}

static void judge(left *l, int which) {
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  prof_trace_info about = {.size = sizeof about};
  captures_look();
  uint64_t returned = 0;
  for (int i = 0; i < THREADS; i++) returned += l->returned[i] = calls[i].returned;
  const int status = captures.count == 1 ? prof_trace_open(captures_path(captures.names[0]), &trace)
                                         : PROF_E_NOT_FOUND;
  if (status != PROF_OK) {
    own.early[which]++;
    if (returned)
      left_fault(l, "%llu calls had returned, and the capture: %s: %s",
                 (unsigned long long)returned, prof_status_name(status), prof_last_error());
    return;
  }
  prof_trace_info_get(trace, &about);
  if (about.bad_count || about.is_live)
    left_fault(l, "%llu bad, live %u", (unsigned long long)about.bad_count, about.is_live);
  if (prof_memory_read(trace, &memory) != PROF_OK)
    left_fault(l, "prof_memory_read: %s", prof_last_error());
  l->memory = memory;
  for (uint32_t i = 0; memory && i < prof_memory_pool_count(memory) && i < 64; i++) {
    l->pool_of[i] = pool_named(&memory->pools[i].info);
    if (l->pool_of[i] < 0) left_fault(l, "there is a pool '%s'", memory->pools[i].info.name);
  }
  if (memory) check_threads(l);
  for (uint32_t i = 0; memory && !l->fault[0] && i < prof_memory_pool_count(memory); i++) {
    check_pool(l, i);
    if (l->how->policy != PROF_POLICY_RING)
      own.under_way[which] += memory->pools[i].info.missing_count;
  }
  if (memory) own.events[which] += memory->item_count;
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
}

static uint64_t next_random(void) {
  own.random ^= own.random << 13;
  own.random ^= own.random >> 7;
  own.random ^= own.random << 17;
  return own.random;
}

static void run_once(int run) {
  static left l;
  const int which = run % WAYS;
  memset(&l, 0, sizeof l);
  l.how = &ways[which];
  memset((void *)(uintptr_t)calls, 0, THREADS * sizeof *calls);
  /* One in four is killed while it starts. */
  const uint64_t wait_us =
      next_random() % (next_random() % 4 ? l.how->longest_us : 3000) * (SKIP_SANITIZED ? 8 : 1);
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

static void calls_that_had_returned_are_there_after_kill_9(void **state) {
  (void)state;
  for (int run = 0; run < own.runs; run++) run_once(run);
  for (int i = 0; i < WAYS; i++)
    print_message(
        "  %-8s %10llu events recovered, %llu were under way and counted, %llu of %d killed before "
        "the capture was there\n",
        ways[i].name, (unsigned long long)own.events[i], (unsigned long long)own.under_way[i],
        (unsigned long long)own.early[i], (own.runs + WAYS - 1 - i) / WAYS);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(calls_that_had_returned_are_there_after_kill_9)};
  const char *const runs = getenv("PROF_KILL_RUNS"), *const seed = getenv("PROF_KILL_SEED");
  own.runs = runs ? atoi(runs) : SKIP_SANITIZED ? 8 : 100;
  own.random = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull | 1;
  calls = mmap(NULL, THREADS * sizeof *calls, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
               -1, 0);
  if (calls == MAP_FAILED || !captures_make_folder(false)) return 1;
  print_message("%d kills, PROF_KILL_SEED=%#llx\n", own.runs, (unsigned long long)own.random);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_remove_folder();
  return failed;
}
