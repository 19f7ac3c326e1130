/* Long records: every flag, every kind, every type of argument, and printf formats that are not to
   be believed. */
#define _GNU_SOURCE
#include <locale.h>
#include <math.h>

#include "reader/internal.h"
#include "trace_checks.h"

enum { T0 = CAPTURE_START, CHUNK = PROF_I_UNIT_BYTES };

static void assert_text(const char *data, uint64_t bytes, const char *expected) {
  if (bytes != strlen(expected) || memcmp(data, expected, (size_t)bytes) != 0)
    fail_msg("\"%.*s\" is not \"%s\"", (int)bytes, data, expected);
}

static void every_part_of_a_scope_comes_back(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  const uint32_t types[] = {PROF_ARG_I64,    PROF_ARG_U64,     PROF_ARG_F64,   PROF_ARG_BOOL,
                            PROF_ARG_STRING, PROF_ARG_POINTER, PROF_ARG_TENSOR};
  const char *const keys[] = {"i", "u", "f", "b", "s", "p", "t"};
  capture_schema(meta, 9, PROF_ARGS_PAIRS, "", 7, types, keys);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  const double f = -2.5;
  uint64_t f_bits;
  memcpy(&f_bits, &f, sizeof f_bits);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, 0, 1);
  r.flags = PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM | PROF_I_FLAG_LONG | PROF_I_FLAG_NAME |
            PROF_I_FLAG_CATEGORY | PROF_I_FLAG_CUT | PROF_I_FLAG_NO_DETAILS;
  r.schema = 9;
  long_word(&r, PROF_DEVICE_CUDA | 3ull << 32);
  long_word(&r, 77);
  long_word(&r, 1ull << 41); /* longer than word 1 holds */
  long_text(&r, "run-time name");
  long_text(&r, "kind");
  long_word(&r, (uint64_t)-5);
  long_word(&r, 18446744073709551615u);
  long_word(&r, f_bits);
  long_word(&r, 1);
  long_bytes(&r, "a\0b", 3);
  long_word(&r, 0xdeadbeef);
  long_word(&r, 2 | (uint64_t)PROF_F32 << 32);
  long_word(&r, 4);
  long_word(&r, 5);
  long_end(&r, chunk);
  prof_trace *const trace = open_capture(&c);
  assert_int_equal(info_of(trace).bad_count, 0);
  const events all = read_events(trace);
  const prof_event *const e = &all.items[0];
  assert_event(e, 10, 1ull << 41, 1ull << 41, 0);
  assert_text(e->name, e->name_bytes, "run-time name");
  assert_text(e->category, e->category_bytes, "kind");
  assert_int_equal(e->device.type, PROF_DEVICE_CUDA);
  assert_int_equal(e->device.index, 3);
  assert_int_equal(e->stream, 77);
  assert_int_equal(e->flags, PROF_EVENT_ON_STREAM | PROF_EVENT_CUT | PROF_EVENT_NO_DETAILS);
  assert_int_equal(e->args_kind, PROF_ARGS_PAIRS);
  assert_int_equal(e->arg_count, 7);
  for (uint32_t i = 0; i < 7; i++) {
    assert_int_equal(e->args[i].type, types[i]);
    assert_text(e->args[i].key, e->args[i].key_bytes, keys[i]);
  }
  assert_int_equal(e->args[0].value.i64, -5);
  assert_int_equal(e->args[1].value.u64, 18446744073709551615u);
  assert_true(e->args[2].value.f64 == -2.5);
  assert_int_equal(e->args[3].value.u64, 1);
  assert_int_equal(e->args[4].value.text.bytes, 3);
  assert_memory_equal(e->args[4].value.text.data, "a\0b", 3);
  assert_int_equal(e->args[5].value.u64, 0xdeadbeef);
  assert_int_equal(e->args[6].value.tensor.rank, 2);
  assert_int_equal(e->args[6].value.tensor.dtype, PROF_F32);
  assert_int_equal(e->args[6].value.tensor.dims[1], 5);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* Each of the 256 sets of flags, with the parts that it asks for. */
