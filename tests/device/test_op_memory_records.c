/* An operator's workspace by the records of a back end that says what a test wants: how pieces are
   added up, and why that is not possible. */
#define _GNU_SOURCE
#include <prof/backend.h>
#include <prof/device.h>
#include <stdbool.h>
#include <stdio.h>

#include "workspace.h"

#include "alone.h"

static void begin(void) {}

enum { SCRIPTED_TYPE = 14, SCRIPTED_MAX = 8 };

static struct {
  const prof_backend_host *host;
  prof_backend_memory records[SCRIPTED_MAX];
  size_t count, bytes; /* bytes: of the last record, if not its own */
  uint32_t repeats;    /* all of them so often */
  uint32_t can;
  int result;
  uint64_t loses;
  int starts, stops;
} script;

static int scripted_probe(const prof_backend_host *host) {
  return (script.host = host) ? PROF_BACKEND_OK : PROF_BACKEND_ABSENT;
}

static int scripted_open(const prof_backend_host *host, prof_backend_self **self_out) {
  (void)host;
  *self_out = (prof_backend_self *)&script;
  return PROF_BACKEND_OK;
}

static int scripted_create(prof_backend_self *self, uint64_t stream, void **event_out) {
  return (void)self, (void)stream, (void)event_out, PROF_BACKEND_UNSUPPORTED;
}

static int scripted_record(prof_backend_self *self, uint64_t stream, void **event) {
  return (void)self, (void)stream, (void)event, PROF_BACKEND_UNSUPPORTED;
}

static int scripted_query(prof_backend_self *self, void *event) {
  return (void)self, (void)event, PROF_BACKEND_UNSUPPORTED;
}

static void scripted_destroy(prof_backend_self *self, void *event) { (void)self, (void)event; }

static int scripted_time(prof_backend_self *self, void *event, uint64_t *ns_out) {
  return (void)self, (void)event, (void)ns_out, PROF_BACKEND_UNSUPPORTED;
}

static int scripted_start(prof_backend_self *self, uint32_t kinds, uint32_t *kinds_out) {
  (void)self;
  script.starts++;
  assert_int_equal(kinds, 1u << PROF_BACKEND_MEMORY);
  *kinds_out = script.can;
  return script.result;
}

static int scripted_stop(prof_backend_self *self) {
  (void)self;
  script.stops++;
  return PROF_BACKEND_OK;
}

/* Each record comes after the stop. */
static int scripted_drain(prof_backend_self *self, uint32_t how, uint64_t *lost_out) {
  (void)self, (void)how;
  if (!script.stops) return PROF_BACKEND_NOT_READY;
  *lost_out = script.loses;
  for (uint32_t i = 0; i < script.repeats; i++)
    for (size_t j = 0; j < script.count; j++) {
      prof_backend_memory *const it = &script.records[j];
      it->record.size = sizeof *it;
      if (j + 1 == script.count && script.bytes) it->record.size = (uint16_t)script.bytes;
      script.host->emit(it, script.bytes && j + 1 == script.count ? script.bytes : sizeof *it);
    }
  return PROF_BACKEND_OK;
}

static const prof_backend scripted = {.size = sizeof scripted,
                                      .major = PROF_BACKEND_MAJOR,
                                      .minor = PROF_BACKEND_MINOR,
                                      .device_type = SCRIPTED_TYPE,
                                      .name = "scripted",
                                      .version = "1",
                                      .probe = scripted_probe,
                                      .open = scripted_open,
                                      .event_create = scripted_create,
                                      .event_record = scripted_record,
                                      .event_query = scripted_query,
                                      .event_destroy = scripted_destroy,
                                      .event_time = scripted_time,
                                      .start = scripted_start,
                                      .stop = scripted_stop,
                                      .drain = scripted_drain,
                                      .records_memory = 1};

static prof_backend_memory piece(uint64_t ns, uint64_t address, uint64_t bytes) {
  return (prof_backend_memory){.record = {.kind = PROF_BACKEND_MEMORY, .start = ns, .end = ns},
                               .address = address,
                               .bytes = bytes};
}

static prof_backend_memory release(uint64_t ns, uint64_t address) {
  prof_backend_memory it = piece(ns, address, 0);
  it.is_release = 1;
  return it;
}

static void begin_script(void) {
  memset(&script, 0, sizeof script);
  script.repeats = 1;
  script.can = 1u << PROF_BACKEND_MEMORY;
  assert_int_equal(prof_backend_add(&scripted), PROF_OK);
}

