/* The tokenizer: token for token what Hugging Face's does (tests/data/minilm-tokens.json), and what
   no JSON text can hold: bytes that are not UTF-8, NUL, tiny capacities, broken vocabularies.
   SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#include "data.h"
#include "unicode.h"

enum { PAD, UNK, CLS, SEP, MASK, RUN, ING, NER, COMMA, AB, HASH };
static const char small_vocabulary[] =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\nrun\n##ing\n##ner\n,\nab\n#\n";

static tokenizer *open_text(const char *text, failure *why) {
  char path[DATA_PATH_BYTES];
  tokenizer *t = NULL;
  data_write_file(text, strlen(text), path);
  if (tokenizer_open(path, &t, why) != 0) t = NULL;
  remove(path);
  return t;
}

static int set_up(void **state) {
  failure why = {""};
  *state = open_text(small_vocabulary, &why);
  return *state == NULL;
}

static int tear_down(void **state) {
  tokenizer_close(*state);
  return 0;
}

static void expect(const tokenizer *t, const char *text, size_t bytes, const int32_t *want,
                   int64_t want_count) {
  int32_t ids[TOKENIZER_LENGTH_MAX];
  const int64_t count = tokenizer_encode(t, text, bytes, ids, TOKENIZER_LENGTH_MAX, NULL);
  assert_int_equal(count, want_count);
  assert_memory_equal(ids, want, (size_t)want_count * sizeof *want);
}

#define EXPECT(t, text, ...)                                            \
  expect((t), (text), sizeof(text) - 1, (const int32_t[]){__VA_ARGS__}, \
         (int64_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static void hard_texts_give_hugging_faces_tokens(void **state) {
  (void)state;
  model *m = data_open_model();
  if (m == NULL) skip();
  cJSON *json = data_read_json("minilm-tokens.json");
  const cJSON *one, *number;
  int case_count = 0, wrong_count = 0;
  cJSON_ArrayForEach(one, cJSON_GetObjectItemCaseSensitive(json, "cases")) {
    const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "text"));
    const cJSON *want = cJSON_GetObjectItemCaseSensitive(one, "token_ids");
    int32_t ids[TOKENIZER_LENGTH_MAX];
    const int64_t count =
        tokenizer_encode(m->tokenizer, text, strlen(text), ids, TOKENIZER_LENGTH_MAX, NULL);
    int64_t i = 0;
    int is_equal = count == cJSON_GetArraySize(want);
    cJSON_ArrayForEach(number, want) {
      is_equal = is_equal && ids[i] == number->valueint;
      i++;
    }
    if (!is_equal)
      print_message("  case %d differs (%lld tokens): %s\n", case_count, (long long)count, text);
    wrong_count += !is_equal;
    case_count++;
  }
  print_message("  %d of %d texts equal\n", case_count - wrong_count, case_count);
  cJSON_Delete(json);
  model_close(m);
  assert_true(case_count > 100);
  assert_int_equal(wrong_count, 0);
}

static void the_longest_piece_wins_and_a_word_with_an_unknown_piece_is_unknown(void **state) {
  EXPECT(*state, "runing runner run", CLS, RUN, ING, RUN, NER, RUN, SEP);
  EXPECT(*state, "runx xrun", CLS, UNK, UNK, SEP);
  EXPECT(*state, "RUN, ab", CLS, RUN, COMMA, AB, SEP);
  EXPECT(*state, "##", CLS, HASH, HASH, SEP);
}

static void the_empty_text_is_two_tokens(void **state) {
  EXPECT(*state, "", CLS, SEP);
  expect(*state, NULL, 0, (const int32_t[]){CLS, SEP}, 2);
}

static void what_is_not_utf8_is_dropped(void **state) {
  EXPECT(*state, "r\xFFun", CLS, RUN, SEP);
  EXPECT(*state, "ru\xC3", CLS, UNK, SEP);
  EXPECT(*state, "run\xE2\x82", CLS, RUN, SEP);
  EXPECT(*state, "\xC0\xAFrun\xED\xA0\x80", CLS, RUN, SEP);
  EXPECT(*state, "\xF4\x90\x80\x80run\xF0\x80\x80\x80", CLS, RUN, SEP);
  EXPECT(*state, "a\0b", CLS, AB, SEP);
}

static void special_tokens_in_the_text_are_themselves(void **state) {
  EXPECT(*state, "run[MASK]ing[SEP]", CLS, RUN, MASK, UNK, SEP, SEP);
  EXPECT(*state, "[mask]", CLS, UNK, UNK, UNK, SEP);
  EXPECT(*state, "[SEP", CLS, UNK, UNK, SEP);
}

static void a_long_text_is_cut_and_says_so(void **state) {
  int32_t ids[4] = {-1, -1, -1, -1};
  int was_cut = 0;
  assert_int_equal(tokenizer_encode(*state, "run run", 7, ids, 4, &was_cut), 4);
  assert_int_equal(was_cut, 0);
  assert_int_equal(tokenizer_encode(*state, "run run run", 11, ids, 4, &was_cut), 4);
  assert_int_equal(was_cut, 1);
  assert_int_equal(ids[3], SEP);
  assert_int_equal(tokenizer_encode(*state, "run", 3, ids, 2, &was_cut), 2);
  assert_int_equal(was_cut, 1);
  assert_int_equal(ids[1], SEP);
}

static void a_word_of_more_than_100_characters_is_unknown(void **state) {
  char text[4 * 101 + 1];
  /* four bytes each: fills the buffer */
  for (int i = 0; i < 101; i++) memcpy(text + 4 * i, "\xF0\x90\x90\xA8", 4);
  expect(*state, text, 400, (const int32_t[]){CLS, UNK, SEP}, 3);
  expect(*state, text, 404, (const int32_t[]){CLS, UNK, SEP}, 3);
}