static void every_set_of_flags_is_read_in_order(void **state) {
  (void)state;
  for (uint32_t flags = 0; flags < 256; flags++) {
    capture c;
    begin_with_sites(&c, 1 << 20, 2);
    prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
    long_record r;
    long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, flags & PROF_I_FLAG_LONG ? 0 : 40, 1);
    r.flags = flags;
    if (flags & PROF_I_FLAG_DEVICE) long_word(&r, PROF_DEVICE_ROCM | 1ull << 32);
    if (flags & PROF_I_FLAG_STREAM) long_word(&r, 5);
    if (flags & PROF_I_FLAG_LONG) long_word(&r, 40);
    if (flags & PROF_I_FLAG_NAME) long_text(&r, "named");
    if (flags & PROF_I_FLAG_CATEGORY) long_text(&r, "");
    long_end(&r, chunk);
    prof_trace *const trace = open_capture(&c);
    const events all = read_events(trace);
    assert_int_equal(all.count, 1);
    assert_int_equal(info_of(trace).bad_count, 0);
    const prof_event *const e = &all.items[0];
    assert_event(e, 10, 40, flags & PROF_I_FLAG_OTHER_THREAD ? 0 : 40, 0);
    assert_text(e->name, e->name_bytes, flags & PROF_I_FLAG_NAME ? "named" : "a");
    assert_text(e->category, e->category_bytes, flags & PROF_I_FLAG_CATEGORY ? "" : "cat");
    assert_int_equal(e->device.type,
                     flags & PROF_I_FLAG_DEVICE ? PROF_DEVICE_ROCM : PROF_DEVICE_CPU);
    assert_int_equal(e->stream, flags & PROF_I_FLAG_STREAM ? 5 : 0);
    free(all.items);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* Schema 3 is one text; 4 is a number, 5 two texts, and 6 is not there. */
static capture with_short_text(uint32_t flags, uint32_t schema, const char *text) {
  static const uint32_t types[] = {PROF_ARG_STRING, PROF_ARG_STRING, PROF_ARG_I64};
  static const char *const keys[] = {"one", "two"};
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  capture_schema(meta, 3, PROF_ARGS_PAIRS, "", 1, types, keys);
  capture_schema(meta, 4, PROF_ARGS_PAIRS, "", 1, types + 2, keys);
  capture_schema(meta, 5, PROF_ARGS_PAIRS, "", 2, types, keys);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_short_text(chunk, T0 + 10, 40, 1, flags, schema, text);
  capture_plain(chunk, T0 + 60, 5, 2);
  return c;
}

static void a_short_text_of_any_length_comes_back(void **state) {
  (void)state;
  const uint32_t flags[] = {0, PROF_I_FLAG_OTHER_THREAD, PROF_I_FLAG_CUT, PROF_I_FLAG_NO_DETAILS};
  const uint32_t shown[] = {0, PROF_EVENT_OTHER_THREAD, PROF_EVENT_CUT, PROF_EVENT_NO_DETAILS};
  for (size_t bytes = 0; bytes <= 255; bytes++) {
    char text[256] = "";
    memset(text, 'a' + (int)bytes % 26, bytes);
    capture c = with_short_text(flags[bytes % 4], 3, text);
    prof_trace *const trace = open_capture(&c);
    const events all = read_events(trace);
    const prof_event *const e = &all.items[0];
    assert_int_equal(all.count, 2);
    assert_int_equal(info_of(trace).bad_count, 0);
    assert_event(e, 10, 40, bytes % 4 == 1 ? 0 : 40, 0);
    assert_int_equal(e->flags, shown[bytes % 4]);
    assert_text(e->name, e->name_bytes, "a");
    assert_text(e->category, e->category_bytes, "cat");
    assert_int_equal(e->arg_count, 1);
    assert_text(e->args[0].key, e->args[0].key_bytes, "one");
    assert_text(e->args[0].value.text.data, e->args[0].value.text.bytes, text);
    free(all.items);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

/* Its place in time counts all the same; what cannot be understood at all is no record. */
static void a_short_text_that_does_not_fit_is_damage(void **state) {
  (void)state;
  const struct {
    uint32_t flags, schema;
    size_t events;
  } cases[] = {{0, 4, 2},
               {0, 5, 2},
               {0, 6, 2},
               {PROF_I_FLAG_NAME, 3, 1},
               {PROF_I_FLAG_DEVICE, 3, 1},
               {PROF_I_FLAG_STREAM, 3, 1},
               {PROF_I_FLAG_LONG, 3, 1},
               {PROF_I_FLAG_CATEGORY, 3, 1},
               {0, 0, 1}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    capture c = with_short_text(cases[i].flags, cases[i].schema, "text");
    prof_trace *const trace = open_capture(&c);
    const events all = read_events(trace);
    assert_int_equal(all.count, cases[i].events);
    assert_int_equal(info_of(trace).bad_count, 1);
    free(all.items);
    prof_trace_destroy(trace);
    capture_end(&c);
  }
}

static void kinds_that_are_no_scopes_come_back(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  capture_track(meta, (prof_device){PROF_DEVICE_CUDA, 0}, 7, "old name");
  capture_track(meta, (prof_device){PROF_DEVICE_CUDA, 0}, 7, "copies");
  capture_track(meta, (prof_device){PROF_DEVICE_CUDA, 1}, 0, "");
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  uint64_t bits;
  const double value = 1.25;
  memcpy(&bits, &value, sizeof bits);
  long_begin(&r, PROF_I_KIND_INSTANT, T0 + 10, 0, 1);
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_COUNTER, T0 + 20, 0, 2);
  long_word(&r, bits);
  long_end(&r, chunk);
  for (uint64_t end = 0; end < 2; end++) {
    long_begin(&r, PROF_I_KIND_FLOW, T0 + 30 + end, 0, 0);
    long_word(&r, 1234567890123);
    long_word(&r, end);
    long_text(&r, "arrow");
    long_end(&r, chunk);
  }
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  const uint32_t kinds[] = {PROF_EVENT_INSTANT, PROF_EVENT_COUNTER, PROF_EVENT_FLOW_BEGIN,
                            PROF_EVENT_FLOW_END};
  assert_int_equal(all.count, 4);
  assert_int_equal(info_of(trace).scope_count, 0);
  for (size_t i = 0; i < 4; i++) assert_int_equal(all.items[i].kind, kinds[i]);
  assert_text(all.items[0].name, all.items[0].name_bytes, "a");
  assert_true(all.items[1].value == 1.25);
  assert_text(all.items[1].name, all.items[1].name_bytes, "b");
  assert_int_equal(all.items[3].id, 1234567890123);
  assert_text(all.items[3].name, all.items[3].name_bytes, "arrow");
  prof_device device;
  uint64_t stream;
  prof_i_text name;
  assert_int_equal(prof_i_trace_track(trace, 0, &device, &stream, &name), 1);
  assert_text(name.data, name.bytes, "copies"); /* the last name wins */
  assert_int_equal(stream, 7);
  assert_int_equal(prof_i_trace_track(trace, 1, &device, &stream, &name), 1);
  assert_int_equal(device.index, 1);
  assert_int_equal(prof_i_trace_track(trace, 2, &device, &stream, &name), 0);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void an_open_scope_shows_its_name_and_arguments(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  const uint32_t types[] = {PROF_ARG_STRING};
  const char *const keys[] = {"key"};
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 1, types, keys);
  prof_i_thread_slot *const slot = capture_slot(&c, 1, "main");
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, 0, 1);
  r.flags = PROF_I_FLAG_NAME;
  r.schema = 1;
  long_text(&r, "waiting for the network");
  long_text(&r, "value");
  capture_open_long(slot, &r);
  slot->open[++slot->depth] =
      /* a payload that is nowhere */
      (prof_i_open_entry){(T0 + 20) << 4, 2 << 4 | 1 | 9ull << 24 | 5ull << 48};
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 2);
  assert_text(all.items[0].name, all.items[0].name_bytes, "waiting for the network");
  assert_int_equal(all.items[0].arg_count, 1);
  assert_text(all.items[0].args[0].value.text.data, all.items[0].args[0].value.text.bytes, "value");
  assert_text(all.items[1].name, all.items[1].name_bytes, "b");
  assert_int_equal(info_of(trace).bad_count, 1);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void damaged_arguments_are_counted_and_the_scope_kept(void **state) {
  (void)state;
  capture c;
  prof_i_head *const meta = begin_with_sites(&c, 1 << 20, 2);
  const uint32_t types[] = {PROF_ARG_I64, PROF_ARG_STRING};
  const char *const keys[] = {"n", "text"};
  capture_schema(meta, 1, PROF_ARGS_PAIRS, "", 2, types, keys);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  long_record r;
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 10, 5, 1);
  r.schema = 1;
  long_word(&r, 42);
  long_word(&r, UINT64_MAX); /* a text longer than memory */
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 20, 5, 1);
  r.schema = 2; /* not known */
  long_word(&r, 42);
  long_end(&r, chunk);
  long_begin(&r, PROF_I_KIND_SCOPE, T0 + 30, 5, 1);
  r.schema = 1;
  r.flags = PROF_I_FLAG_CUT; /* values were left out: that is no damage */
  long_word(&r, 43);
  long_end(&r, chunk);
  capture_plain(chunk, T0 + 40, 5, 700000); /* a site that is not known */
  prof_trace *const trace = open_capture(&c);
  const events all = read_events(trace);
  assert_int_equal(all.count, 4);
  assert_int_equal(all.items[0].arg_count, 1);
  assert_int_equal(all.items[0].args[0].value.i64, 42);
  assert_int_equal(all.items[1].arg_count, 0);
  assert_int_equal(all.items[2].arg_count, 1);
  assert_int_equal(all.items[3].site, 0);
  assert_int_equal(info_of(trace).bad_count, 3);
  free(all.items);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- formats ---- */

