/* PROF_RULE_ONLY_CHILDREN beside torch.profiler's own way, on random trees of calls. A call that is
   the only one in a call of its name is taken out, again and again until none is left. Vendors'
   calls among them are children, too. Steps' marks are not, as where torch.profiler records no
   steps. */
#include <prof/memory.h>

#include "device_capture.h"
#include "memory_capture.h"
#include "trace_checks.h"

enum {
  T0 = CAPTURE_START,
  CHUNK = PROF_I_UNIT_BYTES,
  NAMES = 3,
  VENDORS = NAMES + 1, /* the site of vendors' calls */
  CALLS_MOST = 60,
  ROUNDS = 400
};

typedef struct call {
  int parent; /* -1: none */
  uint32_t site;
  uint64_t start, end;
  bool is_gone;
  uint64_t vendors; /* calls of a vendor's directly in it, each of 1 ns */
} call;

typedef struct tree {
  call calls[CALLS_MOST]; /* by begin */
  int count;
  uint64_t now;
  uint64_t random;
  uint32_t marks_in_8; /* how often there is one between two children */
  int marked_in;       /* the call around the last step's mark; -1: there is no mark */
} tree;

typedef struct sums {
  uint64_t calls, total, self;
} sums;

static uint64_t next_random(tree *t) {
  t->random = t->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return t->random >> 33;
}

static void put_call(tree *t, prof_i_head *chunk, int parent) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CALL, T0 + t->now, 1, VENDORS);
  long_end(&r, chunk);
  t->calls[parent].vendors++;
  t->now += 2;
}

/* A step lasts from the mark before it. None is made from a mark in a call that has ended: there
   that call crosses the step, and is its sibling. */
static void put_step(tree *t, prof_i_head *chunk, int parent) {
  long_record r;
  int around = parent;
  while (around >= 0 && around != t->marked_in) around = t->calls[around].parent;
  if (around != t->marked_in) return;
  long_begin(&r, PROF_I_KIND_STEP, T0 + t->now, 0, 0);
  long_word(&r, 0);
  long_end(&r, chunk);
  t->marked_in = parent;
  t->now++;
}

static void put_mark(tree *t, prof_i_head *chunk, int parent) {
  if (next_random(t) % 8 >= t->marks_in_8) return;
  if (next_random(t) % 2)
    put_call(t, chunk, parent);
  else
    put_step(t, chunk, parent);
}

/* Most have one child, and half of those the name of what is around them. */
static void grow(tree *t, capture *c, prof_i_head **chunk, int parent) {
  if (t->count == CALLS_MOST) return;
  const int at = t->count++;
  const uint32_t around = parent < 0 ? 0 : t->calls[parent].site;
  const bool is_alike = around && next_random(t) % 2;
  const uint32_t site = is_alike ? around : 1 + (uint32_t)(next_random(t) % NAMES);
  t->calls[at] = (call){.parent = parent, .site = site, .start = t->now};
  t->now += 1 + next_random(t) % 9;
  static const int child_counts[] = {0, 1, 1, 1, 1, 2, 3};
  const int children = child_counts[next_random(t) % 7];
  for (int i = 0; i < children; i++) {
    put_mark(t, *chunk, at);
    grow(t, c, chunk, at);
    t->now += 1 + next_random(t) % 9;
    put_mark(t, *chunk, at);
  }
  t->calls[at].end = t->now;
  const uint64_t start = T0 + t->calls[at].start, duration = t->now - t->calls[at].start;
  t->now++;
  if (next_random(t) % 8 == 0) *chunk = capture_chunk(c, CHUNK, 1);
  if (next_random(t) % 4) {
    capture_plain(*chunk, start, duration, site);
    return;
  }
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, start, duration, site);
  long_end(&r, *chunk);
}

static int children_of(const tree *t, int parent) {
  int count = t->calls[parent].vendors > 0;
  for (int i = 0; i < t->count; i++) count += !t->calls[i].is_gone && t->calls[i].parent == parent;
  return count;
}

