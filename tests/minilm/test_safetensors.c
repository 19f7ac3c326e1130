/* Files that are not what they say: every refusal has its reason, and none of them reads outside
   the file (run it under AddressSanitizer too). The good file is made here, then broken in one
   place a case. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#include "config.h"
#include "data.h"
#include "safetensors.h"

#define ONE(dtype, shape, offsets) \
  "{\"w\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}}"

enum { DATA_BYTES = 24 };

/* Length, header and 24 bytes of data (0.0f to 5.0f); returns how many bytes. The header is padded
   by blanks to 8 bytes. */
static size_t make_file(const char *header, unsigned char out[1024]) {
  size_t length = strlen(header);
  const float data[DATA_BYTES / sizeof(float)] = {0, 1, 2, 3, 4, 5};
  memset(out, 0, 8);
  memcpy(out + 8, header, length);
  while (length % 8 != 0) out[8 + length++] = ' ';
  out[0] = (unsigned char)(length & 0xFF);
  out[1] = (unsigned char)(length >> 8);
  memcpy(out + 8 + length, data, sizeof data);
  return 8 + length + sizeof data;
}

static int open_bytes(const unsigned char *bytes, size_t count, safetensors **file_out,
                      failure *why) {
  char path[DATA_PATH_BYTES];
  data_write_file(bytes, count, path);
  const int status = safetensors_open(path, file_out, why);
  remove(path);
  return status;
}

static void expect_refusal(const unsigned char *bytes, size_t count, const char *reason) {
  safetensors *file = NULL;
  failure why = {""};
  const int status = open_bytes(bytes, count, &file, &why);
  if (status == 0) safetensors_close(file);
  if (status != -1 || why.text[0] == '\0' || strstr(why.text, reason) == NULL)
    fail_msg("wanted \"%s\", got %d \"%s\"", reason, status, why.text);
}

static void expect_header_refusal(const char *header, const char *reason) {
  unsigned char bytes[1024];
  expect_refusal(bytes, make_file(header, bytes), reason);
}

static void a_good_file_gives_its_tensor(void **state) {
  (void)state;
  unsigned char bytes[1024];
  safetensors *file = NULL;
  failure why = {""};
  tensor t;
  const char *header =
      "{\"__metadata__\":{\"format\":\"pt\"},\"w\":{\"dtype\":\"F32\",\"shape\":[2,3],\"data_"
      "offsets\":[0,24]},"
      "\"none\":{\"dtype\":\"F32\",\"shape\":[0,3],\"data_offsets\":[24,24]}}";
  assert_int_equal(open_bytes(bytes, make_file(header, bytes), &file, &why), 0);
  assert_int_equal(safetensors_get(file, "w", 2, (const int64_t[]){2, 3}, &t, &why), 0);
  assert_int_equal(t.rank, 2);
  assert_true(t.data[5] == 5.0f);
  safetensors_close(file);
}

static void what_the_model_does_not_want_is_refused_by_name(void **state) {
  (void)state;
  unsigned char bytes[1024];
  safetensors *file = NULL;
  failure why = {""};
  tensor t;
  assert_int_equal(open_bytes(bytes, make_file(ONE("F16", "[2,6]", "[0,24]"), bytes), &file, &why),
                   0);
  assert_int_equal(safetensors_get(file, "w", 2, (const int64_t[]){2, 6}, &t, &why), -1);
  assert_string_equal(why.text, "tensor w has dtype F16, the runtime computes in F32");
  safetensors_close(file);
  assert_int_equal(open_bytes(bytes, make_file(ONE("F32", "[2,3]", "[0,24]"), bytes), &file, &why),
                   0);
  assert_int_equal(safetensors_get(file, "w", 2, (const int64_t[]){3, 2}, &t, &why), -1);
  assert_string_equal(why.text, "tensor w has shape [2, 3], the model wants [3, 2]");
  assert_int_equal(safetensors_get(file, "w", 1, (const int64_t[]){2}, &t, &why), -1);
  assert_int_equal(safetensors_get(file, "v", 1, (const int64_t[]){6}, &t, &why), -1);
  assert_string_equal(why.text, "the model file has no tensor v");
  safetensors_close(file);
}

