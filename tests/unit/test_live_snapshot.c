/* A reader copies a ring while a thread goes on in it: the copy has no hole. The reader queries the
   size again and again while it reads chunks. Each time, from some query on and up to another, the
   thread goes on by half a chunk. Every run is the same, and all of them together have the thread
   at every place. */
#define _GNU_SOURCE
#include "../../src/live/live.h"
#include "../../src/reader/capture.h"
#include "trace_checks.h"

enum {
  /* the names and all its chunks fit in, and little more: it is filled anew thousands of times */
  ROOM = 192 << 10,
  CHUNKS = 6,  /* of the ring, when it has grown */
  SCOPES = 10, /* in each */
  STEP = 10,   /* ticks from a scope to the next one */
  QUESTIONS = 40,
  ROUNDS = 3 /* of the ring before it is looked at */
};

static struct {
  capture c;
  prof_i_head *chunks[CHUNKS];
  int made;                 /* of them */
  uint64_t halves;          /* what the thread has done */
  uint64_t questions;       /* of the reader's */
  uint64_t from, to;        /* it goes on at these */
  prof_i_thread_slot *slot; /* NULL, or a scope is open there, and ends when it goes on */
} own;

/* ---- the thread ---- */

static uint64_t scopes_gone(const prof_i_head *chunk) {
  return chunk->evicted[chunk->sequence & 1][PROF_I_EVICTED_OVERWRITTEN];
}

/* As the recorder does it: what it holds is given up, then it is made ready. It has no number in
   between. */
static void give_up(prof_i_head *chunk) {
  const uint64_t next = (chunk->sequence & 1) ^ 1;
  chunk->evicted[next][PROF_I_EVICTED_OVERWRITTEN] = scopes_gone(chunk) + SCOPES;
  chunk->sequence = next;
  chunk->generation = chunk->generation % PROF_I_GENERATION_MASK + 1;
  chunk->cursor = PROF_I_HEAD_BYTES;
  chunk->state = PROF_I_CHUNK_OWNED;
}

static prof_i_head *oldest(void) { return own.chunks[own.halves / 2 % CHUNKS]; }

static void make_ready(void) {
  if (own.made == CHUNKS) {
    give_up(oldest());
    return;
  }
  own.chunks[own.made] = capture_extent(&own.c, PROF_I_EXTENT_CHUNK, PROF_I_UNIT_BYTES);
  own.made++;
}

static void fill(prof_i_head *chunk, uint64_t first_scope) {
  chunk->sequence |= ++own.c.sequence << 1;
  capture_owner(chunk, 1, 101, "writer");
  for (uint64_t i = 0; i < SCOPES; i++)
    capture_plain(chunk, CAPTURE_START + 1 + (first_scope + i) * STEP, 5, 1);
  chunk->state = PROF_I_CHUNK_RETIRED;
}

static void go_on(void) {
  if (own.slot) own.slot->open[1].ticks = own.slot->depth = 0;
  if (own.halves % 2 == 0)
    make_ready();
  else
    fill(oldest(), own.halves / 2 * SCOPES);
  own.halves++;
}

/* It has done that many halves when the reader comes. */
static void begin(uint64_t halves) {
  memset(&own, 0, sizeof own);
  capture_begin(&own.c, ROOM);
  capture_header(&own.c)->policy = PROF_POLICY_RING;
  prof_i_head *const meta = capture_meta(&own.c);
  capture_session(meta, CAPTURE_START, 1, 1);
  capture_site(meta, 1, "scope", "test", 1);
  while (own.halves < halves) go_on();
}

static uint64_t scopes_ended(void) { return own.halves / 2 * SCOPES; }

static uint64_t scopes_given_up(void) {
  const uint64_t chunks_taken = (own.halves + 1) / 2;
  return chunks_taken > CHUNKS ? (chunks_taken - CHUNKS) * SCOPES : 0;
}

/* ---- the reader ---- */

static uint64_t live_bytes_now(const prof_i_live_source *live) {
  (void)live;
  own.questions++;
  /* from now on it queries whatever lies behind */
  if (own.questions == 1) return PROF_I_FIRST_UNIT_OFFSET;
  if (own.questions >= own.from && own.questions < own.to) go_on();
  return own.c.count;
}

static prof_trace *read_snapshot(void) {
  prof_i_source source;
  prof_trace *trace = NULL;
  assert_int_equal(prof_i_source_snapshot(&source,
                                          &(prof_i_live_source){.bytes = own.c.bytes,
                                                                .room = own.c.room,
                                                                .live_bytes_now = live_bytes_now},
                                          false),
                   PROF_OK);
  assert_int_equal(prof_i_trace_make(&source, &trace), PROF_OK);
  return trace;
}

/* All that had ended before, and is not overwritten; nothing in between is missing; and what is not
   there is counted. */
