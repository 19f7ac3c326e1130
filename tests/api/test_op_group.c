/* Several operators: in turn, and in groups on threads or in order. */
#define _GNU_SOURCE
#include <sched.h>

#include "hang_guard.h"
#include "op_checks.h"

/* ---- several ---- */

static struct {
  char order[256];
  size_t used;
} diary;

typedef struct teller {
  char name;
  int runs, fail_at;
} teller;

static void note(char what) {
  if (diary.used < sizeof diary.order - 1) diary.order[diary.used++] = what;
  diary.order[diary.used] = '\0';
}
static int tell_prepare(void *user) {
  (void)user;
  note('(');
  return 0;
}
static int tell_run(void *user) {
  teller *const t = user;
  note(t->name);
  return ++t->runs == t->fail_at;
}
static void tell_cleanup(void *user) { note((char)(((teller *)user)->name - 'A' + 'a')); }

static void operators_take_turns(void **state) {
  teller tellers[] = {{'A', 0, 0}, {'B', 0, 0}, {'C', 0, 0}};
  prof_op ops[3];
  prof_op_result *results[3] = {NULL};
  const prof_op_options options = {
      .size = sizeof options, .no_warmup = 1, .exec = 1, .repeat = 4, .repeat_all = 1};
  (void)state;
  for (int i = 0; i < 3; i++)
    ops[i] = (prof_op){.size = sizeof *ops,
                       .key = "teller",
                       .user = &tellers[i],
                       .prepare = tell_prepare,
                       .run = tell_run,
                       .cleanup = tell_cleanup};
  diary.used = 0;
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, results), PROF_OK);
  assert_string_equal(diary.order, "(((ABCCBAABCCBAcba");
  for (int i = 0; i < 3; i++) {
    assert_int_equal(info_of(results[i]).sample_count, 4);
    prof_op_result_destroy(results[i]);
  }
  assert_int_equal(prof_op_cache_count(NULL), 0);

  tellers[1].fail_at = tellers[1].runs + 2;
  diary.used = 0;
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, results), PROF_E_OPERATOR);
  assert_string_equal(diary.order, "(((ABCCBcba");
  for (int i = 0; i < 3; i++) assert_null(results[i]);
  assert_int_equal(prof_op_profile_in_turn(ops, 0, &options, results), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_in_turn(ops, 1025, &options, results), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_in_turn(NULL, 3, &options, results), PROF_E_INVALID);
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, NULL), PROF_E_INVALID);
  /* one whose median is known goes on for the others, but no further than its own limit */
  const prof_op_options soon = {.size = sizeof soon,
                                .no_warmup = 1,
                                .exec = 1,
                                .repeat = 25,
                                .precision = 0.9999,
                                .least_ns = 1};
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &soon, results), PROF_OK);
  for (int i = 0; i < 3; i++) {
    assert_true(info_of(results[i]).sample_count >= 20 && info_of(results[i]).sample_count <= 25);
    prof_op_result_destroy(results[i]);
  }
  ops[2].run = NULL;
  diary.used = 0;
  assert_int_equal(prof_op_profile_in_turn(ops, 3, &options, results), PROF_E_INVALID);
  assert_int_equal(diary.used, 0); /* looked at before any is prepared */
}

static int count_threads(void) {
  int count = 0;
  DIR *const folder = opendir("/proc/self/task");
  assert_non_null(folder);
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
    count += entry->d_name[0] != '.';
  closedir(folder);
  return count;
}

/* One that has been joined may be there for a moment. */
static void expect_threads(int wanted) {
  WAIT_WHILE(count_threads() != wanted);
  assert_int_equal(count_threads(), wanted);
}

static void *leave(void *tid_out) {
  *(pid_t *)tid_out = (pid_t)syscall(SYS_gettid);
  return NULL;
}

/* With a program's first thread a sanitizer's own comes. When this returns, the first one has
   gone. */
static void make_first_thread(void) {
  pthread_t first;
  pid_t tid = 0;
  char path[64];
  assert_int_equal(pthread_create(&first, NULL, leave, &tid), 0);
  pthread_join(first, NULL);
  snprintf(path, sizeof path, "/proc/self/task/%d", (int)tid);
  WAIT_WHILE(access(path, F_OK) == 0);
  assert_int_not_equal(access(path, F_OK), 0);
}

/* Members that meet: in a round of the group each waits for the others, who come only if all run at
   once. */
enum { SLEEPERS = 3, ROUNDS = 12 };

typedef struct sleeper {
  pid_t tid;
  int fail_at, runs;
} sleeper;

