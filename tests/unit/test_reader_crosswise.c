/* Self times of scopes that overlap crosswise, against a count of ticks. Each tick of a thread is
   self time of the running scope that began last. A skipped scope has none: its ticks are those of
   what else runs. Random threads of plain and long records, skipped scopes, steps, marks, open
   scopes, and what is no thread's own time. Many begin or end together. */
#include "reader/internal.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, SITES = 160, NAMES = 7, OPEN_MAX = 40, ROOM = 40000 };

typedef enum kind { PLAIN, LONG, SKIPPED, ASYNC, OTHER_THREAD, STEP, INSTANT, KIND_COUNT } kind;

/* What a test varies. */
typedef struct shape {
  uint32_t seed, records;
  uint32_t together_in_100;  /* how often the clock does not move */
  uint32_t crosswise_in_100; /* how often another than the innermost scope ends */
  uint32_t special_in_100;   /* how often a record is no plain scope */
  uint32_t swaps_in_100;     /* how often two records come in the wrong order */
  uint32_t lost;             /* the first so many records are not there, as in a ring */
  bool is_cleared;           /* in the middle */
} shape;

typedef struct record {
  uint64_t start, end;
  uint32_t site; /* 0: no scope */
  kind kind;
} record;

static struct {
  uint32_t random;
  uint64_t clock, clear;
  record open[OPEN_MAX];
  uint32_t open_count;
  record records[ROOM]; /* as they ended */
  uint32_t count;
} made;

/* By site; whole: what the scopes of a site take. */
typedef struct sums {
  uint64_t self_ns[SITES + 1], whole_ns[SITES + 1], all_self_ns;
  uint32_t count[SITES + 1];
} sums;

static uint32_t draw(uint32_t bound) {
  made.random = made.random * 1664525 + 1013904223;
  return (made.random >> 8) % bound;
}

static void pass_time(const shape *s) {
  if (draw(100) >= s->together_in_100) made.clock += 1 + draw(3);
}

static void end_one(const shape *s) {
  const bool is_any = draw(100) < s->crosswise_in_100;
  const uint32_t place = is_any ? draw(made.open_count) : made.open_count - 1;
  record r = made.open[place];
  memmove(&made.open[place], &made.open[place + 1],
          (made.open_count - place - 1) * sizeof *made.open);
  made.open_count--;
  r.end = made.clock;
  r.kind = draw(100) < s->special_in_100 ? LONG + draw(OTHER_THREAD) : PLAIN;
  made.records[made.count++] = r;
}

static void make_thread(const shape *s) {
  memset(&made, 0, sizeof made);
  made.random = s->seed;
  made.clock = T0 + 1;
  for (uint32_t begun = 0; made.count < s->records; pass_time(s)) {
    if (draw(100) < s->special_in_100 / 4) {
      const record mark = {made.clock, made.clock, 0, draw(2) ? STEP : INSTANT};
      made.records[made.count++] = mark;
    } else if (made.open_count && (made.open_count == OPEN_MAX || draw(100) < 50)) {
      end_one(s);
    } else {
      made.open[made.open_count++] = (record){.start = made.clock, .site = 1 + begun++ % SITES};
    }
  }
  if (s->is_cleared) made.clear = made.records[s->records / 2].end;
}

/* ---- the capture ---- */

static void put_long(prof_i_head *chunk, const record *r) {
  static const prof_i_kind kinds[KIND_COUNT] = {
      [LONG] = PROF_I_KIND_SCOPE,  [SKIPPED] = PROF_I_KIND_SKIPPED,
      [ASYNC] = PROF_I_KIND_ASYNC, [OTHER_THREAD] = PROF_I_KIND_SCOPE,
      [STEP] = PROF_I_KIND_STEP,   [INSTANT] = PROF_I_KIND_INSTANT};
  long_record to;
  const bool is_step = r->kind == STEP;
  long_begin(&to, kinds[r->kind], r->start, r->end - r->start, is_step ? 0 : r->site ? r->site : 1);
  if (r->kind == OTHER_THREAD) to.flags = PROF_I_FLAG_OTHER_THREAD;
  if (is_step) long_word(&to, 0);
  long_end(&to, chunk);
}