/* _remove_dup_nodes() of torch/autograd/profiler_util.py. */
static void take_only_children_out(tree *t) {
  for (bool is_any = true; is_any;) {
    is_any = false;
    for (int i = 0; i < t->count; i++) {
      call *const one = &t->calls[i];
      const int parent = one->parent;
      if (one->is_gone || parent < 0) continue;
      if (t->calls[parent].site != one->site || children_of(t, parent) != 1) continue;
      one->is_gone = is_any = true;
      t->calls[parent].vendors += one->vendors;
      for (int child = 0; child < t->count; child++)
        if (t->calls[child].parent == i) t->calls[child].parent = parent;
    }
  }
}

/* A total is that of the calls in no other one of their name. */
static sums sums_of(const tree *t, uint32_t site) {
  sums found = {0, 0, 0};
  for (int i = 0; i < t->count; i++) {
    const call *const one = &t->calls[i];
    if (one->is_gone || one->site != site) continue;
    int around = one->parent;
    while (around >= 0 && t->calls[around].site != site) around = t->calls[around].parent;
    const uint64_t duration = one->end - one->start;
    found.calls++;
    found.total += around < 0 ? duration : 0;
    found.self += duration - one->vendors;
    for (int child = 0; child < t->count; child++)
      if (!t->calls[child].is_gone && t->calls[child].parent == i)
        found.self -= t->calls[child].end - t->calls[child].start;
  }
  return found;
}

static prof_rows *rows_of(const prof_trace *trace, uint32_t group, uint32_t sort, uint32_t rules) {
  const prof_aggregate_options options = {
      .size = sizeof options, .group = group, .sort = sort, .rules = rules};
  prof_rows *rows = NULL;
  if (prof_trace_aggregate(trace, &options, &rows)) fail_msg("%s", prof_last_error());
  return rows;
}

static sums sums_in(const prof_rows *rows, uint32_t site) {
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *const row = &rows->rows[i];
    if (row->name[0] == (char)('a' + site - 1))
      return (sums){row->calls_count, row->total_ns, row->self_ns};
  }
  return (sums){0, 0, 0};
}

static void check_rows(const tree *t, const prof_trace *trace, uint32_t group, uint32_t rules) {
  for (uint32_t sort = PROF_SORT_TOTAL; sort <= PROF_SORT_FIRST; sort += PROF_SORT_FIRST) {
    prof_rows *const rows = rows_of(trace, group, sort, rules);
    for (uint32_t site = 1; site <= NAMES; site++) {
      const sums expected = sums_of(t, site), found = sums_in(rows, site);
      if (memcmp(&expected, &found, sizeof found) != 0)
        fail_msg("%c: %llu calls, total %llu, self %llu; not %llu, %llu, %llu", 'a' + (int)site - 1,
                 (unsigned long long)found.calls, (unsigned long long)found.total,
                 (unsigned long long)found.self, (unsigned long long)expected.calls,
                 (unsigned long long)expected.total, (unsigned long long)expected.self);
    }
    for (uint64_t i = 0; i < rows->row_count; i++) assert_true(rows->rows[i].calls_count > 0);
    prof_rows_destroy(rows);
  }
}

static void rows_are_torchs_and_without_the_rule_each_call_counts(void **state) {
  (void)state;
  static const uint32_t groups[] = {PROF_GROUP_NAME, PROF_GROUP_NAME | PROF_GROUP_ANNOTATION,
                                    PROF_GROUP_NAME | PROF_GROUP_THREAD,
                                    PROF_GROUP_NAME | PROF_GROUP_SHAPE};
  uint64_t gone = 0;
  for (uint64_t round = 0; round < ROUNDS; round++) {
    tree t = {.now = 1, .random = round, .marked_in = -1, .marks_in_8 = (uint32_t)(round % 3)};
    capture c;
    begin_with_sites(&c, 1 << 20, VENDORS);
    prof_i_head *chunk = capture_chunk(&c, CHUNK, 1);
    while (t.count < 20) grow(&t, &c, &chunk, -1);
    prof_trace *const trace = open_capture(&c);
    const size_t group_count = sizeof groups / sizeof *groups;
    for (size_t i = 0; i < group_count; i++) check_rows(&t, trace, groups[i], 0);
    take_only_children_out(&t);
    for (size_t i = 0; i < group_count; i++)
      check_rows(&t, trace, groups[i], PROF_RULE_ONLY_CHILDREN);
    for (int i = 0; i < t.count; i++) gone += t.calls[i].is_gone;
    prof_trace_destroy(trace);
    capture_end(&c);
  }
  assert_true(gone > ROUNDS);
}

