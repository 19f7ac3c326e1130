/* Calls of a vendor's interface among the scopes of their thread. Written on a line of their own,
   by another clock, they appear at their true time, and each ns counts once. */
#include "trace_checks.h"

#include "api/sanitizers.h"

enum { MODEL = 1, LAYER, CALL, INNER };
enum { THREAD = 1, LINE = 2, KERNELS_TID = 4711 };

static prof_i_head *begin(capture *c, uint64_t room_bytes) {
  capture_begin(c, room_bytes);
  prof_i_head *const meta = capture_meta(c);
  capture_site(meta, MODEL, "model", "user", 1);
  capture_site(meta, LAYER, "layer", "user", 1);
  capture_site(meta, CALL, "cudaLaunchKernel", "cuda_runtime", 1);
  capture_site(meta, INNER, "cuLaunchKernel", "cuda_driver", 1);
  return meta;
}

static prof_i_head *line(capture *c, uint64_t of) {
  prof_i_head *const chunk = capture_extent(c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  chunk->sequence = ++c->sequence << 1;
  capture_owner_as(chunk, LINE, of, PROF_I_KIND_OF_CALLS, "calls");
  return chunk;
}

static void put_call(prof_i_head *chunk, uint32_t site, uint64_t start, uint64_t end) {
  long_record r;
  long_begin(&r, PROF_I_KIND_CALL, CAPTURE_START + start, end - start, site);
  long_end(&r, chunk);
}

static void put(prof_i_head *chunk, uint32_t site, uint64_t start, uint64_t end) {
  capture_plain(chunk, CAPTURE_START + start, end - start, site);
}

/* ---- one edge ---- */

typedef struct edge {
  const char *what;
  uint64_t call[2];  /* as told */
  uint64_t found[2]; /* as shown */
  uint32_t depth;
  uint64_t layer_self;
} edge;

/* A layer from 200 to 300 in a model from 100 to 400. */
static void goes_to_the_nearer_side(void **state) {
  static const edge edges[] = {
      {"inside", {220, 260}, {220, 260}, 2, 60},
      {"begins a little before its scope", {195, 250}, {200, 250}, 2, 50},
      {"ends a little behind its scope", {250, 305}, {250, 300}, 2, 50},
      {"is a little longer than its scope", {198, 303}, {200, 300}, 2, 0},
      {"begins with the scope before it", {295, 350}, {300, 350}, 1, 100},
      {"ends in the scope behind it", {150, 205}, {150, 200}, 1, 100},
      {"holds a scope", {150, 350}, {150, 350}, 1, 100},
      {"begins before all", {90, 150}, {100, 150}, 1, 100},
      {"ends behind all", {350, 410}, {350, 400}, 1, 100},
      {"is behind all", {395, 450}, {400, 450}, 0, 100},
      {"ends with its scope", {280, 300}, {280, 300}, 2, 80},
      {"takes no time", {250, 250}, {250, 250}, 2, 100},
  };
  (void)state;
  for (size_t i = 0; i < sizeof edges / sizeof *edges; i++) {
    capture c;
    begin(&c, 64 << 10);
    prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, THREAD), *const calls =
                                                                                 line(&c, THREAD);
    put(chunk, LAYER, 200, 300);
    put(chunk, MODEL, 100, 400);
    put_call(calls, CALL, edges[i].call[0], edges[i].call[1]);
    prof_trace *const trace = open_capture(&c);
    events all = read_events(trace);
    assert_int_equal(info_of(trace).thread_count, 1);
    assert_int_equal(info_of(trace).bad_count, 0);
    assert_int_equal(info_of(trace).scope_count, 3);
    assert_int_equal(thread_of(trace, 0).event_count, 3);
    assert_int_equal(all.count, 3);
    const prof_event *const call = find_event(&all, "cudaLaunchKernel");
    if (call->start_ns != edges[i].found[0] ||
        call->start_ns + call->duration_ns != edges[i].found[1] || call->depth != edges[i].depth ||
        find_event(&all, "layer")->self_ns != edges[i].layer_self)
      fail_msg("%s: from %lu to %lu, depth %u, layer's self %lu", edges[i].what,
               (unsigned long)call->start_ns, (unsigned long)(call->start_ns + call->duration_ns),
               call->depth, (unsigned long)find_event(&all, "layer")->self_ns);
    assert_true(call->flags & PROF_EVENT_CALL);
    free(all.items);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* ---- a long recording ---- */

enum {
  ROUNDS = WITH_ASAN ? 1000 : 4000,
  DEPTH_MAX = 5,
  APART = 45,
  SHORTEST = 2 * APART + 10,
  CHUNKS = 160
};

typedef struct truth {
  uint64_t around; /* where the scope around it began; 0: none */
  uint32_t depth;
} truth;

typedef struct recording {
  capture c;
  prof_i_head *scopes, *calls;
  uint64_t now, seed, covered;
  truth *truths;
  size_t count;
  int off;
} recording;

static uint64_t draw(recording *r, uint64_t below) {
  r->seed = r->seed * 6364136223846793005u + 1442695040888963407u;
  return (r->seed >> 33) % below;
}

static prof_i_head *room_in(recording *r, prof_i_head *chunk, bool is_line) {
  if (chunk && chunk->cursor + 128 < chunk->limit) return chunk;
  return is_line ? line(&r->c, THREAD) : capture_chunk(&r->c, PROF_I_UNIT_BYTES, THREAD);
}

static void pass(recording *r, uint64_t least) { r->now += least + draw(r, 100); }

/* By how much the other clock is off now. Below 0 it comes round. */
static uint64_t drift(recording *r) {
  r->off += (int)draw(r, 3) - 1;
  if (r->off > APART || r->off < -APART) r->off = r->off < 0 ? -APART : APART;
  return (uint64_t)(int64_t)r->off;
}

static void call(recording *r, uint64_t around, uint32_t depth) {
  const uint64_t start = r->now, off = drift(r);
  const bool has_inner = draw(r, 2) == 0;
  r->calls = room_in(r, r->calls, true);
  r->truths[r->count++] = (truth){around, depth};
  pass(r, SHORTEST);
  if (has_inner) {
    put_call(r->calls, INNER, start + 20 + off, r->now + off);
    r->truths[r->count++] = (truth){0, depth + 1};
    r->now += 15;
  }
  put_call(r->calls, CALL, start + off, r->now + off);
}

static void scope(recording *r, uint32_t depth) {
  const uint64_t start = r->now;
  for (uint64_t parts = 1 + draw(r, 3); parts > 0; parts--) {
    r->now += 2 + draw(r, 20);
    if (draw(r, 2) && depth + 1 < DEPTH_MAX)
      scope(r, depth + 1);
    else if (draw(r, 3))
      call(r, start, depth + 1);
    else
      pass(r, SHORTEST);
  }
  r->now += draw(r, 20);
  if (r->now < start + SHORTEST) r->now = start + SHORTEST;
  r->scopes = room_in(r, r->scopes, false);
  put(r->scopes, depth ? LAYER : MODEL, start, r->now);
  if (depth == 0) r->covered += r->now - start;
}

static void make(recording *r, uint64_t seed) {
  *r = (recording){.seed = seed, .now = 1000, .truths = calloc(ROUNDS * 256, sizeof(truth))};
  assert_non_null(r->truths);
  begin(&r->c, (uint64_t)CHUNKS * 16 * PROF_I_UNIT_BYTES);
  for (int i = 0; i < ROUNDS; i++) {
    scope(r, 0);
    pass(r, 2);
    if (draw(r, 4) == 0) {
      const uint64_t before = r->now;
      call(r, 0, 0);
      r->covered += r->now - before;
    }
    pass(r, 2);
  }
}

static void each_stands_in_its_scope(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3; seed++) {
    recording r;
    uint64_t begins[DEPTH_MAX + 3] = {0}, self_ns = 0, wrong = 0;
    size_t met = 0;
    make(&r, seed);
    prof_trace *const trace = open_capture(&r.c);
    events all = read_events(trace);
    assert_int_equal(info_of(trace).thread_count, 1);
    for (size_t i = 0; i < all.count; i++) {
      const prof_event *const event = &all.items[i];
      assert_true(event->depth < DEPTH_MAX + 3);
      begins[event->depth] = event->start_ns;
      self_ns += event->self_ns;
      if (!(event->flags & PROF_EVENT_CALL)) continue;
      assert_true(met < r.count);
      const truth *const is = &r.truths[met++];
      wrong += event->depth != is->depth || (is->around && begins[event->depth - 1] != is->around);
    }
    assert_int_equal(met, r.count);
    assert_int_equal(wrong, 0);
    /* those in no scope keep what their clock is off */
    assert_true(self_ns >= r.covered - r.count * APART && self_ns <= r.covered + r.count * APART);
    free(all.items);
    free(r.truths);
    prof_trace_destroy(trace);
    capture_end(&r.c);
  }
}

/* Scopes and calls of a few ns, by a clock that is off by more than they take. No time is below 0,
   and nothing has more self time than it took. */
static void short_ones_keep_their_times(void **state) {
  (void)state;
  for (uint64_t seed = 1; seed <= 3000; seed++) {
    recording r = {.seed = seed, .now = 1000};
    begin(&r.c, 128 << 10);
    r.scopes = capture_chunk(&r.c, PROF_I_UNIT_BYTES, THREAD);
    r.calls = line(&r.c, THREAD);
    for (int i = 0; i < 8; i++) {
      const uint64_t start = r.now, off = draw(&r, 120) - 60;
      r.now += draw(&r, 60);
      if (draw(&r, 2))
        put(r.scopes, LAYER, start, r.now);
      else
        put_call(r.calls, CALL, start + off, r.now + off);
    }
    put(r.scopes, MODEL, 1000 + draw(&r, 3), r.now);
    prof_trace *const trace = open_capture(&r.c);
    events all = read_events(trace);
    assert_int_equal(all.count, 9);
    for (size_t i = 0; i < all.count; i++)
      if (all.items[i].duration_ns > 10000 || all.items[i].self_ns > all.items[i].duration_ns)
        fail_msg("seed %lu: %lu ns, of its own %lu", (unsigned long)seed,
                 (unsigned long)all.items[i].duration_ns, (unsigned long)all.items[i].self_ns);
    free(all.items);
    prof_trace_destroy(trace);
    capture_end(&r.c);
  }
}

/* ---- threads ---- */

static void a_thread_without_scopes_has_its_kernels_number(void **state) {
  (void)state;
  capture c;
  begin(&c, 64 << 10);
  put_call(line(&c, PROF_I_SERIAL_OF_KERNELS | KERNELS_TID), CALL, 100, 200);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).thread_count, 1);
  assert_int_equal(thread_of(trace, 0).tid, KERNELS_TID);
  assert_string_equal(thread_of(trace, 0).name, "calls");
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* What its line has lost is the thread's loss; the line's own end and slot say nothing of the
   thread's name. */