static void write_records(capture *c, const shape *s) {
  static record order[ROOM];
  memcpy(order, made.records, made.count * sizeof *order);
  for (uint32_t i = s->lost + 1; i < made.count; i++) {
    if (order[i].end == order[i - 1].end || draw(100) >= s->swaps_in_100) continue;
    const record moved = order[i];
    order[i] = order[i - 1];
    order[i - 1] = moved;
    i++;
  }
  prof_i_head *chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
  for (uint32_t i = s->lost; i < made.count; i++) {
    if (chunk->cursor + 128 > chunk->bytes) chunk = capture_chunk(c, PROF_I_UNIT_BYTES, 1);
    const record *const r = &order[i];
    if (r->kind == PLAIN)
      capture_plain(chunk, r->start, r->end - r->start, r->site);
    else
      put_long(chunk, r);
  }
}

static void write_capture(capture *c, const shape *s) {
  capture_begin(c, (1 << 20) + made.count * 64ull);
  prof_i_head *const meta = capture_meta(c);
  capture_session(meta, T0, 2, 1);
  for (uint32_t i = 1; i <= SITES; i++) {
    const char name[] = {(char)('a' + i % NAMES), '\0'};
    capture_site(meta, i, name, "cat", 1);
  }
  write_records(c, s);
  capture_header(c)->clear_ticks = made.clear;
  prof_i_thread_slot *const slot = capture_slot(c, 1, "thread 1");
  for (uint32_t i = 0; i < made.open_count; i++)
    capture_open(slot, made.open[i].start, made.open[i].site);
}

/* ---- the count ---- */

static bool has_own_time(const record *r) { return r->kind == PLAIN || r->kind == LONG; }

/* By begins; of those that begin together the one that ends last is the outer one. */
static int by_begin(const void *a, const void *b) {
  const record *const one = *(const record *const *)a, *const two = *(const record *const *)b;
  if (one->start != two->start) return one->start < two->start ? -1 : 1;
  return one < two ? 1 : -1;
}

static void count_ticks(const shape *s, sums *to) {
  static const record *all[ROOM], *running[ROOM];
  uint32_t count = 0, next = 0, running_count = 0;
  memset(to, 0, sizeof *to);
  for (uint32_t i = s->lost; i < made.count; i++) {
    const record *const r = &made.records[i];
    if (r->site == 0 || (made.clear && r->end <= made.clear)) continue;
    to->count[r->site]++;
    to->whole_ns[r->site] += r->end - r->start;
    if (has_own_time(r)) all[count++] = r;
  }
  qsort(all, count, sizeof *all, by_begin);
  for (uint64_t tick = T0; tick <= made.clock; tick++) {
    uint32_t kept = 0;
    for (; next < count && all[next]->start == tick; next++) running[running_count++] = all[next];
    for (uint32_t i = 0; i < running_count; i++)
      if (running[i]->end > tick) running[kept++] = running[i];
    running_count = kept;
    if (!running_count) continue;
    to->self_ns[running[running_count - 1]->site]++;
    to->all_self_ns++;
  }
}

/* ---- what the readers say ---- */

static void add_scope(sums *to, uint32_t site, uint64_t self_ns, uint64_t duration_ns) {
  assert_in_range(site, 1, SITES);
  to->count[site]++;
  to->self_ns[site] += self_ns;
  to->whole_ns[site] += duration_ns;
  to->all_self_ns += self_ns;
}

static int add_spans(void *user, const prof_i_span *spans, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (spans[i].kind == PROF_EVENT_SCOPE)
      add_scope(user, spans[i].site, spans[i].self_ns, spans[i].duration_ns);
  return 0;
}

static void read_cursor(const prof_trace *trace, sums *to) {
  const events all = read_events(trace);
  memset(to, 0, sizeof *to);
  for (size_t i = 0; i < all.count; i++) {
    const prof_event *const e = &all.items[i];
    if (e->kind == PROF_EVENT_SCOPE) add_scope(to, e->site, e->self_ns, e->duration_ns);
  }
  free(all.items);
}

static void assert_sums(const shape *s, const char *reader, const sums *seen, const sums *counted) {
  for (uint32_t site = 1; site <= SITES; site++)
    if (seen->count[site] != counted->count[site] ||
        seen->whole_ns[site] != counted->whole_ns[site] ||
        seen->self_ns[site] != counted->self_ns[site])
      fail_msg("seed %u, %s, site %u: %u scopes of %u, self time %lld of %lld in %llu", s->seed,
               reader, site, seen->count[site], counted->count[site],
               (long long)seen->self_ns[site], (long long)counted->self_ns[site],
               (unsigned long long)counted->whole_ns[site]);
  assert_int_equal(seen->all_self_ns, counted->all_self_ns);
}