/* What the inner call takes on a device, and of memory, belongs to the outer one. */
static void what_stands_beside_the_time_is_kept(void **state) {
  (void)state;
  enum { SIDE = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM };
  capture c;
  capture_begin(&c, 1 << 20);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "kernel", "operator", 1);
  capture_track(meta, (prof_device){4, 1}, 0x7000, "compute");
  prof_i_pool_state *const pool = memory_pool(&c, meta, 1, PROF_MEMORY_POOL, 1, "pool");
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  prof_i_head *const stream = capture_extent(&c, PROF_I_EXTENT_CHUNK, CHUNK);
  stream->sequence = ++c.sequence << 1;
  capture_owner_as(stream, 2, 0x7000,
                   PROF_I_KIND_OF_STREAM | 4 << PROF_I_THREAD_KIND_TYPE_SHIFT |
                       UINT64_C(1) << PROF_I_THREAD_KIND_INDEX_SHIFT,
                   "stream 0x7000");
  memory_piece(chunk, pool, T0 + 7, false, 0x1000000, 64);
  memory_piece(chunk, pool, T0 + 15, false, 0x2000000, 512);
  put_device_scope(chunk, 10, 10, SIDE, 0, 0);
  capture_plain(chunk, T0 + 5, 40, 1);
  put_device_scope(stream, 18, 12, SIDE, 1, 10);
  prof_trace *const trace = open_capture(&c);
  for (uint32_t rules = 0; rules <= PROF_RULE_ONLY_CHILDREN; rules += PROF_RULE_ONLY_CHILDREN) {
    prof_rows *const rows = rows_of(trace, PROF_GROUP_NAME, PROF_SORT_FIRST, rules);
    assert_int_equal(rows->row_count, 1);
    const prof_row *const row = rows->rows;
    assert_int_equal(row->calls_count, rules ? 1 : 2);
    assert_int_equal(row->min_ns, rules ? 40 : 10);
    assert_int_equal(row->total_ns, 40);
    assert_int_equal(row->self_ns, 40);
    assert_int_equal(row->device_total_ns, 12);
    assert_int_equal(row->self_device_ns, 12);
    assert_int_equal(row->device_count, 1);
    assert_int_equal(row->device_memory_bytes, 576);
    assert_int_equal(row->self_device_memory_bytes, 576);
    assert_int_equal(rows->total_self_ns, 40);
    prof_rows_destroy(rows);
  }
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* An open call holds it, or a jump left one of the two. */
static void only_calls_that_have_ended_are_merged(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, NAMES);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_open(capture_slot(&c, 1, "main"), T0 + 10, 1);
  capture_plain(chunk, T0 + 20, 10, 1);
  long_record r;
  long_begin(&r, PROF_I_KIND_SKIPPED, T0 + 110, 90, 2);
  long_end(&r, chunk);
  capture_plain(chunk, T0 + 100, 100, 2);
  prof_trace *const trace = open_capture(&c);
  prof_rows *const rows = rows_of(trace, PROF_GROUP_NAME, PROF_SORT_FIRST, PROF_RULE_ONLY_CHILDREN);
  assert_int_equal(rows->row_count, 2);
  for (uint64_t i = 0; i < 2; i++) {
    prof_row_more more = {.size = sizeof more};
    assert_int_equal(prof_rows_more(rows, i, &more), PROF_OK);
    assert_int_equal(rows->rows[i].calls_count, 1);
    assert_int_equal(more.open_count, i == 0);
    assert_int_equal(more.skipped_count, i == 1);
  }
  assert_int_equal(rows->rows[0].self_ns, 10);
  assert_int_equal(rows->rows[1].self_ns, 100);
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void the_rule_needs_names(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, NAMES);
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_THREAD, .rules = PROF_RULE_ONLY_CHILDREN};
  prof_rows *rows = NULL;
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_E_INVALID);
  assert_non_null(strstr(prof_last_error(), "PROF_GROUP_NAME"));
  assert_null(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_torchs_and_without_the_rule_each_call_counts),
      cmocka_unit_test(what_stands_beside_the_time_is_kept),
      cmocka_unit_test(only_calls_that_have_ended_are_merged),
      cmocka_unit_test(the_rule_needs_names),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