static struct {
  bool meets;                        /* else they take turns */
  uint32_t arrived, inside, at_most; /* atomic */
} meeting;

/* A round has each member alone and then the group; the next one goes the other way round: alone,
   group; group, alone; ... */
static bool is_in_group(int run) { return run % 4 == 1 || run % 4 == 2; }

static int sleep_a_while(void *user) {
  sleeper *const s = user;
  s->tid = (pid_t)syscall(SYS_gettid);
  const uint32_t inside = __atomic_add_fetch(&meeting.inside, 1, __ATOMIC_SEQ_CST);
  if (inside > __atomic_load_n(&meeting.at_most, __ATOMIC_SEQ_CST))
    __atomic_store_n(&meeting.at_most, inside, __ATOMIC_SEQ_CST);
  if (is_in_group(s->runs)) {
    const uint32_t arrived = __atomic_add_fetch(&meeting.arrived, 1, __ATOMIC_SEQ_CST),
                   all = (arrived + SLEEPERS - 1) / SLEEPERS * SLEEPERS;
    if (meeting.meets) WAIT_WHILE(__atomic_load_n(&meeting.arrived, __ATOMIC_SEQ_CST) < all);
  }
  usleep(3000);
  __atomic_sub_fetch(&meeting.inside, 1, __ATOMIC_SEQ_CST);
  return ++s->runs == s->fail_at ? 6 : 0;
}

static void destroy_all(prof_op_result **results, int count) {
  for (int i = 0; i < count; i++) prof_op_result_destroy(results[i]);
}

static void expect_near(double us, double wanted_us) {
  assert_true(us >= wanted_us * 0.999999 && us <= wanted_us * 1.000001);
}

/* The report is of the medians. */
static void check_gain(prof_op_result *const *results, const prof_op_overlap *overlap) {
  double alone = 0, longest = 0;
  for (int i = 0; i < 3; i++) {
    const prof_op_info info = info_of(results[i]);
    assert_true(info.min_us >= 3000);
    alone += info.median_us;
    if (info.median_us > longest) longest = info.median_us;
  }
  const prof_op_info group = info_of(results[3]);
  expect_near(overlap->alone_us, alone);
  expect_near(overlap->longest_us, longest);
  expect_near(overlap->group_us, group.median_us);
  const double gained = (alone - group.median_us) / (alone - longest);
  assert_true(fabs(overlap->gained - gained) < 1e-6);
}

/* On threads they meet in each round of the group; in order no two are ever inside. */
static void expect_overlap(const prof_op *ops, prof_op_side side, const prof_op_options *options,
                           prof_op_result **results) {
  prof_op_overlap overlap = {.size = sizeof overlap};
  for (int i = 0; i < SLEEPERS; i++) ((sleeper *)ops[i].user)->runs = 0;
  meeting.meets = side == PROF_OP_THREADS;
  meeting.arrived = meeting.at_most = 0;
  assert_int_equal(prof_op_profile_group(ops, SLEEPERS, side, options, results, &overlap), PROF_OK);
  assert_int_equal(meeting.arrived, SLEEPERS * ROUNDS);
  assert_int_equal(meeting.at_most, side == PROF_OP_THREADS ? SLEEPERS : 1);
  assert_true(overlap.alone_us >= 9000 && overlap.longest_us >= 3000 && overlap.group_us >= 3000 &&
              overlap.begin_us >= 0);
  check_gain(results, &overlap);
}

