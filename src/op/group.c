/* Operators that run at once. The group is an operator whose run is a round of all members,
   measured in turn with each member alone. The caller's thread runs the first member, and each
   other one has a thread. These sleep while members are measured alone. They are woken before the
   group's time begins, because waking a thread takes 50 us and more. Within a sample they spin, so
   a round costs less than 1 us. See <prof/op.h>. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/error.h"
#include "../base/port.h"
#include "../format/state.h"
#include "internal.h"

enum {
  MEMBERS_MAX = 64,
  SPINS = 10000,       /* before a thread offers its processor to others: some 400 us */
  SPINS_CROWDED = 100, /* where there are more members than processors: another one waits for it */
  READY_TRIES = 4,
  EMPTY_ROUNDS = 64,
  KEY_BYTES = 256
};
static const uint64_t sleep_ns = 100000000,
                      awake_ns = 10000000 /* offering its processor, before a thread sleeps */,
                      /* a round is that fast only if all threads have a processor */
    quick_ns = 50000;

/* What a round is for. */
typedef enum round_task { TASK_BE_READY, TASK_MOVE, TASK_RUN, TASK_REST, TASK_LEAVE } round_task;

/* A value to wait for. A sleeper counts itself, then reads the value. A writer changes the value,
   then reads the count. Both are sequentially consistent, so one of them sees the other. */
typedef struct wait_word {
  uint32_t value, sleepers;
} wait_word;

typedef struct op_group op_group;

typedef struct op_member {
  op_group *of;
  const prof_op *op;
  pthread_t thread;
  int code; /* of its run in the round that is done */
} op_member;

struct op_group {
  wait_word round;       /* counts; the members wait for another */
  wait_word unfinished;  /* members that have not yet ended this one; the caller waits for none */
  round_task round_task; /* of this round: written between two, as the next is */
  int callers_processor; /* of MOVE, the same */
  int spins;
  bool has_threads;
  prof_i_workspace *counted;       /* of this round; NULL: not measured */
  const prof_i_measurement *whole; /* the group's own, behind the members' */
  size_t failed_timer;             /* the member whose timer failed last */
  size_t count, thread_count;
  op_member members[MEMBERS_MAX];
};

/* What one asks for that says its workspace itself is not asked: see fill_workspace(). */
static int run_member(const op_group *g, const op_member *m) {
  prof_i_workspace part;
  if (!g->counted) return m->op->run(m->op->user);
  prof_i_workspace_begin_part(&part, m->op->workspace ? NULL : g->counted);
  const int code = m->op->run(m->op->user);
  prof_i_workspace_end(&part);
  return code;
}

/* Pairs with the changes of member_main() and begin_round(), which release what was written
   before. */
static bool has_word_changed(wait_word *w, uint32_t from, uint32_t *now_out) {
  *now_out = __atomic_load_n(&w->value, __ATOMIC_SEQ_CST);
  return *now_out != from;
}

/* False: it has been long. With more threads than processors the one that is waited for may have to
   get this one's. */
static bool spin_for_change(wait_word *w, uint32_t from, int spins, uint32_t *now_out) {
  for (int i = 0; i < spins; i++) {
    if (has_word_changed(w, from, now_out)) return true;
    prof_i_pause();
  }
  const uint64_t begun_ns = prof_i_port_monotonic_ns();
  while (prof_i_ns_since(begun_ns) < awake_ns) {
    if (has_word_changed(w, from, now_out)) return true;
    sched_yield();
  }
  return false;
}

static uint32_t sleep_for_change(wait_word *w, uint32_t from) {
  uint32_t now;
  __atomic_add_fetch(&w->sleepers, 1, __ATOMIC_SEQ_CST);
  while (!has_word_changed(w, from, &now)) prof_i_port_wait(&w->value, from, sleep_ns);
  __atomic_sub_fetch(&w->sleepers, 1, __ATOMIC_SEQ_CST);
  return now;
}

static uint32_t await_change(wait_word *w, uint32_t from, int spins) {
  uint32_t now;
  return spin_for_change(w, from, spins, &now) ? now : sleep_for_change(w, from);
}

static void wake_sleepers(wait_word *w) {
  if (__atomic_load_n(&w->sleepers, __ATOMIC_SEQ_CST)) prof_i_port_wake(&w->value);
}