static void a_lines_losses_are_its_threads(void **state) {
  (void)state;
  capture c;
  begin(&c, 256 << 10);
  prof_i_head *const chunk = capture_chunk(&c, PROF_I_UNIT_BYTES, THREAD), *const calls =
                                                                               line(&c, THREAD);
  put(chunk, MODEL, 100, 400);
  put_call(calls, CALL, 150, 200);
  capture_exit(chunk, THREAD, "worker", PROF_LOSS_FULL, 3);
  capture_exit(calls, LINE, "calls", PROF_LOSS_FULL, 4);
  prof_i_thread_slot *const slot = capture_slot(&c, LINE, "calls");
  slot->tid = THREAD;
  slot->thread_kind = PROF_I_KIND_OF_CALLS;
  slot->lost[PROF_LOSS_FULL] = 5;
  slot->lost_before[PROF_LOSS_FULL] = 4;
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).thread_count, 1);
  const prof_trace_thread thread = thread_of(trace, 0);
  assert_string_equal(thread.name, "worker");
  assert_int_equal(thread.tid, 101);
  assert_int_equal(thread.lost_count[PROF_LOSS_FULL], 3 + 4 + 1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A damaged capture's scopes and calls may all end at once: in time that grows as they do. */
static void what_ends_at_once_ends_soon(void **state) {
  enum { PAIRS = 100000, ROOM = 24 << 20 };
  (void)state;
  recording r = {.seed = 7};
  begin(&r.c, ROOM);
  for (uint64_t i = 0; i < PAIRS; i++) {
    r.scopes = room_in(&r, r.scopes, false);
    r.calls = room_in(&r, r.calls, true);
    put(r.scopes, LAYER, 10000000 - i, 20000000);
    put_call(r.calls, CALL, 15000000, 20000000);
  }
  prof_trace *const trace = open_capture(&r.c);
  events all = read_events(trace); /* a minute, where each looks at all the others */
  assert_int_equal(all.count, 2 * PAIRS);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&r.c);
}