static void a_group_gains_what_runs_at_once(void **state) {
  sleeper sleepers[SLEEPERS] = {{0, 0, 0}};
  prof_op ops[3];
  prof_op_result *results[4] = {NULL};
  prof_op_overlap overlap = {.size = sizeof overlap};
  const prof_op_options options = {.size = sizeof options,
                                   .no_warmup = 1,
                                   .exec = 1,
                                   .repeat = ROUNDS,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_MAX};
  static const char *const keys[] = {"one", "two", "three"};
  (void)state;
  make_first_thread();
  const int threads_before = count_threads();
  for (int i = 0; i < 3; i++)
    ops[i] =
        (prof_op){.size = sizeof *ops, .key = keys[i], .user = &sleepers[i], .run = sleep_a_while};
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++) {
    expect_overlap(ops, (prof_op_side)side, &options, results);
    assert_string_equal(prof_op_key(results[1]), "two");
    assert_string_equal(prof_op_key(results[3]), "one + two + three");
    for (int i = 0; i < 4; i++) assert_int_equal(info_of(results[i]).sample_count, ROUNDS);
    destroy_all(results, 4);
    expect_threads(threads_before);
  }
  for (int i = 0; i < 3; i++) {
    for (int j = 0; j < 3; j++) sleepers[j].runs = 0;
    sleepers[i].fail_at = i % 2 ? 2 : 5; /* in the group, and alone; on whatever thread */
    meeting.arrived = 0;
    assert_int_equal(prof_op_profile_group(ops, 3, PROF_OP_THREADS, &options, results, &overlap),
                     PROF_E_OPERATOR);
    assert_non_null(strstr(prof_last_error(), "returned 6"));
    for (int j = 0; j < 4; j++) assert_null(results[j]);
    expect_threads(threads_before);
    sleepers[i].fail_at = 0;
  }
  assert_int_equal(prof_op_profile_group(ops, 0, PROF_OP_THREADS, &options, results, &overlap),
                   PROF_E_INVALID);
  assert_int_equal(prof_op_profile_group(ops, 65, PROF_OP_THREADS, &options, results, &overlap),
                   PROF_E_INVALID);
  assert_int_equal(prof_op_profile_group(ops, 3, (prof_op_side)2, &options, results, &overlap),
                   PROF_E_INVALID);
  assert_int_equal(prof_op_profile_group(ops, 3, PROF_OP_THREADS, &options, results, NULL),
                   PROF_E_INVALID);
  overlap.size = 1;
  assert_int_equal(prof_op_profile_group(ops, 3, PROF_OP_THREADS, &options, results, &overlap),
                   PROF_E_INVALID);
}

static int spin(void *user) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  const int64_t begun_ns = (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
  do clock_gettime(CLOCK_MONOTONIC, &now);
  while ((int64_t)now.tv_sec * 1000000000 + now.tv_nsec - begun_ns < *(const int64_t *)user);
  return 0;
}

/* They take turns, and nobody waits for one that cannot run because others wait. */
static void more_members_than_processors_get_through(void **state) {
  enum { MEMBERS = 8 };
  const prof_op_options options = {.size = sizeof options,
                                   .warmup = 2,
                                   .exec = 3,
                                   .repeat = 10,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_MAX};
  int64_t spin_ns = 200000;
  prof_op ops[MEMBERS];
  prof_op_result *results[MEMBERS + 1] = {NULL};
  prof_op_overlap overlap = {.size = sizeof overlap};
  cpu_set_t before, one;
  (void)state;
  assert_int_equal(sched_getaffinity(0, sizeof before, &before), 0);
  CPU_ZERO(&one);
  CPU_SET((size_t)sched_getcpu(), &one);
  if (sched_setaffinity(0, sizeof one, &one) != 0) {
    print_message("skip: the thread may not be kept to one processor\n");
    skip();
  }
  for (int i = 0; i < MEMBERS; i++)
    ops[i] = (prof_op){.size = sizeof *ops, .key = "one of many", .user = &spin_ns, .run = spin};
  const int status =
      prof_op_profile_group(ops, MEMBERS, PROF_OP_THREADS, &options, results, &overlap);
  sched_setaffinity(0, sizeof before, &before);
  assert_int_equal(status, PROF_OK);
  print_message(
      "  %d spins of 200 us on one processor: %.0f us at once, gained %.2f, to begin %.2f us\n",
      MEMBERS, overlap.group_us, overlap.gained, overlap.begin_us);
  assert_int_equal(info_of(results[MEMBERS]).sample_count, 10);
  assert_true(overlap.group_us >= 200);
  destroy_all(results, MEMBERS + 1);
}

static void the_first_member_runs_on_the_callers_thread(void **state) {
  sleeper sleepers[2] = {{0, 0, 0}};
  prof_op ops[2];
  prof_op_result *results[3] = {NULL};
  prof_op_overlap overlap = {.size = sizeof overlap};
  const prof_op_options options = {
      .size = sizeof options, .no_warmup = 1, .exec = 1, .repeat = 2, .repeat_all = 1};
  (void)state;
  for (int i = 0; i < 2; i++)
    ops[i] =
        (prof_op){.size = sizeof *ops, .key = "who", .user = &sleepers[i], .run = sleep_a_while};
  /* one round: each alone, then both */
  const prof_op_options odd = {
      .size = sizeof odd, .no_warmup = 1, .exec = 1, .repeat = 1, .repeat_all = 1};
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_THREADS, &odd, results, &overlap),
                   PROF_OK);
  assert_int_equal(sleepers[0].tid, getpid());
  assert_int_not_equal(sleepers[1].tid, getpid());
  for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
  assert_int_equal(prof_op_profile_group(ops, 2, PROF_OP_STREAMS, &options, results, &overlap),
                   PROF_OK);
  assert_int_equal(sleepers[1].tid, getpid());
  for (int i = 0; i < 3; i++) prof_op_result_destroy(results[i]);
}