static void *member_main(void *argument) {
  op_member *const m = argument;
  op_group *const g = m->of;
  uint32_t round = sleep_for_change(&g->round, 0);
  while (g->round_task != TASK_LEAVE) {
    /* the next value may be set as soon as this one has ended */
    const bool may_sleep = g->round_task == TASK_REST;
    if (g->round_task == TASK_RUN) m->code = run_member(g, m);
    if (g->round_task == TASK_MOVE)
      prof_i_port_move_off_processor(g->callers_processor, (size_t)(m - g->members));
    if (__atomic_sub_fetch(&g->unfinished.value, 1, __ATOMIC_SEQ_CST) == 0)
      wake_sleepers(&g->unfinished);
    round =
        may_sleep ? sleep_for_change(&g->round, round) : await_change(&g->round, round, g->spins);
  }
  return NULL;
}

static void begin_round(op_group *g, round_task what) {
  g->round_task = what;
  __atomic_store_n(&g->unfinished.value, (uint32_t)g->thread_count, __ATOMIC_RELAXED);
  __atomic_add_fetch(&g->round.value, 1, __ATOMIC_SEQ_CST); /* with all that was written before */
  wake_sleepers(&g->round);
}

static void end_round(op_group *g) {
  for (uint32_t count; has_word_changed(&g->unfinished, 0, &count);)
    await_change(&g->unfinished, count, g->spins);
}

static void play_round(op_group *g, round_task what) {
  begin_round(g, what);
  end_round(g);
}

/* Wakes all threads, each on a processor of its own if there are enough. The kernel may wake a
   thread on the processor of its waker while another one is idle, and leave two threads there that
   yield to each other. A thread that moves itself to another processor stays there. Its affinity is
   restored afterwards. */
static void prepare_runs(void *user) {
  op_group *const g = user;
  play_round(g, TASK_BE_READY);
  for (int i = 0; i < READY_TRIES && g->spins == SPINS; i++) {
    const uint64_t begun_ns = prof_i_port_monotonic_ns();
    play_round(g, TASK_BE_READY);
    if (prof_i_ns_since(begun_ns) < quick_ns) return;
    g->callers_processor = prof_i_port_processor();
    play_round(g, TASK_MOVE);
  }
}

/* A member that is measured alone has the machine alone. */
static void finish_runs(void *user) { play_round(user, TASK_REST); }

static int run_round(void *user) {
  op_group *const g = user;
  const size_t own_count = g->has_threads ? 1 : g->count;
  int code = 0;
  g->counted = g->whole->counted;
  begin_round(g, TASK_RUN);
  for (size_t i = 0; i < own_count; i++) {
    const int member_code = run_member(g, &g->members[i]);
    if (member_code && !code) code = member_code;
  }
  end_round(g);
  for (size_t i = own_count; i < g->count; i++)
    if (g->members[i].code && !code) code = g->members[i].code;
  return code;
}

/* The host's signals are for the host's threads. */
static int begin_threads(op_group *g) {
  sigset_t all, before;
  int error = 0;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  for (size_t i = 1; i < g->count && !error; i++) {
    error = pthread_create(&g->members[i].thread, NULL, member_main, &g->members[i]);
    g->thread_count += !error;
  }
  pthread_sigmask(SIG_SETMASK, &before, NULL);
  return error ? prof_i_fail(PROF_E_NO_MEMORY, "no thread for a member of the group: %s",
                             strerror(error))
               : PROF_OK;
}

static void end_threads(op_group *g) {
  begin_round(g, TASK_LEAVE);
  for (size_t i = 1; i <= g->thread_count; i++) pthread_join(g->members[i].thread, NULL);
}

/* ---- timers of the members' own ---- */

static int record_timer_code(op_group *g, size_t i, int before, int code) {
  if (!code || before) return before;
  g->failed_timer = i;
  return code;
}

static const prof_op_timer *timer_of(const op_group *g, size_t i) {
  return &(g->whole - g->count + i)->timer;
}

static int end_timers_to(op_group *g, size_t count, double *us_out) {
  int code = 0;
  *us_out = 0;
  for (size_t i = 0; i < count; i++) {
    double us = 0;
    const prof_op_timer *const timer = timer_of(g, i);
    code = record_timer_code(g, i, code, timer->end(timer->user, &us));
    if (!(us <= *us_out)) *us_out = us; /* also what is no time: the measurement refuses it */
  }
  return code;
}

static int begin_timers(void *user) {
  op_group *const g = user;
  double unused;
  for (size_t i = 0; i < g->count; i++) {
    const prof_op_timer *const timer = timer_of(g, i);
    const int code = timer->begin(timer->user);
    if (!code) continue;
    end_timers_to(g, i, &unused);
    return record_timer_code(g, i, 0, code);
  }
  return 0;
}

