/* The reader's main work: order, nesting, self times, whose records they are, what counts and what
   is lost. */
#include "reader/internal.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES };

static void a_scope_holds_what_ran_inside_of_it(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 4);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 20, 10, 3); /* c in b in a; then d in a */
  capture_plain(chunk, T0 + 15, 25, 2);
  capture_plain(chunk, T0 + 50, 30, 4);
  capture_plain(chunk, T0 + 10, 90, 1);
  capture_plain(chunk, T0 + 200, 5, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 5);
  const char *const names[] = {"a", "b", "c", "d", "a"};
  for (size_t i = 0; i < all.count; i++) assert_true(is_named(&all.items[i], names[i]));
  assert_event(&all.items[0], 10, 90, 90 - 25 - 30, 0);
  assert_event(&all.items[1], 15, 25, 15, 1);
  assert_event(&all.items[2], 20, 10, 10, 2);
  assert_event(&all.items[3], 50, 30, 30, 1);
  assert_event(&all.items[4], 200, 5, 5, 0);
  assert_int_equal(all.items[1].level, 2);
  assert_int_equal(all.items[0].category_bytes, 3);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void scopes_that_begin_or_end_together_still_nest(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 4);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 5, 3); /* begins with b, ends with a and b */
  capture_plain(chunk, T0 + 10, 5, 2);
  capture_plain(chunk, T0 + 10, 5, 1);
  capture_plain(chunk, T0 + 15, 0, 4); /* takes no time, begins where a ended */
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 4);
  assert_event(find_event(&all, "a"), 10, 5, 0, 0);
  assert_event(find_event(&all, "b"), 10, 5, 0, 1);
  assert_event(find_event(&all, "c"), 10, 5, 5, 2);
  assert_event(find_event(&all, "d"), 15, 0, 0, 0);
  assert_true(is_named(&all.items[0], "a") && is_named(&all.items[1], "b") &&
              is_named(&all.items[2], "c"));
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_parent_whose_record_is_in_a_later_chunk_is_found(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const first = capture_chunk(&c, CHUNK, 1);
  prof_i_head *const second = capture_chunk(&c, CHUNK, 1);
  second->sequence = 1 << 1; /* by sequence, not by place */
  first->sequence = 2 << 1;
  capture_plain(second, T0 + 100, 10, 2);
  capture_plain(second, T0 + 120, 10, 2);
  capture_plain(first, T0 + 140, 10, 2);
  capture_plain(first, T0 + 50, 200, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(info_of(trace).thread_count, 1);
  assert_event(&all.items[0], 50, 200, 170, 0);
  for (size_t i = 1; i < 4; i++) assert_event(&all.items[i], 80 + 20 * i, 10, 10, 1);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_chunk_taken_over_gives_each_thread_its_own(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1);
  capture_exit(chunk, 1, "gone", PROF_LOSS_NO_CHUNK, 7);
  capture_owner(chunk, 2, 102, "second");
  capture_plain(chunk, T0 + 30, 10, 2);
  capture_plain(chunk, T0 + 5, 40, 1);
  capture_header(&c)->unattributed[PROF_LOSS_NO_CHUNK] = 7;
  capture_slot(&c, 2, "second, renamed")->lost[PROF_LOSS_FULL] = 3;
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(info_of(trace).thread_count, 2);
  const prof_trace_thread exited = thread_of(trace, 0), second = thread_of(trace, 1);
  assert_string_equal(exited.name, "gone");
  assert_int_equal(exited.is_alive, 0);
  assert_int_equal(exited.is_main, 1);
  assert_int_equal(exited.tid, 101);
  assert_int_equal(exited.event_count, 1);
  assert_int_equal(exited.lost_count[PROF_LOSS_NO_CHUNK], 7);
  assert_string_equal(second.name, "second, renamed");
  assert_int_equal(second.is_alive, 1);
  assert_int_equal(second.event_count, 2);
  assert_int_equal(second.lost_count[PROF_LOSS_FULL], 3);
  /* EXIT's part of folded is not added twice */
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_NO_CHUNK], 7);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_FULL], 3);
  assert_int_equal(all.items[0].thread, 0);
  assert_event(&all.items[0], 10, 10, 10, 0); /* not inside of what the second thread did */
  assert_int_equal(all.items[1].thread, 1);
  assert_event(&all.items[1], 5, 40, 30, 0);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void what_ended_before_the_clear_is_counted_and_not_shown(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1); /* before */
  capture_plain(chunk, T0 + 20, 30, 1); /* ends at the clear */
  capture_plain(chunk, T0 + 40, 20, 2); /* spans it */
  capture_plain(chunk, T0 + 70, 10, 3);
  capture_header(&c)->clear_ticks = T0 + 50;
  capture_header(&c)->unattributed[PROF_LOSS_CLEARED] = 5;
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 2);
  assert_true(is_named(&all.items[0], "b") && is_named(&all.items[1], "c"));
  assert_int_equal(info_of(trace).event_count, 2);
  assert_int_equal(info_of(trace).scope_count, 2);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_CLEARED], 7);
  assert_int_equal(thread_of(trace, 0).lost_count[PROF_LOSS_CLEARED], 2);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void claims_that_were_never_finished_are_counted(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1);
  /* 16 bytes without a commit */
  capture_claim(chunk, 2);
  *capture_claim(chunk, 10) =
      5 << PROF_I_PENDING_SLOTS_SHIFT | 1 << 4; /* pending: one loss, five slots */
  capture_plain(chunk, T0 + 30, 10, 2);
  *capture_claim(chunk, 6) =
      3 << PROF_I_PENDING_SLOTS_SHIFT | 1 << 4 | 1ull << PROF_I_FILLER_BIT; /* given up: no loss */
  capture_plain(chunk, T0 + 50, 10, 2);
  capture_claim(chunk, 2); /* at the end: its process is dead, so it stays so */
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).scope_count, 3);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_UNFINISHED], 3);
  assert_int_equal(thread_of(trace, 0).lost_count[PROF_LOSS_UNFINISHED], 3);
  assert_int_equal(info_of(trace).bad_count, 0);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* An end that was under way: its scope is open, and its claim, with a mark or without, is no loss
   beside that. A claim of another length belongs to no scope of these. */
