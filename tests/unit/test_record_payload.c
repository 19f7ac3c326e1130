/* How a scope's name, category, device and arguments are packed, and what is cut when the room is
   short. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include <prof/profiler.h>

#include "core/record/payload.h"
#include "format/parse.h"

enum { ROOM = PROF_I_PAYLOAD_BYTES_MAX / 8 };
static const uint64_t canary = 0xc0ffee;

/* Packs into at most room words and reads them back as the reader does; words 0 and 1 are the
   record's. */
static prof_i_payload packed_into(const prof_details *details, uint32_t room,
                                  prof_i_long_record *back) {
  static uint64_t words[2 + ROOM + 2];
  prof_i_payload payload;
  for (size_t i = 0; i < sizeof words / sizeof *words; i++) words[i] = canary;
  prof_i_payload_measure(&payload, details, room);
  assert_in_range(payload.words, 1, room);
  prof_i_payload_pack(&payload, details, PROF_I_KIND_SCOPE, 1, words + 2);
  assert_int_equal(words[2 + payload.words], canary); /* not a word more */
  assert_int_equal(words[2] & 0xffff, (2 + payload.words + 1) / 2);
  assert_true(prof_i_long_record_read(words, 2 + payload.words, back));
  return payload;
}

static prof_details with_texts(const char *name, const char *category) {
  return (prof_details){name, category, PROF_NUL_TERMINATED, PROF_NUL_TERMINATED, 0, PROF_HOST,
                        0,    0,        PROF_NO_ARGS};
}

static void literal_names_take_no_room(void **state) {
  (void)state;
  prof_i_long_record back;
  prof_details details = with_texts("name", "category");
  details.flags = PROF_I_NAME_LITERAL | PROF_I_CATEGORY_LITERAL;
  assert_int_equal(packed_into(&details, ROOM, &back).words, 1);
  assert_int_equal(back.flags, 0);
  assert_int_equal(back.schema, 0);
}

static void each_part_comes_back(void **state) {
  (void)state;
  prof_i_long_record back;
  prof_details details = with_texts("a name", "a category");
  details.device = (prof_device){PROF_DEVICE_CUDA, -3};
  details.flags = PROF_I_ON_STREAM;
  details.stream = 0x123456789abcdef0;
  const prof_i_payload payload = packed_into(&details, ROOM, &back);
  assert_int_equal(payload.flags, PROF_I_FLAG_DEVICE | PROF_I_FLAG_STREAM | PROF_I_FLAG_NAME |
                                      PROF_I_FLAG_CATEGORY);
  assert_int_equal(back.device, PROF_DEVICE_CUDA | (uint64_t)(uint32_t)-3 << 32);
  assert_int_equal(back.stream, details.stream);
  assert_int_equal(back.name.bytes, 6);
  assert_memory_equal(back.name.data, "a name", 6);
  assert_int_equal(back.category.bytes, 10);
  assert_memory_equal(back.category.data, "a category", 10);
}

static void counted_names_may_hold_anything(void **state) {
  (void)state;
  prof_i_long_record back;
  prof_details details = with_texts("\0\xff\n", NULL);
  details.name_bytes = 3;
  packed_into(&details, ROOM, &back);
  assert_int_equal(back.name.bytes, 3);
  assert_memory_equal(back.name.data, "\0\xff\n", 3);
  assert_int_equal(back.category.bytes, 0);
  details.name = NULL; /* with a length all the same */
  packed_into(&details, ROOM, &back);
  assert_int_equal(back.name.bytes, 0);
}

/* Every room from one word on: never more than it, never a torn text, and the flag says when
   something is missing. */
static void every_room_is_kept_to(void **state) {
  (void)state;
  const int64_t dims[] = {1, 2, 3};
  const prof_tensor tensor = {dims, 3, PROF_F32};
  const prof_arg items[] = {prof_i_arg_i64("a", 1), prof_i_arg_text("b", "a text of some length"),
                            prof_i_arg_tensor(&tensor), prof_i_arg_text("c", ""),
                            prof_i_arg_f64("d", 0.5)};
  prof_details details = with_texts("a name that is rather long", "and a category");
  details.device = (prof_device){PROF_DEVICE_ROCM, 1};
  details.args = (prof_args){items, 5, PROF_ARGS_PAIRS, NULL};
  prof_i_long_record back;
  const prof_i_payload whole = packed_into(&details, ROOM, &back);
  assert_int_equal(whole.flags & PROF_I_FLAG_CUT, 0);
  assert_int_equal(whole.arg_count, 5);
  assert_int_equal(whole.words, 1 + 1 + 5 + 3 + 1 + 4 + 4 + 1 + 1);
  /* head, device, and a length: what any scope gets */
  for (uint32_t room = 3; room <= whole.words; room++) {
    const prof_i_payload payload = packed_into(&details, room, &back);
    assert_int_equal((payload.flags & PROF_I_FLAG_CUT) != 0, room < whole.words);
    assert_in_range(payload.arg_count, 0, whole.arg_count);
    assert_true(back.name.bytes <= 26 &&
                memcmp(back.name.data, details.name, (size_t)back.name.bytes) == 0);
    if (back.category.data)
      assert_true(back.category.bytes <= 14 &&
                  memcmp(back.category.data, details.category, (size_t)back.category.bytes) == 0);
    if (payload.arg_count > 0) assert_int_equal(back.values[0], 1);
  }
}