static void put(prof_backend_memory it) { script.records[script.count++] = it; }

static int count_runs(void *user) {
  (void)user;
  return 0;
}

static prof_op_info measure_script(void) {
  prof_op_result *result = NULL;
  const prof_op op = {
      .size = sizeof op, .key = "scripted", .run = count_runs, .device = {SCRIPTED_TYPE, 0}};
  script.starts = script.stops = 0;
  if (prof_op_profile(&op, &wanted_workspace, &result) != PROF_OK)
    fail_msg("%s", prof_last_error());
  const prof_op_info info = info_of(result);
  prof_op_result_destroy(result);
  assert_int_equal(script.starts, 1);
  return info;
}

/* Told in whatever order they are added up by their times; of one moment, as they were told. */
static void pieces_are_added_up_by_their_times(void **state) {
  (void)state;
  begin_script();
  put(release(30, 0x1000));
  put(piece(40, 0x3000, 500));
  put(piece(20, 0x2000, 200)); /* with the first one: 300 */
  put(piece(10, 0x1000, 100));
  put(release(50, 0x2000));
  put(release(50, 0x3000));
  put(piece(50, 0x3000, 650));
  const prof_op_info info = measure_script();
  assert_int_equal(info.workspace_bytes, 700);
  assert_int_equal(info.workspace_source, PROF_OP_WORKSPACE_VENDOR);
  assert_int_equal(script.stops, 1);
}

static void what_is_no_piece_makes_it_unknown_or_is_left_out(void **state) {
  (void)state;
  begin_script();
  put(piece(10, 0x1000, 100));
  put(piece(20, 0x2000, 5000));
  script.records[1].record.kind = PROF_BACKEND_KERNEL; /* nobody asked for it */
  put(piece(30, 0x5000, 0));
  prof_op_info info = measure_script();
  assert_int_equal(info.workspace_bytes, 100);
  script.records[0].record.flags = PROF_BACKEND_NO_TIMES;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: 1 of the records of memory were lost");
  script.records[0].record.flags = 0;
  script.records[2] = piece(30, 0x5000, UINT64_MAX - 0x4000);
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "were lost");
  script.records[2] = piece(30, 0x5000, 5);
  script.bytes = sizeof(prof_backend_record) + 8; /* cut short */
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "were lost");
  script.bytes = 8;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "were lost");
  script.bytes = 0;
  script.loses = 7;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: 7 of");
}

static void more_pieces_than_there_is_room_for_are_not_added_up(void **state) {
  enum { ROOM = 1 << 16 };
  (void)state;
  begin_script();
  put(piece(10, 0x1000, 100));
  script.repeats = ROOM;
  prof_op_info info = measure_script();
  assert_int_equal(info.workspace_bytes, 100);
  script.repeats = ROOM + 1;
  info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: 1 of");
}

static void why_a_back_end_does_not_tell_is_said(void **state) {
  static const struct {
    int result;
    int32_t status;
  } cases[] = {{PROF_BACKEND_BUSY, PROF_E_BUSY},
               {PROF_BACKEND_PERMISSION, PROF_E_PERMISSION},
               {PROF_BACKEND_NO_MEMORY, PROF_E_NO_MEMORY},
               {PROF_BACKEND_VENDOR, PROF_E_UNSUPPORTED}};
  (void)state;
  begin_script();
  put(piece(10, 0x1000, 100));
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    script.result = cases[i].result;
    const prof_op_info info = measure_script();
    is_unknown(&info, cases[i].status, prof_backend_result_text(cases[i].result));
    assert_int_equal(script.stops, 0);
  }
  script.result = PROF_BACKEND_OK;
  script.can = 1u << PROF_BACKEND_KERNEL;
  prof_op_info info = measure_script();
  is_unknown(&info, PROF_E_UNSUPPORTED, "scripted: it does not record what its library hands out");
  assert_int_equal(script.stops, 1); /* what was begun is ended */
  script.can = 1u << PROF_BACKEND_MEMORY;
  info = measure_script();
  assert_int_equal(info.workspace_bytes, 100);
}

#define TESTS(X)                                         \
  X(pieces_are_added_up_by_their_times)                  \
  X(what_is_no_piece_makes_it_unknown_or_is_left_out)    \
  X(more_pieces_than_there_is_room_for_are_not_added_up) \
  X(why_a_back_end_does_not_tell_is_said)
ALONE_TESTS

int main(int argc, char **argv) { return alone_main(argc, argv); }