static void the_claim_of_a_scope_that_stands_open_is_no_loss(void **state) {
  (void)state;
  for (int has_mark = 0; has_mark < 2; has_mark++) {
    for (int is_other = 0; is_other < 2; is_other++) {
      capture c;
      long_record r;
      begin_with_sites(&c, 1 << 20, 2);
      prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
      prof_i_thread_slot *const slot = capture_slot(&c, 1, "main");
      long_begin(&r, PROF_I_KIND_SCOPE, T0 + 20, 0, 2);
      r.flags = PROF_I_FLAG_NAME;
      long_text(&r, "a name of three words, or so");
      capture_open(slot, T0 + 10, 1);
      capture_open_long(slot, &r);
      const uint64_t slots = (r.count + 1) / 2 + (uint64_t)is_other;
      uint64_t *const claim = capture_claim(chunk, slots * 2);
      if (has_mark) *claim = slots << PROF_I_PENDING_SLOTS_SHIFT | 1 << 4;
      prof_trace *const trace = open_capture(&c);
      assert_int_equal(info_of(trace).open_count, 2);
      assert_int_equal(info_of(trace).lost_count[PROF_LOSS_UNFINISHED], is_other);
      assert_int_equal(thread_of(trace, 0).lost_count[PROF_LOSS_UNFINISHED], is_other);
      prof_trace_destroy(trace);
      capture_end(&c);
    }
  }
}

/* The thread has ended, and its scopes are counted as lost: their entries still exist when the
   process dies. */