/* And waits, by a time that is not looked at, until all that was enqueued for it is done: a member
   would run beside what another one's stream still writes. */
static int flush_member_caches(void *user) {
  op_group *const g = user;
  double unused;
  int code = 0;
  for (size_t i = 0; i < g->count; i++) {
    const prof_op_timer *const timer = timer_of(g, i);
    if (timer->cold) code = record_timer_code(g, i, code, timer->cold(timer->user));
  }
  if (!code) code = begin_timers(g);
  return code ? code : end_timers_to(g, g->count, &unused);
}

static int end_timers(void *user, double *us_out) {
  return end_timers_to(user, ((op_group *)user)->count, us_out);
}

static const char *why_timers(void *user) {
  const prof_op_timer *const timer = timer_of(user, ((op_group *)user)->failed_timer);
  return timer->why ? timer->why(timer->user) : NULL;
}

/* All members have one of their own, and each another one; or none has. */
static int check_timers(const prof_i_measurement *all, size_t count) {
  for (size_t i = 0; i < count; i++) {
    if (!all[i].op.timer != !all[0].op.timer)
      return prof_i_fail(PROF_E_INVALID,
                         "of members 0 and %zu one has a timer of its own, and the other one none",
                         i);
    for (size_t j = 0; j < i && all[i].op.timer; j++)
      if (all[i].timer.begin == all[j].timer.begin && all[i].timer.user == all[j].timer.user)
        return prof_i_fail(PROF_E_INVALID,
                           "members %zu and %zu have one timer, %s: each needs its own", j, i,
                           all[i].timer.name);
  }
  return PROF_OK;
}

/* ---- the group ---- */

/* The time of an empty round, at its best: it must not exceed what is in the group's time, and
   other programs may take a processor at times. */
static double time_empty_rounds(op_group *g) {
  double us[EMPTY_ROUNDS];
  prepare_runs(g);
  for (int i = 0; i < EMPTY_ROUNDS; i++) {
    const uint64_t begun_ns = prof_i_port_monotonic_ns();
    play_round(g, TASK_BE_READY);
    us[i] = (double)prof_i_ns_since(begun_ns) / 1e3;
  }
  finish_runs(g);
  return prof_i_quantile_among(us, EMPTY_ROUNDS, 0);
}

static void fill_overlap(prof_op_overlap *overlap, prof_op_result *const *results, size_t count) {
  PROF_I_DEFAULT_FP;
  double alone = 0, longest = 0;
  for (size_t i = 0; i < count; i++) {
    const double us = results[i]->info.median_us;
    alone += us;
    if (us > longest) longest = us;
  }
  overlap->alone_us = alone;
  overlap->longest_us = longest;
  overlap->group_us = results[count]->info.median_us;
  overlap->gained = alone > longest ? (alone - overlap->group_us) / (alone - longest) : 0;
}

/* The members' workspace at once, and their own reports. It is known if each member's is. A vendor
   does not say which member its blocks belong to: its report is for all members, if all requested
   it. */
static void fill_workspace(const prof_i_measurement *all, prof_op_result *const *results,
                           size_t count) {
  prof_op_info *const whole = &results[count]->info;
  uint64_t said_bytes = 0; /* 64 members of 2^56 at most: no overflow */
  size_t known = 0, said = 0, by_vendor = 0;
  for (size_t i = 0; i < count; i++) {
    if (all[i].op.workspace) said_bytes += results[i]->info.workspace_bytes;
    known += results[i]->info.has_workspace != 0;
    said += results[i]->info.workspace_source == PROF_OP_WORKSPACE_SAID;
    by_vendor += results[i]->info.workspace_source == PROF_OP_WORKSPACE_VENDOR;
  }
  const bool is_by_vendor = whole->workspace_source == PROF_OP_WORKSPACE_VENDOR;
  const bool is_known = by_vendor ? is_by_vendor && by_vendor == count : known == count;
  const uint64_t own_bytes = is_by_vendor && !by_vendor ? 0 : whole->workspace_bytes,
                 both_bytes = own_bytes + said_bytes;
  whole->has_workspace = is_known;
  whole->workspace_bytes = !is_known ? 0 : both_bytes < said_bytes ? UINT64_MAX : both_bytes;
  whole->workspace_source = !is_known       ? PROF_OP_WORKSPACE_UNKNOWN
                            : by_vendor     ? PROF_OP_WORKSPACE_VENDOR
                            : said == count ? PROF_OP_WORKSPACE_SAID
                                            : PROF_OP_WORKSPACE_TOLD;
}