/* A damaged capture's calls may cross anything, any number of times. */
static void calls_without_sense_end_soon(void **state) {
  (void)state;
  recording r = {.seed = 7};
  begin(&r.c, (uint64_t)CHUNKS * 16 * PROF_I_UNIT_BYTES);
  uint64_t scopes = 0, calls = 0;
  for (; scopes < 20000; scopes++) {
    const uint64_t start = draw(&r, 100000);
    r.scopes = room_in(&r, r.scopes, false);
    put(r.scopes, LAYER, start, start + draw(&r, 50000));
  }
  for (; calls < 20000; calls++) {
    const uint64_t start = draw(&r, 100000);
    r.calls = room_in(&r, r.calls, true);
    put_call(r.calls, CALL, start, start + draw(&r, 50000));
  }
  prof_trace *const trace = open_capture(&r.c);
  events all = read_events(trace);
  assert_int_equal(all.count, scopes + calls);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&r.c);
}

/* ---- what other readers see ---- */

/* A layer launches two kernels by calls that begin a little before it and end a little behind it; a
   thread without scopes launches one. */
static void make_small(capture *c) {
  static const char *const names[] = {"launch thread", "launch ticks", "device start ns",
                                      "device end ns", "record kind"};
  static const uint32_t types[] = {PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64, PROF_ARG_U64,
                                   PROF_ARG_U64};
  prof_i_head *const meta = begin(c, 256 << 10);
  capture_header(c)->pid = 100;
  capture_site(meta, INNER + 1, "gemm", "kernel", 1);
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 5, types, names);
  prof_i_head *const chunk = capture_chunk(c, PROF_I_UNIT_BYTES, THREAD), *const calls =
                                                                              line(c, THREAD);
  put(chunk, LAYER, 2000, 3000);
  put(chunk, MODEL, 1000, 9000);
  put_call(calls, CALL, 1950, 2300);
  put_call(calls, INNER, 2100, 2200);
  put_call(calls, CALL, 2700, 3040);
  prof_i_head *const other = capture_extent(c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES),
                     *const stream = capture_extent(c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  other->sequence = ++c->sequence << 1;
  stream->sequence = ++c->sequence << 1;
  capture_owner_as(other, LINE + 1, PROF_I_SERIAL_OF_KERNELS | KERNELS_TID, PROF_I_KIND_OF_CALLS,
                   "library's own");
  capture_owner_as(stream, LINE + 2, 0x7000,
                   PROF_I_KIND_OF_STREAM | PROF_DEVICE_CUDA << PROF_I_THREAD_KIND_TYPE_SHIFT,
                   "stream 0x7000");
  put_call(other, CALL, 4000, 4500);
  const uint64_t launches[][2] = {
      {THREAD, 2150}, {THREAD, 2900}, {PROF_I_SERIAL_OF_KERNELS | KERNELS_TID, 4200}};
  for (uint64_t i = 0; i < sizeof launches / sizeof *launches; i++) {
    long_record r;
    const uint64_t start = 5000 + 1000 * i, words[] = {PROF_DEVICE_CUDA,
                                                       0x7000,
                                                       launches[i][0],
                                                       CAPTURE_START + launches[i][1],
                                                       start,
                                                       start + 500,
                                                       1};
    long_begin(&r, PROF_I_KIND_SCOPE, CAPTURE_START + start, 500, INNER + 1);
    r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM;
    r.schema = 1;
    for (size_t k = 0; k < sizeof words / sizeof *words; k++) long_word(&r, words[k]);
    long_end(&r, stream);
  }
}