static prof_trace_arg integer(int64_t value) {
  return (prof_trace_arg){.type = PROF_ARG_I64, .value.i64 = value};
}
static prof_trace_arg number(double value) {
  return (prof_trace_arg){.type = PROF_ARG_F64, .value.f64 = value};
}
static prof_trace_arg text(const char *value) {
  return (prof_trace_arg){.type = PROF_ARG_STRING, .value.text = {value, strlen(value)}};
}
static prof_trace_arg typed(uint32_t type, uint64_t value) {
  return (prof_trace_arg){.type = type, .value.u64 = value};
}

static void check_format(const char *format, const char *expected, uint32_t count,
                         const prof_trace_arg *args) {
  prof_event event = {.format = format,
                      .format_bytes = (uint32_t)strlen(format),
                      .args_kind = PROF_ARGS_FORMAT,
                      .arg_count = count};
  for (uint32_t i = 0; i < count; i++) event.args[i] = args[i];
  char out[4096];
  const size_t bytes = prof_i_format_args(&event, out, sizeof out);
  if (bytes != strlen(expected) || memcmp(out, expected, bytes) != 0)
    fail_msg("\"%s\" gave \"%.*s\", not \"%s\"", format,
             (int)(bytes < sizeof out ? bytes : sizeof out), out, expected);
  /* any room: the same front, nothing behind it */
  for (size_t room = 0; room < bytes && room < 40; room++) {
    memset(out, '#', sizeof out);
    assert_int_equal(prof_i_format_args(&event, out, room), bytes);
    assert_memory_equal(out, expected, room);
    assert_int_equal(out[room], '#');
  }
}