static void a_header_that_does_not_fit_is_refused(void **state) {
  (void)state;
  unsigned char bytes[1024];
  const size_t count = make_file(ONE("F32", "[2,3]", "[0,24]"), bytes);
  expect_refusal(bytes, 0, "0 bytes, too short");
  expect_refusal(bytes, 7, "7 bytes, too short");
  expect_refusal(bytes, 8, "header length 64 does not fit the file's 8 bytes");
  memset(bytes, 0xFF, 8);
  expect_refusal(bytes, count, "header length 18446744073709551615 does not fit");
  memset(bytes, 0, 8);
  expect_refusal(bytes, count, "not a JSON object");
  expect_header_refusal("[1, 2]", "not a JSON object");
  expect_header_refusal("{\"w\": {", "not a JSON object");
}

/* The reason depends on where it was cut; that a reason is given is checked in any case. */
static void a_file_cut_at_any_byte_is_refused(void **state) {
  (void)state;
  unsigned char bytes[1024];
  const size_t count = make_file(ONE("F32", "[2,3]", "[0,24]"), bytes);
  for (size_t n = 0; n < count; n++) expect_refusal(bytes, n, "");
}

static void offsets_outside_the_data_are_refused(void **state) {
  (void)state;
  expect_header_refusal(ONE("F32", "[2,3]", "[8,32]"),
                        "data_offsets [8, 32] do not fit the 24 bytes of data");
  expect_header_refusal(ONE("F32", "[2,3]", "[24,0]"), "do not fit");
  expect_header_refusal(ONE("F32", "[2,3]", "[-8,16]"), "not two whole numbers");
  expect_header_refusal(ONE("F32", "[2,3]", "[0,1e300]"), "not two whole numbers");
  expect_header_refusal(ONE("F32", "[2,3]", "[0.5,24]"), "not two whole numbers");
  expect_header_refusal(ONE("F32", "[2,3]", "[0,9007199254740991]"), "do not fit");
  expect_header_refusal(ONE("F32", "[2,3]", "[0]"), "not two whole numbers");
  expect_header_refusal(ONE("F32", "[2,3]", "\"x\""), "not two whole numbers");
  expect_header_refusal(ONE("F32", "[2,2]", "[0,24]"), "span 24 bytes, dtype and shape need 16");
  expect_header_refusal(ONE("F32", "[2,2]", "[2,18]"), "not aligned to 4 bytes");
}

static void shapes_and_dtypes_that_cannot_be_are_refused(void **state) {
  (void)state;
  expect_header_refusal(ONE("Q7", "[2,3]", "[0,24]"), "unknown dtype Q7");
  expect_header_refusal(ONE("F32", "[2,-3]", "[0,24]"), "a dimension is not a whole number");
  expect_header_refusal(ONE("F32", "[2,\"3\"]", "[0,24]"), "a dimension is not a whole number");
  expect_header_refusal(ONE("F32", "7", "[0,24]"), "no shape");
  expect_header_refusal(ONE("F32", "[1,1,1,2,3]", "[0,24]"), "more than 4 dimensions");
  expect_header_refusal(ONE("F32", "[4294967296,4294967296]", "[0,24]"), "element count overflows");
  expect_header_refusal(ONE("F32", "[4294967296,1073741824]", "[0,24]"), "size overflows");
  expect_header_refusal("{\"w\":7}", "no dtype");
  expect_header_refusal("{\"w\":{\"shape\":[6],\"data_offsets\":[0,24]}}", "no dtype");
  expect_header_refusal("{\"w\":{\"dtype\":\"F32\",\"data_offsets\":[0,24]}}", "no shape");
  expect_header_refusal("{\"w\":{\"dtype\":\"F32\",\"shape\":[6]}}", "not two whole numbers");
}