static void join_keys(const prof_i_measurement *all, size_t count, char *to) {
  size_t used = 0;
  to[0] = '\0';
  for (size_t i = 0; i < count && used < KEY_BYTES - 1; i++) {
    const int bytes = snprintf(to + used, KEY_BYTES - used, "%s%s", i ? " + " : "", all[i].op.key);
    used += bytes > 0 ? (size_t)bytes : 0;
  }
}

/* True if the caches of that member's device are not overwritten, neither by it nor by another
   member of that device. */
static bool has_warm_member_device(const prof_i_measurement *all, size_t count, size_t which) {
  const prof_device device = all[which].op.device;
  for (size_t i = 0; i < count; i++)
    if (all[i].has_own_caches && prof_i_is_same_device(all[i].op.device, device)) return false;
  return all[which].identity.is_device_warm;
}

/* The members' own measurements, and behind them the group's. */
static int measure_group(op_group *g, prof_i_measurement *all, const prof_op_options *options,
                         prof_op_result **results_out, prof_op_overlap *overlap) {
  char key[KEY_BYTES];
  for (size_t i = 0; i < g->count; i++) g->members[i] = (op_member){.of = g, .op = &all[i].op};
  g->whole = &all[g->count];
  join_keys(all, g->count, key);
  const prof_op_timer theirs = {sizeof theirs, "of its members",   g, begin_timers, end_timers,
                                why_timers,    flush_member_caches};
  const prof_op whole = {.size = sizeof whole,
                         .key = key,
                         .user = g,
                         .run = run_round,
                         .device = all[0].op.device,
                         .timer = all[0].op.timer ? &theirs : NULL};
  int status = prof_i_measure_init(&all[g->count], &whole, options);
  for (size_t i = 0; i < g->count; i++) {
    all[g->count].has_own_caches &= all[i].has_own_caches;
    all[g->count].identity.is_device_warm |= has_warm_member_device(all, g->count, i);
  }
  all[g->count].prepare_runs = prepare_runs;
  all[g->count].finish_runs = finish_runs;
  g->spins = g->count > prof_i_port_processor_count() ? SPINS_CROWDED : SPINS;
  if (!status && g->has_threads) status = begin_threads(g);
  if (!status) {
    overlap->begin_us = time_empty_rounds(g);
    status = prof_i_measure_interleaved(all, g->count + 1, results_out);
  }
  if (g->has_threads) end_threads(g);
  if (status) return status;
  fill_overlap(overlap, results_out, g->count);
  fill_workspace(all, results_out, g->count);
  return PROF_OK;
}

int prof_op_profile_group(const prof_op *ops, size_t count, prof_op_side side,
                          const prof_op_options *options, prof_op_result **results_out,
                          prof_op_overlap *overlap_out) {
  if (!ops || !results_out || !overlap_out)
    return prof_i_fail(PROF_E_INVALID, "prof_op_profile_group: an argument is NULL");
  if (count == 0 || count > MEMBERS_MAX)
    return prof_i_fail(PROF_E_INVALID, "count is %zu; 1 to %d members", count, MEMBERS_MAX);
  if (side != PROF_OP_THREADS && side != PROF_OP_STREAMS)
    return prof_i_fail(PROF_E_INVALID, "side is %d; 0 threads, 1 streams", (int)side);
  if (overlap_out->size < sizeof *overlap_out)
    return prof_i_fail(PROF_E_INVALID,
                       "prof_op_overlap.size is %zu; set it to sizeof(prof_op_overlap)",
                       overlap_out->size);
  memset(results_out, 0, (count + 1) * sizeof *results_out);
  prof_i_measurement *const all = calloc(count + 1, sizeof *all);
  op_group *const g = calloc(1, sizeof *g);
  prof_op_overlap overlap = {.size = overlap_out->size};
  if (!all || !g) {
    free(g);
    free(all);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %zu operators", count);
  }
  int status = prof_i_measure_init_all(all, ops, count, options);
  if (!status) status = check_timers(all, count);
  if (!status) {
    g->count = count;
    g->has_threads = side == PROF_OP_THREADS;
    status = measure_group(g, all, options, results_out, &overlap);
  }
  if (!status) *overlap_out = overlap;
  free(g);
  free(all);
  return status;
}