typedef struct holder {
  pthread_barrier_t *all; /* or NULL */
  uint64_t bytes;
  int runs;
} holder;

/* Warmed up alone and in the group, sampled alone and in the group: in the group each holds its own
   while all do. */
static int hold(void *user) {
  holder *const h = user;
  prof_op_workspace_alloc(h->bytes);
  if (++h->runs % 2 == 0 && h->all) pthread_barrier_wait(h->all);
  prof_op_workspace_free(h->bytes);
  return 0;
}
static int hold_said(void *user) {
  prof_op_workspace_alloc(1 << 20); /* of one that says its workspace itself: not asked */
  prof_op_workspace_free(1 << 20);
  return nothing(&((holder *)user)->runs);
}
static int pass(void *user) { return nothing(&((holder *)user)->runs); }
static int say_held(void *user, uint64_t *bytes_out) {
  *bytes_out = ((holder *)user)->bytes;
  return 0;
}

static void expect_workspaces(const prof_op *ops, size_t count, prof_op_side side, int is_known,
                              uint64_t whole_bytes) {
  const prof_op_options options = {
      .size = sizeof options, .warmup = 1, .exec = 1, .repeat = 1, .repeat_all = 1};
  prof_op_overlap overlap = {.size = sizeof overlap};
  prof_op_result *results[65] = {NULL};
  assert_int_equal(prof_op_profile_group(ops, count, side, &options, results, &overlap), PROF_OK);
  for (size_t i = 0; i < count; i++)
    if (info_of(results[i]).has_workspace)
      assert_int_equal(info_of(results[i]).workspace_bytes, ((const holder *)ops[i].user)->bytes);
  assert_int_equal(info_of(results[count]).has_workspace, is_known);
  assert_int_equal(info_of(results[count]).workspace_bytes, whole_bytes);
  destroy_all(results, (int)count + 1);
}

static void a_groups_workspace_is_what_all_held_at_once(void **state) {
  enum { MEMBERS = 8 };
  holder holders[MEMBERS] = {{NULL, 0, 0}};
  prof_op ops[MEMBERS];
  (void)state;
  for (int i = 0; i < MEMBERS; i++)
    ops[i] = (prof_op){.size = sizeof *ops, .key = "holds", .user = &holders[i], .run = hold};
  for (unsigned count = 1; count <= MEMBERS; count++) {
    pthread_barrier_t all;
    uint64_t sum = 0;
    assert_int_equal(pthread_barrier_init(&all, NULL, count), 0);
    for (unsigned i = 0; i < count; i++) {
      const unsigned place = count % 2 ? i : count - 1 - i; /* the largest last, and first */
      holders[i] = (holder){&all, 50000ull << place, 0};
      sum += holders[i].bytes;
    }
    expect_workspaces(ops, count, PROF_OP_THREADS, 1, sum);
    pthread_barrier_destroy(&all);
  }
  for (int i = 0; i < 2; i++) holders[i] = (holder){NULL, i ? 100000 : 50000, 0};
  /* one after the other: given back before the next asks */
  expect_workspaces(ops, 2, PROF_OP_STREAMS, 1, 100000);

  ops[0].run = hold_said;
  ops[0].workspace = say_held;
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++)
    expect_workspaces(ops, 2, (prof_op_side)side, 1, 150000);
  holders[1] = (holder){NULL, 0, 0}; /* one that asks for nothing */
  ops[1].run = pass;
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++)
    expect_workspaces(ops, 2, (prof_op_side)side, 1, 50000);
}

/* The first test: nobody has told anything yet, so one that was told nothing of may have asked for
   whatever. */
static void a_groups_workspace_is_not_known_if_a_members_is_not(void **state) {
  holder holders[2] = {{NULL, 50000, 0}, {NULL, 0, 0}};
  prof_op ops[2];
  (void)state;
  for (int i = 0; i < 2; i++)
    ops[i] = (prof_op){.size = sizeof *ops, .key = "holds", .user = &holders[i], .run = pass};
  ops[0].workspace = say_held;
  for (int side = PROF_OP_THREADS; side <= PROF_OP_STREAMS; side++)
    expect_workspaces(ops, 2, (prof_op_side)side, 0, 0);
}