static void check(const prof_trace *trace, uint64_t ended_before) {
  const prof_trace_info info = info_of(trace);
  const events all = read_events(trace);
  assert_int_equal(info.bad_count, 0);
  for (size_t i = 1; i < all.count; i++)
    if (all.items[i].start_ns != all.items[i - 1].start_ns + STEP)
      fail_msg("from question %llu to %llu: scope %llu comes after scope %llu",
               (unsigned long long)own.from, (unsigned long long)own.to,
               (unsigned long long)all.items[i].start_ns / STEP,
               (unsigned long long)all.items[i - 1].start_ns / STEP);
  if (own.from >= own.to) { /* undisturbed */
    assert_int_equal(info.lost_count[PROF_LOSS_OVERWRITTEN], scopes_given_up());
    assert_int_equal(all.count, scopes_ended() - scopes_given_up());
  }
  const uint64_t seen = info.scope_count + info.lost_count[PROF_LOSS_OVERWRITTEN];
  if (seen < ended_before || seen > scopes_ended())
    fail_msg(
        "from question %llu to %llu: %llu recorded or overwritten; %llu had ended before, %llu "
        "after",
        (unsigned long long)own.from, (unsigned long long)own.to, (unsigned long long)seen,
        (unsigned long long)ended_before, (unsigned long long)scopes_ended());
  free(all.items);
}

/* How many questions there were. */
static uint64_t read_while_it_goes_on(uint64_t halves, uint64_t from, uint64_t to) {
  begin(halves);
  own.from = from;
  own.to = to;
  const uint64_t ended_before = scopes_ended();
  prof_trace *const trace = read_snapshot();
  check(trace, ended_before);
  prof_trace_destroy(trace);
  capture_end(&own.c);
  return own.questions;
}

/* In CI it goes on for 0, 1, 2, 4, 7, ... questions, with PROF_LONG=1 for any number of them. */
static void read_at_every_place(uint64_t halves) {
  const bool is_every_span = getenv("PROF_LONG") != NULL;
  for (uint64_t from = 2; from < QUESTIONS; from++)
    for (uint64_t span = 0, next = 1; from + span <= QUESTIONS;
         span = is_every_span ? span + 1 : next, next += next / 2 + 1)
      read_while_it_goes_on(halves, from, from + span);
}

static void a_ring_that_goes_round_has_no_hole(void **state) {
  (void)state;
  /* the reader queries while it reads */
  assert_true(read_while_it_goes_on(2 * CHUNKS * ROUNDS, 0, 0) > (uint64_t)(2 * CHUNKS));
  for (uint64_t more = 0; more < 2 * CHUNKS; more++)
    read_at_every_place(2 * CHUNKS * ROUNDS + more);
}

/* What it had at first is not all of it. */
static void a_ring_that_grows_and_goes_round_meanwhile_has_no_hole(void **state) {
  (void)state;
  for (uint64_t halves = 0; halves < 2 * CHUNKS; halves++) read_at_every_place(halves);
}

/* ---- open scopes ---- */

/* A scope is open when the reader comes, and ends as soon as the thread goes on. Its record is not
   in the copy: it is overwritten. So it may be shown as open only beside what had ended before it
   began. */
typedef struct open_sight {
  bool is_open, is_later;
} open_sight;

static open_sight look_at_open(uint64_t from, uint64_t to) {
  begin((uint64_t)2 * CHUNKS * ROUNDS);
  own.from = from;
  own.to = to;
  const uint64_t begun = CAPTURE_START + scopes_ended() * STEP; /* before the next one */
  prof_i_thread_slot *const slot = capture_slot(&own.c, 1, "writer");
  capture_open(slot, begun, 1);
  own.slot = slot;
  prof_trace *const trace = read_snapshot();
  const events all = read_events(trace);
  open_sight sight = {false, false};
  for (size_t i = 0; i < all.count; i++) {
    sight.is_open |= all.items[i].kind == PROF_EVENT_OPEN;
    sight.is_later |=
        all.items[i].kind == PROF_EVENT_SCOPE && all.items[i].start_ns > begun - CAPTURE_START;
  }
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&own.c);
  return sight;
}

static void what_ended_and_is_overwritten_is_not_shown_as_open(void **state) {
  unsigned later = 0;
  (void)state;
  for (uint64_t from = 2; from < QUESTIONS; from++)
    for (uint64_t span = 1; from + span <= QUESTIONS; span++) {
      const open_sight sight = look_at_open(from, from + span);
      later += sight.is_later;
      if (sight.is_open && sight.is_later)
        fail_msg("from question %llu to %llu: a scope stands open that had ended",
                 (unsigned long long)own.from, (unsigned long long)own.to);
    }
  assert_true(later > 0);
  assert_true(look_at_open(UINT64_MAX, UINT64_MAX).is_open); /* the thread stands still */
}

/* ---- what is being taken ---- */

/* A chunk that is being taken when it is copied is left out, and so is what is older: no hole is
   left before what comes behind it. */
static void what_is_older_goes_with_a_chunk_that_is_being_taken(void **state) {
  (void)state;
  begin(2 * 4);
  /* the first is about to be written again: it was copied before */
  own.chunks[1]->state = PROF_I_CHUNK_TAKEN;
  prof_trace *const trace = read_snapshot();
  const prof_trace_info info = info_of(trace);
  prof_trace_destroy(trace);
  capture_end(&own.c);
  assert_int_equal(info.bad_count, 0);
  assert_int_equal(info.scope_count, 2 * SCOPES);
  assert_int_equal(info.lost_count[PROF_LOSS_OVERWRITTEN], 2 * SCOPES);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_ring_that_goes_round_has_no_hole),
      cmocka_unit_test(a_ring_that_grows_and_goes_round_meanwhile_has_no_hole),
      cmocka_unit_test(what_ended_and_is_overwritten_is_not_shown_as_open),
      cmocka_unit_test(what_is_older_goes_with_a_chunk_that_is_being_taken),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