static void scopes_of_a_thread_that_is_ending_are_lost_or_open(void **state) {
  (void)state;
  for (uint64_t lost = 4; lost <= 6; lost++) {
    capture c;
    begin_with_sites(&c, 1 << 20, 2);
    prof_i_thread_slot *const slot = capture_slot(&c, 1, "main");
    capture_open(slot, T0 + 10, 1);
    slot->deep = 4;
    slot->deep_gone = 3;
    slot->ended_mark = 6;
    slot->lost[PROF_LOSS_THREAD_ENDED] = lost;
    capture_header(&c)->version = 1; /* where slots had no ledger, any value is possible */
    slot->ledger = UINT64_MAX;
    slot->ended_lost[1][PROF_LOSS_THREAD_ENDED] = 100;
    prof_trace *const trace = open_capture(&c);
    assert_int_equal(info_of(trace).open_count, lost < 6);
    assert_int_equal(info_of(trace).open_below_count, lost < 6);
    assert_int_equal(info_of(trace).lost_count[PROF_LOSS_THREAD_ENDED], lost);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

static void a_pending_record_at_the_end_of_its_chunk_is_one_loss(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  while (chunk->cursor + 16 <= chunk->bytes - 32) capture_plain(chunk, T0 + 10, 10, 1);
  *capture_claim(chunk, 2) =
      9 << PROF_I_PENDING_SLOTS_SHIFT | 1 << 4; /* claims more than there is */
  /* later claims did not fit */
  chunk->cursor = chunk->bytes + 400;
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).scope_count, (CHUNK - PROF_I_HEAD_BYTES - 7 * 16 - 32) / 16);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_UNFINISHED], 1);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void content_of_an_old_generation_is_no_record(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1);
  chunk->generation = 2; /* the chunk goes round: its contents are old */
  chunk->cursor = PROF_I_HEAD_BYTES;
  capture_owner(chunk, 1, 101, "thread 1");
  const uint64_t claimed = chunk->cursor;
  chunk->generation = 1;
  capture_plain(chunk, T0 + 20, 10, 1);
  chunk->generation = 2;
  capture_plain(chunk, T0 + 30, 10, 2);
  assert_int_equal(chunk->cursor, claimed + 32);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 1);
  assert_true(is_named(&all.items[0], "b"));
  /* claimed, and never written in this generation */
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_UNFINISHED], 1);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void chunks_being_made_anew_are_left_out(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1);
  chunk->sequence = 0;
  chunk->evicted[0][PROF_I_EVICTED_OVERWRITTEN] = 3;
  chunk->evicted[1][PROF_I_EVICTED_OVERWRITTEN] = 1000; /* the other pair does not count */
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).event_count, 0);
  assert_int_equal(info_of(trace).bad_count, 0);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_OVERWRITTEN], 3);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void what_a_ring_is_about_to_overwrite_is_gone(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const taken = capture_chunk(&c, CHUNK, 1);
  capture_plain(taken, T0 + 10, 10, 1);
  capture_plain(taken, T0 + 30, 10, 1);
  taken->state = PROF_I_CHUNK_TAKEN;
  capture_plain(capture_chunk(&c, CHUNK, 1), T0 + 50, 10, 2);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).scope_count, 1);
  assert_int_equal(info_of(trace).event_count, 1);
  assert_int_equal(thread_of(trace, 0).event_count, 1);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_OVERWRITTEN], 2);
  const events all = read_events(trace);
  assert_int_equal(all.count, 1);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A chunk, a slot where a chunk once was, and a slot's reserve. */