static void those_in_turn_are_compared_by_rounds(void **state) {
  const double one[] = {1000, 1010, 990}, two[] = {2000, 2020, 1980};
  subject subjects[2] = {{0}, {0}};
  script times[] = {{.us = one, .count = 3}, {.us = two, .count = 3}};
  const prof_op_timer timers[] = {timer_of(&times[0]), timer_of(&times[1])};
  prof_op ops[] = {op_of(&subjects[0], "one"), op_of(&subjects[1], "two")};
  const prof_op_options options = {
      .size = sizeof options, .warmup = 1, .exec = 1, .repeat = 20, .repeat_all = 1, .no_reuse = 1};
  prof_op_comparison forth = {.size = sizeof forth}, back = {.size = sizeof back};
  prof_op_result *results[2] = {NULL};
  (void)state;
  for (int i = 0; i < 2; i++) ops[i].timer = &timers[i];
  assert_int_equal(prof_op_profile_in_turn(ops, 2, &options, results), PROF_OK);
  assert_int_equal(prof_op_compare(results[0], results[1], 0, &forth), PROF_OK);
  assert_int_equal(prof_op_compare(results[1], results[0], 0, &back), PROF_OK);
  destroy_all(results, 2);
  assert_int_equal(forth.is_paired, 1);
  assert_int_equal(forth.order, PROF_OP_SLOWER);
  assert_true(forth.ratio > 1.95 && forth.ratio < 2.05);
  assert_int_equal(back.order, PROF_OP_FASTER);
}

static int nap_twice(void *user) { return nap(user) || nap(user); }

static void fewer_than_six_rounds_have_no_interval(void **state) {
  const prof_op ops[] = {{.size = sizeof *ops, .key = "nap", .run = nap},
                         {.size = sizeof *ops, .key = "two naps", .run = nap_twice}};
  (void)state;
  for (int rounds = 1; rounds <= 6; rounds++) {
    const prof_op_options options = {
        .size = sizeof options, .no_warmup = 1, .exec = 1, .repeat = rounds, .repeat_all = 1};
    prof_op_result *results[2] = {NULL};
    prof_op_comparison comparison = {.size = sizeof comparison};
    assert_int_equal(prof_op_profile_in_turn(ops, 2, &options, results), PROF_OK);
    assert_int_equal(prof_op_compare(results[0], results[1], 0, &comparison), PROF_OK);
    assert_true(comparison.is_paired && comparison.ratio > 0);
    if (rounds < 6) {
      assert_int_equal(comparison.order, PROF_OP_UNCLEAR);
      assert_true(comparison.doubts & PROF_OP_FEW_SAMPLES);
    }
    assert_int_equal(rounds < 6, comparison.ratio_low <= 0 && isinf(comparison.ratio_high));
    assert_true(comparison.ratio_low <= comparison.ratio &&
                comparison.ratio <= comparison.ratio_high);
    destroy_all(results, 2);
  }
}

static void single_samples_have_no_interval(void **state) {
  static const double first[] = {10}, second[] = {20}, none[] = {0};
  prof_op_comparison comparison = {.size = sizeof comparison};
  (void)state;
  prof_op_result *const a = measured("first", first, 1), *const b = measured("second", second, 1),
                        *const c = measured("none", none, 1);
  assert_int_equal(prof_op_compare(a, b, 0, &comparison), PROF_OK);
  assert_int_equal(comparison.order, PROF_OP_UNCLEAR);
  assert_true(comparison.ratio > 1.999 && comparison.ratio < 2.001);
  assert_true(comparison.ratio_low <= 0 && isinf(comparison.ratio_high));
  /* below the timer's step: nothing is known */
  assert_int_equal(prof_op_compare(c, b, 0, &comparison), PROF_OK);
  assert_true(comparison.ratio <= 0 && comparison.ratio_low <= 0 && isinf(comparison.ratio_high));
  prof_op_result_destroy(a);
  prof_op_result_destroy(b);
  prof_op_result_destroy(c);
}

#define ENTRY(test) cmocka_unit_test_setup(test, clean)

int main(void) {
  const struct CMUnitTest tests[] = {
      ENTRY(a_groups_workspace_is_not_known_if_a_members_is_not),
      ENTRY(operators_take_turns),
      ENTRY(those_in_turn_are_compared_by_rounds),
      ENTRY(fewer_than_six_rounds_have_no_interval),
      ENTRY(single_samples_have_no_interval),
      ENTRY(a_group_gains_what_runs_at_once),
      ENTRY(more_members_than_processors_get_through),
      ENTRY(the_first_member_runs_on_the_callers_thread),
      ENTRY(a_groups_workspace_is_what_all_held_at_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