#define CHECK(format, expected, ...)                                                               \
  check_format(format, expected, sizeof((prof_trace_arg[]){__VA_ARGS__}) / sizeof(prof_trace_arg), \
               (prof_trace_arg[]){__VA_ARGS__})

static void formats_give_what_printf_gives(void **state) {
  (void)state;
  CHECK("%d of %s", "7 of nine", integer(7), text("nine"));
  CHECK("[%5d|%-5d|%05d|%+d]", "[   42|42   |00042|+42]", integer(42), integer(42), integer(42),
        integer(42));
  CHECK("%x %X %#x %o", "ffffffff FF 0xff 10", integer(-1), integer(255), integer(255), integer(8));
  CHECK("%lx %zu %hhd", "ffffffffffffffff 18446744073709551615 -1", integer(-1),
        typed(PROF_ARG_U64, UINT64_MAX), integer(255));
  CHECK("%.2f|%8.3e|%g", "3.14|1.000e+06|0.5", number(3.14159), number(1e6), number(0.5));
  CHECK("%*d|%.*f|%-*d|", "    9|1.50|3   |", integer(5), integer(9), integer(2), number(1.5),
        integer(4), integer(3));
  CHECK("%.3s|%6s|%-6s|", "abc|   abc|abc   |", text("abcdef"), text("abc"), text("abc"));
  CHECK("%c%c", "ok", integer('o'), integer('k'));
  CHECK("%p %p", "0xdeadbeef (nil)", typed(PROF_ARG_POINTER, 0xdeadbeef),
        typed(PROF_ARG_POINTER, 0));
  CHECK("%2$s %1$s", "b a", text("a"), text("b"));
  CHECK("100%% of %d", "100% of 3", integer(3));
  CHECK("%5%|%d", "%|1", integer(1));
}