/* No reason is fixed here: a flipped byte may also leave a good file. What counts is that nothing
   is read outside it. */
static void a_file_with_any_byte_flipped_does_no_harm(void **state) {
  (void)state;
  unsigned char bytes[1024];
  const size_t count = make_file(ONE("F32", "[2,3]", "[0,24]"), bytes);
  for (size_t i = 0; i < count * 8; i++) {
    safetensors *file = NULL;
    failure why = {""};
    tensor t = {.data = NULL};
    volatile float last = 0;
    bytes[i / 8] ^= (unsigned char)(1u << (i % 8));
    if (open_bytes(bytes, count, &file, &why) != 0)
      assert_true(why.text[0] != '\0');
    else if (safetensors_get(file, "w", 2, (const int64_t[]){2, 3}, &t, &why) == 0)
      last = t.data[5];
    (void)last;
    safetensors_close(file);
    bytes[i / 8] ^= (unsigned char)(1u << (i % 8));
  }
}

static void a_path_that_is_no_file_is_refused(void **state) {
  (void)state;
  safetensors *file = NULL;
  failure why = {""};
  assert_int_equal(safetensors_open("/nonexistent", &file, &why), -1);
  assert_string_equal(why.text, "/nonexistent: No such file or directory");
  assert_int_equal(safetensors_open("/tmp", &file, &why), -1);
  assert_string_equal(why.text, "/tmp: not a regular file");
}

static void expect_config_refusal(const char *text, const char *reason) {
  char path[DATA_PATH_BYTES];
  config c;
  failure why = {""};
  data_write_file(text, strlen(text), path);
  const int status = config_read(path, &c, &why);
  remove(path);
  if (status != -1 || strstr(why.text, reason) == NULL)
    fail_msg("wanted \"%s\", got %d \"%s\"", reason, status, why.text);
}

#define NUMBERS                                                                               \
  "\"intermediate_size\":8,\"num_hidden_layers\":1,\"num_attention_heads\":2,\"max_position_" \
  "embeddings\":512,"                                                                         \
  "\"type_vocab_size\":2,\"vocab_size\":9,\"layer_norm_eps\":1e-12"

static void a_configuration_that_cannot_run_is_refused_with_its_key(void **state) {
  (void)state;
  expect_config_refusal("", "not a JSON object");
  expect_config_refusal("{}", "hidden_size is not a number");
  expect_config_refusal("{\"hidden_size\":0," NUMBERS "}", "hidden_size is not a number from 1 to");
  expect_config_refusal("{\"hidden_size\":1e99," NUMBERS "}",
                        "hidden_size is not a number from 1 to");
  expect_config_refusal("{\"hidden_size\":7," NUMBERS "}", "7 hidden do not divide by 2 heads");
  expect_config_refusal("{\"hidden_size\":8," NUMBERS "}", "model_type is missing");
  expect_config_refusal("{\"hidden_size\":8,\"model_type\":\"gpt2\"," NUMBERS "}",
                        "model_type is gpt2");
  expect_config_refusal(
      "{\"hidden_size\":8,\"model_type\":\"bert\",\"hidden_act\":\"relu\"," NUMBERS "}",
      "hidden_act is relu");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_good_file_gives_its_tensor),
      cmocka_unit_test(what_the_model_does_not_want_is_refused_by_name),
      cmocka_unit_test(a_header_that_does_not_fit_is_refused),
      cmocka_unit_test(a_file_cut_at_any_byte_is_refused),
      cmocka_unit_test(offsets_outside_the_data_are_refused),
      cmocka_unit_test(shapes_and_dtypes_that_cannot_be_are_refused),
      cmocka_unit_test(a_file_with_any_byte_flipped_does_no_harm),
      cmocka_unit_test(a_path_that_is_no_file_is_refused),
      cmocka_unit_test(a_configuration_that_cannot_run_is_refused_with_its_key),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