static void check_rows(const shape *s, const prof_trace *trace, uint32_t group,
                       const sums *counted) {
  uint64_t self_ns[NAMES] = {0};
  prof_rows *rows;
  const prof_aggregate_options options = {
      .size = sizeof options, .group = group, .rows_limit = UINT32_MAX};
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    assert_in_range(rows->rows[i].name[0], 'a', 'a' + NAMES - 1);
    self_ns[rows->rows[i].name[0] - 'a'] += rows->rows[i].self_ns;
  }
  for (uint32_t site = 1; site <= SITES; site++) self_ns[site % NAMES] -= counted->self_ns[site];
  for (uint32_t i = 0; i < NAMES; i++)
    if (self_ns[i])
      fail_msg("seed %u, rows by 0x%x: %c has %lld ns too much", s->seed, group, 'a' + i,
               (long long)self_ns[i]);
  assert_int_equal(rows->total_self_ns, counted->all_self_ns);
  prof_rows_destroy(rows);
}

static void check(const shape *s) {
  static sums counted, seen;
  capture c;
  make_thread(s);
  write_capture(&c, s);
  count_ticks(s, &counted);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).bad_count, 0);
  memset(&seen, 0, sizeof seen);
  assert_int_equal(prof_i_trace_walk(trace, 0, add_spans, &seen), 0);
  assert_sums(s, "walk", &seen, &counted);
  read_cursor(trace, &seen);
  assert_sums(s, "cursor", &seen, &counted);
  check_rows(s, trace, PROF_GROUP_NAME, &counted);
  check_rows(s, trace, PROF_GROUP_NAME | PROF_GROUP_SCOPES, &counted);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void few_scopes_of_each_kind(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 3000; seed++)
    check(&(shape){.seed = seed,
                   .records = 1 + seed % 24,
                   .together_in_100 = seed % 4 * 30,
                   .crosswise_in_100 = seed % 3 * 45,
                   .special_in_100 = seed % 5 * 15});
}

static void what_is_lost_cleared_or_out_of_order(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 600; seed++)
    check(&(shape){.seed = seed,
                   .records = 150,
                   .together_in_100 = seed % 4 * 20,
                   .crosswise_in_100 = 50,
                   .special_in_100 = seed % 5 * 10,
                   .swaps_in_100 = seed % 2 * 10,
                   .lost = seed % 3 * 20,
                   .is_cleared = seed % 7 == 0});
}

static void several_stretches_of_the_cursor(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 3; seed++)
    check(&(shape){.seed = seed,
                   .records = ROOM,
                   .together_in_100 = 30,
                   .crosswise_in_100 = seed * 8,
                   .special_in_100 = seed % 3 * 5});
}

/* The reader lets 65536 wait. The time of those below stays with the last that does. */
static void deeper_than_the_reader_goes(void **state) {
  (void)state;
  enum { DEEP = 70000 };
  static sums seen;
  capture c;
  capture_begin(&c, 1 << 22);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "a", "cat", 1);
  prof_i_head *const chunk = capture_extent(&c, PROF_I_EXTENT_CHUNK, 1 << 21);
  capture_owner(chunk, 1, 101, "thread 1");
  chunk->sequence = 2;
  for (uint64_t i = 0; i < DEEP; i++) capture_plain(chunk, T0 + DEEP - i, 2 * i + 1, 1);
  prof_trace *const trace = open_capture(&c);
  memset(&seen, 0, sizeof seen);
  assert_int_equal(prof_i_trace_walk(trace, 0, add_spans, &seen), 0);
  assert_int_equal(seen.count[1], DEEP);
  assert_int_equal(seen.all_self_ns, 2 * DEEP - 1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* As torch.profiler has them: a stream may work at several kernels at once. */
static void kernels_of_a_stream_have_their_whole_times(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_extent(&c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  chunk->sequence = 2;
  capture_owner_as(chunk, 1, 7, PROF_I_KIND_OF_STREAM | PROF_DEVICE_CUDA << 8, "stream 7");
  capture_plain(chunk, T0 + 10, 20, 1);
  capture_plain(chunk, T0 + 20, 20, 2);
  capture_plain(chunk, T0 + 5, 60, 3);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 3);
  assert_int_equal(find_event(&all, "a")->self_ns, 20);
  assert_int_equal(find_event(&all, "b")->self_ns, 20);
  assert_int_equal(find_event(&all, "c")->self_ns, 40); /* less what its row holds */
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(few_scopes_of_each_kind),
      cmocka_unit_test(what_is_lost_cleared_or_out_of_order),
      cmocka_unit_test(several_stretches_of_the_cursor),
      cmocka_unit_test(deeper_than_the_reader_goes),
      cmocka_unit_test(kernels_of_a_stream_have_their_whole_times),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