static void conversions_that_do_not_fit_read_best(void **state) {
  (void)state;
  CHECK("%d", "text", text("text"));
  CHECK("%s", "42", integer(42));
  CHECK("%s %s", "true false", typed(PROF_ARG_BOOL, 1), typed(PROF_ARG_BOOL, 0));
  CHECK("%d", "2.5", number(2.5));
  CHECK("%f", "7", integer(7));
  CHECK("%d", "18446744073709551615", typed(PROF_ARG_U64, UINT64_MAX));
  /* %n takes its argument and writes nothing, anywhere */
  CHECK("%n%d", "8", integer(1), integer(8));
  const int64_t dims[] = {2, 3};
  CHECK("%s", "[2, 3]", {.type = PROF_ARG_TENSOR, .value.tensor = {dims, 2, PROF_F32}});
  CHECK("%d %s %", "1 %s %", integer(1)); /* nothing left for it */
  CHECK("%", "%", integer(1));
  CHECK("%-+ #0123.45llq", "%-+ #0123.45llq", integer(1));
  CHECK("%99$d", "%99$d", integer(1));
  CHECK("%y %d", "%y 5", integer(5));
}

static void hostile_widths_are_bounded(void **state) {
  (void)state;
  prof_event event = {
      .format = "%999999999d|%.999999999f|%*s", .args_kind = PROF_ARGS_FORMAT, .arg_count = 4};
  event.format_bytes = (uint32_t)strlen(event.format);
  event.args[0] = integer(1);
  event.args[1] = number(1e300);
  event.args[2] = integer(INT64_MIN);
  event.args[3] = text("x");
  char out[16];
  assert_in_range(prof_i_format_args(&event, out, sizeof out), 1000, 4096);
}

static void the_locale_does_not_reach_numbers(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-locale-XXXXXX", command[256], printed[8];
  assert_non_null(mkdtemp(folder));
  snprintf(command, sizeof command, "localedef -i de_DE -f UTF-8 %s/de_DE.UTF-8 2>/dev/null",
           folder);
  const bool is_made =
      system(command) == 0 && setenv("LOCPATH", folder, 1) == 0 && setlocale(LC_ALL, "de_DE.UTF-8");
  if (is_made) {
    snprintf(printed, sizeof printed, "%.1f", 1.5);
    assert_string_equal(printed, "1,5"); /* the locale is in force */
    CHECK("%.2f %g %e", "1.50 2.5 1.000000e+00", number(1.5), number(2.5), number(1));
  }
  setlocale(LC_ALL, "C");
  snprintf(command, sizeof command, "rm -rf %s", folder);
  assert_int_equal(system(command), 0);
  if (!is_made) {
    print_message(
        "skip: localedef has no de_DE to make a decimal comma of; type: apt-get install locales\n");
    skip();
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_part_of_a_scope_comes_back),
      cmocka_unit_test(every_set_of_flags_is_read_in_order),
      cmocka_unit_test(a_short_text_of_any_length_comes_back),
      cmocka_unit_test(a_short_text_that_does_not_fit_is_damage),
      cmocka_unit_test(kinds_that_are_no_scopes_come_back),
      cmocka_unit_test(an_open_scope_shows_its_name_and_arguments),
      cmocka_unit_test(damaged_arguments_are_counted_and_the_scope_kept),
      cmocka_unit_test(formats_give_what_printf_gives),
      cmocka_unit_test(conversions_that_do_not_fit_read_best),
      cmocka_unit_test(hostile_widths_are_bounded),
      cmocka_unit_test(the_locale_does_not_reach_numbers),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