static void every_code_point_survives_encoding_and_decoding(void **state) {
  (void)state;
  for (uint32_t code = 0; code <= 0x10FFFF; code++) {
    char text[UNICODE_UTF8_MAX];
    uint32_t back, folded[UNICODE_FOLD_MAX];
    if (code >= 0xD800 && code <= 0xDFFF) continue;
    const size_t bytes = unicode_encode(code, text);
    if (unicode_decode(text, bytes, &back) != bytes || back != code)
      fail_msg("U+%04X came back as U+%04X", code, back);
    const size_t count = unicode_fold(code, folded);
    for (size_t i = 0; i < count; i++)
      if (folded[i] > 0x10FFFF || unicode_is_dropped(folded[i]) > unicode_is_dropped(code))
        fail_msg("U+%04X folds to U+%04X", code, folded[i]);
  }
}

static void a_vocabulary_that_cannot_serve_is_refused_with_its_reason(void **state) {
  (void)state;
  failure why = {""};
  tokenizer *t = NULL;
  assert_int_equal(tokenizer_open("/nonexistent/vocab.txt", &t, &why), -1);
  assert_string_equal(why.text, "/nonexistent/vocab.txt: No such file or directory");
  assert_null(open_text("", &why));
  assert_non_null(strstr(why.text, "no [PAD] among its tokens"));
  assert_null(open_text("[PAD]\n[UNK]\n[CLS]\n[SEP]\n", &why));
  assert_non_null(strstr(why.text, "no [MASK] among its tokens"));
  t = open_text("[PAD]\n\n\n[UNK]\n[CLS]\n[SEP]\n[MASK]", &why);
  assert_non_null(t);
  assert_int_equal(tokenizer_vocabulary_count(t), 7);
  tokenizer_close(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(hard_texts_give_hugging_faces_tokens),
      cmocka_unit_test(the_longest_piece_wins_and_a_word_with_an_unknown_piece_is_unknown),
      cmocka_unit_test(the_empty_text_is_two_tokens),
      cmocka_unit_test(what_is_not_utf8_is_dropped),
      cmocka_unit_test(special_tokens_in_the_text_are_themselves),
      cmocka_unit_test(a_long_text_is_cut_and_says_so),
      cmocka_unit_test(a_word_of_more_than_100_characters_is_unknown),
      cmocka_unit_test(every_code_point_survives_encoding_and_decoding),
      cmocka_unit_test(a_vocabulary_that_cannot_serve_is_refused_with_its_reason),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