typedef struct expected {
  const char *name;
  uint64_t count, total_ns, self_ns, device_total_ns, self_device_ns;
} expected;

static void what_a_call_launched_is_its_scopes(void **state) {
  static const expected all[] = {{"model", 1, 8000, 7000, 1000, 0},
                                 {"layer", 1, 1000, 400, 1000, 1000},
                                 {"cudaLaunchKernel", 3, 1100, 1000, 0, 0},
                                 {"cuLaunchKernel", 1, 100, 100, 0, 0},
                                 {"gemm", 0, 0, 0, 500, 500}};
  (void)state;
  capture c;
  make_small(&c);
  prof_trace *const trace = open_capture(&c);
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME, .rows_limit = UINT32_MAX};
  prof_rows *rows = NULL;
  assert_int_equal(info_of(trace).bad_count, 0);
  assert_int_equal(prof_trace_aggregate(trace, &options, &rows), PROF_OK);
  assert_int_equal(rows->row_count, sizeof all / sizeof *all);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *const row = &rows->rows[i];
    const expected *is = all;
    while (strcmp(is->name, row->name) != 0) is++;
    if (row->calls_count != is->count || row->total_ns != is->total_ns ||
        row->self_ns != is->self_ns || row->device_total_ns != is->device_total_ns ||
        row->self_device_ns != is->self_device_ns)
      fail_msg("%s: %lu times, total %lu, self %lu, device total %lu, self %lu", row->name,
               (unsigned long)row->calls_count, (unsigned long)row->total_ns,
               (unsigned long)row->self_ns, (unsigned long)row->device_total_ns,
               (unsigned long)row->self_device_ns);
  }
  prof_rows_destroy(rows);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static int write_small(const char *path) {
  capture c;
  make_small(&c);
  FILE *const file = fopen(path, "wb");
  const bool is_written = file && fwrite(c.bytes, 1, c.count, file) == c.count;
  const bool is_closed = file && fclose(file) == 0;
  capture_end(&c);
  return is_written && is_closed ? 0 : 1;
}

/* calls FILE: writes the small capture there, for tests of other readers. */
int main(int argc, char **argv) {
  if (argc > 1) return write_small(argv[1]);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(goes_to_the_nearer_side),
      cmocka_unit_test(each_stands_in_its_scope),
      cmocka_unit_test(short_ones_keep_their_times),
      cmocka_unit_test(a_thread_without_scopes_has_its_kernels_number),
      cmocka_unit_test(a_lines_losses_are_its_threads),
      cmocka_unit_test(what_ends_at_once_ends_soon),
      cmocka_unit_test(calls_without_sense_end_soon),
      cmocka_unit_test(what_a_call_launched_is_its_scopes)};
  return cmocka_run_group_tests_name("a vendor's calls among scopes", tests, NULL, NULL);
}