static void what_a_chunk_held_before_is_counted(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "worker");
  prof_i_head *const reserve = capture_reserve(&c, slot);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1);
  chunk->sequence |= 1;
  chunk->evicted[0][PROF_I_EVICTED_OVERWRITTEN] = 1000;
  chunk->evicted[1][PROF_I_EVICTED_OVERWRITTEN] = 1;
  chunk->evicted[1][PROF_I_EVICTED_CLEARED] = 10;
  slot->head.evicted[0][PROF_I_EVICTED_CLEARED] = 100;
  reserve->evicted[0][PROF_I_EVICTED_CLEARED] = 1000;
  slot->lost[PROF_LOSS_FULL] = 7;
  slot->lost_before[PROF_LOSS_FULL] = 4; /* another thread's */
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).scope_count, 1);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_OVERWRITTEN], 1);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_CLEARED], 1110);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_FULL], 7);
  assert_int_equal(thread_of(trace, 0).lost_count[PROF_LOSS_FULL], 3);
  assert_int_equal(info_of(trace).bad_count, 0);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void open_scopes_last_to_the_last_thing_known(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 4);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "worker");
  capture_open(slot, T0 + 10, 1);
  capture_open(slot, T0 + 60, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 20, 30, 3);
  capture_plain(chunk, T0 + 70, 10, 4);
  prof_i_head *const other = capture_chunk(&c, CHUNK, 2);
  capture_plain(other, T0 + 100, 400, 3); /* the last thing known */
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(info_of(trace).open_count, 2);
  assert_int_equal(info_of(trace).scope_count, 3);
  assert_int_equal(info_of(trace).event_count, 5);
  assert_int_equal(info_of(trace).duration_ns, 500);
  assert_event(find_event(&all, "a"), 10, 490, 490 - 30 - 440, 0);
  assert_event(find_event(&all, "b"), 60, 440, 430, 1);
  assert_int_equal(find_event(&all, "a")->kind, PROF_EVENT_OPEN);
  assert_event(find_event(&all, "d"), 70, 10, 10, 2);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void an_entry_whose_record_stands_is_not_shown_twice(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 4);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "worker");
  capture_open(slot, T0 + 10, 1);
  capture_open(slot, T0 + 60, 2); /* was killed between the commit and the clearing of its entry */
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 20, 30, 3);
  capture_plain(chunk, T0 + 60, 10, 3); /* same start, another site: not the same scope */
  capture_plain(chunk, T0 + 60, 20, 2);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).open_count, 1);
  assert_int_equal(info_of(trace).scope_count, 3);
  const events all = read_events(trace);
  assert_int_equal(find_event(&all, "b")->kind, PROF_EVENT_SCOPE);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void the_reserve_of_a_slot_holds_records_like_any_chunk(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "main");
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 30, 10, 3);
  prof_i_head *const reserve = capture_reserve(&c, slot);
  capture_owner(reserve, 1, 101, "main");
  capture_plain(reserve, T0 + 20, 30, 2);
  capture_plain(reserve, T0 + 10, 50, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 3);
  assert_event(&all.items[0], 10, 50, 20, 0);
  assert_event(&all.items[1], 20, 30, 20, 1);
  assert_event(&all.items[2], 30, 10, 10, 2);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_ring_shows_the_last_so_many_ns(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  for (uint64_t i = 0; i < 10; i++) capture_plain(chunk, T0 + i * 100, 50, 1);
  capture_header(&c)->policy = PROF_POLICY_RING;
  capture_header(&c)->ring_ns = 250; /* the last end is at 950 */
  capture_header(&c)->unattributed[PROF_LOSS_OVERWRITTEN] = 100;
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 3);
  assert_int_equal(all.items[0].start_ns, 700);
  assert_int_equal(info_of(trace).lost_count[PROF_LOSS_OVERWRITTEN], 107);
  assert_int_equal(info_of(trace).scope_count, 3);
  assert_int_equal(thread_of(trace, 0).event_count, 3);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* A handler recorded between its victim's clock and its victim's record. */