static void arguments_stop_at_the_first_that_does_not_fit(void **state) {
  (void)state;
  static char huge[20000];
  memset(huge, 'h', sizeof huge - 1);
  prof_arg items[] = {prof_i_arg_i64("a", 1), prof_i_arg_text("b", huge), prof_i_arg_i64("c", 3)};
  prof_details details = with_texts("n", "c");
  details.args = (prof_args){items, 3, PROF_ARGS_PAIRS, NULL};
  prof_i_long_record back;
  prof_i_payload payload = packed_into(&details, ROOM, &back);
  assert_int_equal(payload.arg_count, 2); /* the text, cut, takes all there is */
  assert_int_equal(payload.words, ROOM);
  assert_true(payload.flags & PROF_I_FLAG_CUT);
  assert_in_range(payload.arg_bytes[1], 16000, PROF_I_PAYLOAD_BYTES_MAX);

  items[1].type = 99; /* of a type that nobody knows */
  payload = packed_into(&details, ROOM, &back);
  assert_int_equal(payload.arg_count, 1);
  assert_true(payload.flags & PROF_I_FLAG_CUT);
}

static void a_huge_name_leaves_an_empty_category(void **state) {
  (void)state;
  static char huge[1 << 20];
  memset(huge, 'h', sizeof huge - 1);
  prof_details details = with_texts(huge, "category");
  prof_i_long_record back;
  const prof_i_payload payload = packed_into(&details, ROOM, &back);
  assert_true(payload.flags & PROF_I_FLAG_CUT);
  assert_in_range(back.name.bytes, 16000, PROF_I_PAYLOAD_BYTES_MAX);
  assert_int_equal(back.category.bytes, 0);
  /* as long as a view can say; no more of it is read than fits */
  details.name_bytes = UINT32_MAX - 1;
  details.name = huge;
  assert_in_range(packed_into(&details, ROOM, &back).name_bytes, 16000, PROF_I_PAYLOAD_BYTES_MAX);
}

static void counts_and_ranks_are_bounded(void **state) {
  (void)state;
  static int64_t dims[40];
  prof_arg items[20];
  const prof_tensor deep = {dims, 40, PROF_I8}, none = {NULL, 40, PROF_I8};
  for (int i = 0; i < 20; i++) items[i] = prof_i_arg_i64("k", i);
  prof_details details = with_texts("n", "c");
  prof_i_long_record back;
  details.args = (prof_args){items, 20, PROF_ARGS_PAIRS, NULL};
  prof_i_payload payload = packed_into(&details, ROOM, &back);
  assert_int_equal(payload.arg_count, PROF_ARGS_MAX);
  assert_true(payload.flags & PROF_I_FLAG_CUT);
  items[0] = prof_i_arg_tensor(&deep);
  items[1] = prof_i_arg_tensor(&none);
  items[2] = prof_i_arg_tensor(NULL);
  details.args.count = 3;
  payload = packed_into(&details, ROOM, &back);
  assert_int_equal(payload.arg_bytes[0], 16);
  assert_int_equal(payload.arg_bytes[1], 0);
  assert_int_equal(payload.arg_bytes[2], 0);
  assert_int_equal(back.value_words, 17 + 1 + 1);
  details.args = (prof_args){NULL, 5, PROF_ARGS_PAIRS, NULL};
  assert_int_equal(packed_into(&details, ROOM, &back).arg_count, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(literal_names_take_no_room),
      cmocka_unit_test(each_part_comes_back),
      cmocka_unit_test(counted_names_may_hold_anything),
      cmocka_unit_test(every_room_is_kept_to),
      cmocka_unit_test(arguments_stop_at_the_first_that_does_not_fit),
      cmocka_unit_test(a_huge_name_leaves_an_empty_category),
      cmocka_unit_test(counts_and_ranks_are_bounded),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
