/* Files become paragraphs: where they end, what is left out, which files count once, what is
   refused. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
/* cmocka.h wants the headers above it. */
#include <cmocka.h>

#include "corpus.h"
#include "data.h"

static corpus *read_text(const char *text) {
  char path[DATA_PATH_BYTES];
  failure why = {""};
  corpus *c = corpus_create();
  data_write_file(text, strlen(text), path);
  if (corpus_add_file(c, path, &why) != 0) fail_msg("%s", why.text);
  remove(path);
  return c;
}

static void expect_text(const corpus *c, int64_t i, const char *want) {
  assert_int_equal(c->texts[i].bytes, strlen(want));
  assert_memory_equal(c->texts[i].data, want, strlen(want));
}

static void blank_lines_part_paragraphs_and_blanks_are_squeezed(void **state) {
  (void)state;
  corpus *c = read_text(
      "\n \n one two\t three\r\n  four five six \n \t \n\n\nseven eight nine ten "
      "eleven\ntwelve\x1b[0m\x7f!");
  assert_int_equal(c->count, 2);
  expect_text(c, 0, "one two three four five six");
  expect_text(c, 1, "seven eight nine ten eleven twelve [0m !");
  corpus_destroy(c);
}

static void headings_and_empty_files_give_nothing(void **state) {
  (void)state;
  const char *texts[] = {"", "\n", "\n\n \n", "A Heading Of Five Words\n\n---- ----\n"};
  for (int i = 0; i < 4; i++) {
    corpus *c = read_text(texts[i]);
    assert_int_equal(c->count, 0);
    corpus_destroy(c);
  }
}

static void a_folder_gives_each_file_once_and_links_last(void **state) {
  (void)state;
  char folder[DATA_PATH_BYTES], path[DATA_PATH_BYTES + 16], link_path[DATA_PATH_BYTES + 16],
      inner[DATA_PATH_BYTES + 16];
  failure why = {""};
  data_write_file("", 0, folder);
  remove(folder);
  assert_int_equal(mkdir(folder, 0700), 0);
  snprintf(path, sizeof path, "%s/target", folder);
  snprintf(link_path, sizeof link_path, "%s/alias", folder);
  snprintf(inner, sizeof inner, "%s/inner", folder);
  FILE *stream = fopen(path, "w");
  assert_non_null(stream);
  fputs("one two three four five six\n", stream);
  fclose(stream);
  assert_int_equal(symlink("target", link_path), 0);
  assert_int_equal(mkdir(inner, 0700), 0);
  corpus *c = corpus_create();
  assert_int_equal(corpus_add_folder(c, folder, &why), 0);
  assert_int_equal(corpus_add_file(c, link_path, &why), 0);
  assert_int_equal(c->file_count, 1);
  assert_int_equal(c->count, 1);
  assert_string_equal(corpus_file_name(c, 0), path);
  corpus_destroy(c);
  unlink(link_path);
  unlink(path);
  rmdir(inner);
  rmdir(folder);
}

static void a_limit_keeps_paragraphs_from_all_over(void **state) {
  (void)state;
  char text[4096] = "";
  for (int i = 0; i < 10; i++) sprintf(text + strlen(text), "number %d a b c d\n\n", i);
  corpus *c = read_text(text);
  assert_int_equal(c->count, 10);
  corpus_limit(c, 20);
  assert_int_equal(c->count, 10);
  corpus_limit(c, 3);
  assert_int_equal(c->count, 3);
  expect_text(c, 0, "number 0 a b c d");
  expect_text(c, 1, "number 3 a b c d");
  expect_text(c, 2, "number 6 a b c d");
  corpus_destroy(c);
}

static void what_is_no_file_is_refused(void **state) {
  (void)state;
  failure why = {""};
  corpus *c = corpus_create();
  assert_int_equal(corpus_add_file(c, "/nonexistent", &why), -1);
  assert_string_equal(why.text, "/nonexistent: No such file or directory");
  assert_int_equal(corpus_add_file(c, "/", &why), -1);
  assert_string_equal(why.text, "/: not a regular file");
  assert_int_equal(corpus_add_folder(c, "/nonexistent", &why), -1);
  assert_int_equal(c->file_count, 0);
  corpus_destroy(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(blank_lines_part_paragraphs_and_blanks_are_squeezed),
      cmocka_unit_test(headings_and_empty_files_give_nothing),
      cmocka_unit_test(a_folder_gives_each_file_once_and_links_last),
      cmocka_unit_test(a_limit_keeps_paragraphs_from_all_over),
      cmocka_unit_test(what_is_no_file_is_refused),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