static void records_out_of_order_are_put_in_order(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 4);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 20, 60, 2); /* claimed first, read the clock last: holds the next two */
  capture_plain(chunk, T0 + 30, 10, 3);
  capture_plain(chunk, T0 + 50, 10, 4);
  capture_plain(chunk, T0 + 10, 90, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_event(find_event(&all, "a"), 10, 90, 30, 0);
  assert_event(find_event(&all, "b"), 20, 60, 40, 1);
  assert_event(find_event(&all, "c"), 30, 10, 10, 2);
  assert_event(find_event(&all, "d"), 50, 10, 10, 2);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static int count_lanes(void *user, const prof_i_span *spans, size_t count) {
  uint32_t *const lanes = user;
  for (size_t i = 0; i < count; i++) lanes[spans[i].lane]++;
  return 0;
}

static void what_overlaps_without_nesting_gets_a_lane_of_its_own(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 4);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 20, 1);
  capture_plain(chunk, T0 + 20, 20, 2); /* begun in a, ended after it */
  capture_plain(chunk, T0 + 25, 20, 3); /* and this in b */
  capture_plain(chunk, T0 + 5, 100, 4); /* holds them all */
  prof_trace *const trace = open_capture(&c);
  uint32_t lanes[PROF_I_LANES_MAX + 1] = {0};
  assert_int_equal(prof_i_trace_walk(trace, 0, count_lanes, lanes), 0);
  assert_int_equal(lanes[0], 2);
  assert_int_equal(lanes[1], 1);
  assert_int_equal(lanes[2], 1);
  const events all = read_events(trace);
  assert_int_equal(all.count, 4);
  for (size_t i = 1; i < 4; i++) assert_true(all.items[i].start_ns >= all.items[i - 1].start_ns);
  /* Each moment belongs to the one that began last, so self times come to d's duration. */
  assert_event(find_event(&all, "d"), 5, 100, 65, 0);
  assert_event(find_event(&all, "a"), 10, 20, 10, 0);
  const prof_event *const b = find_event(&all, "b"), *const c_event = find_event(&all, "c");
  assert_int_equal(b->self_ns, 5);
  assert_int_equal(c_event->self_ns, 20);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void more_overlaps_than_lanes_are_still_all_handed_out(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 1);
  prof_i_head *const chunk = capture_chunk(&c, 4 * CHUNK, 1);
  enum { OVERLAPS = PROF_I_LANES_MAX + 50 };
  for (uint64_t i = 0; i < OVERLAPS; i++) capture_plain(chunk, T0 + i, 2 * OVERLAPS, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, OVERLAPS);
  uint32_t lanes[PROF_I_LANES_MAX + 1] = {0};
  assert_int_equal(prof_i_trace_walk(trace, 0, count_lanes, lanes), 0);
  for (uint32_t i = 0; i < PROF_I_LANES_MAX; i++) assert_int_equal(lanes[i], 1);
  assert_int_equal(lanes[PROF_I_LANES_MAX], OVERLAPS - PROF_I_LANES_MAX);
  for (size_t i = 1; i < all.count; i++)
    assert_true(all.items[i].start_ns >= all.items[i - 1].start_ns);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_scope_begun_elsewhere_is_no_child_of_what_runs_here(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 2);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 20, 30, 2);
  r.flags = PROF_I_FLAG_OTHER_THREAD;
  long_end(&r, chunk);
  capture_plain(chunk, T0 + 10, 90, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_event(find_event(&all, "a"), 10, 90, 90, 0);
  assert_event(find_event(&all, "b"), 20, 30, 0, 0); /* nor is its time this thread's */
  assert_int_equal(find_event(&all, "b")->flags, PROF_EVENT_OTHER_THREAD);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* What runs beside it on its thread is no child of it, and does not enclose it. */
static void an_asynchronous_scope_holds_nothing_and_takes_no_time(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 3);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  capture_plain(chunk, T0 + 30, 10, 3);
  long_begin(&r, PROF_I_KIND_ASYNC, T0 + 20, 40, 2);
  long_end(&r, chunk);
  capture_plain(chunk, T0 + 10, 90, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_event(find_event(&all, "a"), 10, 90, 80, 0);
  assert_event(find_event(&all, "b"), 20, 40, 0, 0);
  assert_event(find_event(&all, "c"), 30, 10, 10, 1);
  assert_int_equal(find_event(&all, "b")->flags, PROF_EVENT_ASYNC);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void put_step(prof_i_head *chunk, uint64_t ticks, uint64_t number) {
  long_record r;
  long_begin(&r, PROF_I_KIND_STEP, ticks, 0, 0);
  long_word(&r, number);
  long_end(&r, chunk);
}

static void a_step_lasts_from_the_one_before(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  capture_session(meta, T0 + 5, 2, 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 10, 10, 1);
  put_step(chunk, T0 + 30, 0);
  capture_plain(chunk, T0 + 40, 10, 2);
  put_step(chunk, T0 + 60, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 4);
  const uint32_t kinds[] = {PROF_EVENT_STEP, PROF_EVENT_SCOPE, PROF_EVENT_STEP, PROF_EVENT_SCOPE};
  for (size_t i = 0; i < 4; i++) assert_int_equal(all.items[i].kind, kinds[i]);
  assert_event(&all.items[0], 5, 25, 25, 0);
  assert_int_equal(all.items[0].id, 0);
  assert_event(&all.items[1], 10, 10, 10, 1);
  assert_event(&all.items[2], 30, 30, 30, 0);
  assert_int_equal(all.items[2].id, 1);
  assert_int_equal(info_of(trace).scope_count, 2);
  assert_int_equal(info_of(trace).level, 2);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void a_scope_has_held_what_a_step_inside_of_it_held(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  capture_session(meta, T0 + 20, 2, 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, T0 + 30, 10, 2);
  put_step(chunk, T0 + 50, 0);
  capture_plain(chunk, T0 + 10, 90, 1);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 3);
  assert_event(&all.items[0], 10, 90, 80, 0);
  assert_event(&all.items[1], 20, 30, 30, 1);
  assert_event(&all.items[2], 30, 10, 10, 2);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- a random thread against what is known of it ---- */

typedef struct known {
  uint64_t start, duration, self;
  uint32_t depth;
} known;

typedef struct generator {
  uint32_t seed;
  uint64_t clock;
  capture *c;
  prof_i_head *chunk;
  known *all; /* in the order of starts */
  size_t count, room;
} generator;

static uint32_t next_random(generator *g, uint32_t bound) {
  g->seed = g->seed * 1664525 + 1013904223;
  return (g->seed >> 8) % bound;
}

/* Opens and closes scopes at random; what is open stands on a stack of places in `all`. */
static void generate(generator *g, size_t scopes, uint32_t swaps_in_1000) {
  size_t stack[64], depth = 0;
  g->all = malloc(scopes * sizeof *g->all);
  assert_non_null(g->all);
  while (g->count < scopes || depth) {
    g->clock += next_random(g, 3);
    if (g->count < scopes && depth < 60 && next_random(g, 100) < 50) {
      g->all[g->count] = (known){g->clock, 0, 0, (uint32_t)depth};
      stack[depth++] = g->count++;
      g->clock += 1;
      continue;
    }
    if (!depth) continue;
    known *const k = &g->all[stack[--depth]];
    k->duration = ++g->clock - k->start;
    k->self += k->duration;
    if (depth) g->all[stack[depth - 1]].self -= k->duration;
    if (g->chunk->cursor + 64 > g->chunk->bytes) g->chunk = capture_chunk(g->c, CHUNK, 1);
    capture_plain(g->chunk, k->start, k->duration, 1);
    uint64_t *const last = (uint64_t *)((unsigned char *)g->chunk + g->chunk->cursor) - 2;
    /* as if a handler had come between */
    if (next_random(g, 1000) < swaps_in_1000 && g->chunk->cursor > 400) {
      for (int w = 0; w < 2; w++) {
        const uint64_t word = last[w];
        last[w] = last[w - 2];
        last[w - 2] = word;
      }
    }
  }
}

static void check_random(uint32_t seed, size_t scopes, uint32_t swaps_in_1000) {
  capture c;
  begin_with_sites(&c, (1 << 20) + scopes * 24, 1);
  generator g = {.seed = seed, .clock = T0, .c = &c, .chunk = capture_chunk(&c, CHUNK, 1)};
  generate(&g, scopes, swaps_in_1000);
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, scopes);
  for (size_t i = 0; i < scopes; i++) {
    const known *const k = &g.all[i];
    if (all.items[i].start_ns != k->start - T0 || all.items[i].duration_ns != k->duration ||
        all.items[i].self_ns != k->self || all.items[i].depth != k->depth)
      fail_msg(
          "seed %u, scope %zu: start %llu of %llu, duration %llu of %llu, self %llu of %llu, depth "
          "%u of %u",
          seed, i, (unsigned long long)all.items[i].start_ns, (unsigned long long)(k->start - T0),
          (unsigned long long)all.items[i].duration_ns, (unsigned long long)k->duration,
          (unsigned long long)all.items[i].self_ns, (unsigned long long)k->self, all.items[i].depth,
          k->depth);
  }
  free(all.items);
  free(g.all);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void random_threads_come_out_as_they_were_made(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 40; seed++) check_random(seed, 1 + seed * seed * 3, 0);
  check_random(77, 60000, 0); /* several stretches of the cursor */
}

static void random_threads_with_swapped_records_too(void **state) {
  (void)state;
  for (uint32_t seed = 1; seed <= 40; seed++) check_random(seed, 1 + seed * seed * 3, 20);
  check_random(78, 60000, 2);
}

static int stop_at_once(void *user, const prof_i_span *spans, size_t count) {
  (void)spans, (void)count;
  ++*(int *)user;
  return 42;
}

static void a_visitor_that_says_stop_is_not_called_again(void **state) {
  (void)state;
  capture c;
  begin_with_sites(&c, 1 << 20, 1);
  prof_i_head *const chunk = capture_chunk(&c, 4 * CHUNK, 1);
  for (uint64_t i = 0; i < 3000; i++) capture_plain(chunk, T0 + i * 10, 5, 1);
  prof_trace *const trace = open_capture(&c);
  int calls = 0;
  assert_int_equal(prof_i_trace_walk(trace, 0, stop_at_once, &calls), 42);
  assert_int_equal(calls, 1);
  /* no such thread: nothing to walk */
  assert_int_equal(prof_i_trace_walk(trace, 99, stop_at_once, &calls), 0);
  prof_trace_destroy(trace);
  capture_end(&c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_scope_holds_what_ran_inside_of_it),
      cmocka_unit_test(scopes_that_begin_or_end_together_still_nest),
      cmocka_unit_test(a_parent_whose_record_is_in_a_later_chunk_is_found),
      cmocka_unit_test(a_chunk_taken_over_gives_each_thread_its_own),
      cmocka_unit_test(what_ended_before_the_clear_is_counted_and_not_shown),
      cmocka_unit_test(claims_that_were_never_finished_are_counted),
      cmocka_unit_test(the_claim_of_a_scope_that_stands_open_is_no_loss),
      cmocka_unit_test(scopes_of_a_thread_that_is_ending_are_lost_or_open),
      cmocka_unit_test(a_pending_record_at_the_end_of_its_chunk_is_one_loss),
      cmocka_unit_test(content_of_an_old_generation_is_no_record),
      cmocka_unit_test(chunks_being_made_anew_are_left_out),
      cmocka_unit_test(what_a_chunk_held_before_is_counted),
      cmocka_unit_test(what_a_ring_is_about_to_overwrite_is_gone),
      cmocka_unit_test(open_scopes_last_to_the_last_thing_known),
      cmocka_unit_test(an_entry_whose_record_stands_is_not_shown_twice),
      cmocka_unit_test(the_reserve_of_a_slot_holds_records_like_any_chunk),
      cmocka_unit_test(a_ring_shows_the_last_so_many_ns),
      cmocka_unit_test(records_out_of_order_are_put_in_order),
      cmocka_unit_test(what_overlaps_without_nesting_gets_a_lane_of_its_own),
      cmocka_unit_test(more_overlaps_than_lanes_are_still_all_handed_out),
      cmocka_unit_test(a_scope_begun_elsewhere_is_no_child_of_what_runs_here),
      cmocka_unit_test(an_asynchronous_scope_holds_nothing_and_takes_no_time),
      cmocka_unit_test(a_step_lasts_from_the_one_before),
      cmocka_unit_test(a_scope_has_held_what_a_step_inside_of_it_held),
      cmocka_unit_test(random_threads_come_out_as_they_were_made),
      cmocka_unit_test(random_threads_with_swapped_records_too),
      cmocka_unit_test(a_visitor_that_says_stop_is_not_called_again),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
