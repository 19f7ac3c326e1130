/* Text for the exporters: escaping against Unicode's own examples, numbers against printf. */
#define _GNU_SOURCE
#include <locale.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"

/* Escapes in rooms of every size down to the smallest: where it is cut must not show. */
static void check_escaped(const char *text, size_t bytes, const char *expected) {
  for (size_t room = PROF_I_ESCAPE_ROOM; room < 64; room += 7) {
    char out[4096];
    size_t used = 0;
    for (size_t at = 0; at < bytes;) {
      char part[64];
      const size_t before = at, written = prof_i_escape(part, room, text, bytes, &at);
      assert_true(written <= room);
      assert_true(at > before);
      memcpy(out + used, part, written);
      used += written;
    }
    out[used] = 0;
    assert_string_equal(out, expected);
  }
}

#define CHECK_ESCAPED(literal, expected) check_escaped(literal, sizeof(literal) - 1, expected)
#define BAD "\xef\xbf\xbd"

static void plain_text_stays_as_it_is(void **state) {
  (void)state;
  CHECK_ESCAPED("", "");
  CHECK_ESCAPED("aten::conv2d(float, int) ~ 0123456789 [x] {y} 'z' a/b a>b",
                "aten::conv2d(float, int) ~ 0123456789 [x] {y} 'z' a/b a>b");
  CHECK_ESCAPED("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf",
                "\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\xf4\x8f\xbf\xbf");
  CHECK_ESCAPED("\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf", "\xed\x9f\xbf\xee\x80\x80\xef\xbf\xbf");
}

static void json_specials_and_controls_are_escaped(void **state) {
  (void)state;
  CHECK_ESCAPED("a\"b\\c", "a\\\"b\\\\c");
  /* Perfetto misreads a backslash before the closing quote */
  CHECK_ESCAPED("C:\\dir\\", "C:\\\\dir\\u005c");
  CHECK_ESCAPED("\n\r\t\b\f", "\\n\\r\\t\\b\\f");
  CHECK_ESCAPED("a\0b", "a\\u0000b");
  CHECK_ESCAPED("\x1b[31m\x7f", "\\u001b[31m\\u007f");
  CHECK_ESCAPED(
      "\xc2\x9b"
      "2J\xc2\xa0",
      "\\u009b2J\xc2\xa0");
  CHECK_ESCAPED(
      "a\xe2\x80\xa8"
      "b\xe2\x80\xa9"
      "c\xe2\x80\xaa",
      "a\\u2028b\\u2029c\xe2\x80\xaa");
}

static void nothing_ends_or_opens_a_script(void **state) {
  (void)state;
  CHECK_ESCAPED("</script>", "<\\/script>");
  CHECK_ESCAPED("<script><!--", "\\u003cscript>\\u003c!--");
  CHECK_ESCAPED("<SCRIPT", "\\u003cSCRIPT");
  CHECK_ESCAPED("std::vector<int>", "std::vector<int>");
  CHECK_ESCAPED("a<b a<", "a<b a<");
}

/* The tables 3-8 to 3-11 of the Unicode standard: one replacement for each maximal subpart. */
static void ill_formed_utf8_is_replaced_as_unicode_recommends(void **state) {
  (void)state;
  CHECK_ESCAPED("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", BAD BAD BAD BAD BAD BAD BAD BAD "A");
  CHECK_ESCAPED("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", BAD BAD BAD BAD BAD BAD BAD BAD "A");
  CHECK_ESCAPED("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", BAD BAD BAD BAD BAD "A" BAD BAD "B");
  CHECK_ESCAPED("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", BAD BAD BAD BAD "A");
  CHECK_ESCAPED("\xf5\x80\x80\x80", BAD BAD BAD BAD);
  CHECK_ESCAPED("a\xc3", "a" BAD);
  CHECK_ESCAPED("a\xf0\x9f\x98", "a" BAD);
  CHECK_ESCAPED("\xc3\"", BAD "\\\"");
}

/* Each byte alone and inside of plain text, where the way for eight at once meets it. */
static void every_byte_gives_something_a_parser_takes(void **state) {
  (void)state;
  for (int byte = 0; byte < 256; byte++)
    for (size_t place = 0; place < 24; place++) {
      char text[24], out[256];
      memset(text, 'x', sizeof text);
      text[place] = (char)byte;
      size_t at = 0;
      const size_t written = prof_i_escape(out, sizeof out, text, sizeof text, &at);
      assert_int_equal(at, sizeof text);
      for (size_t i = 0; i < written; i++) {
        const unsigned char c = (unsigned char)out[i];
        assert_true(c >= 0x20 && c != 0x7f);
        if (c == '"') assert_true(i > 0 && out[i - 1] == '\\');
      }
      assert_true(written == sizeof text || strchr("\"\\\n\r\t\b\f", byte) != NULL || byte < 0x20 ||
                  byte >= 0x7f);
    }
}

static uint64_t next_random(uint64_t *state) {
  *state ^= *state << 13;
  *state ^= *state >> 7;
  *state ^= *state << 17;
  return *state;
}

/* Numbers of all lengths, and the edges of each. */
static uint64_t sample(uint64_t *random, int i) {
  static const uint64_t powers[] = {1,
                                    10,
                                    100,
                                    1000,
                                    10000,
                                    100000,
                                    1000000,
                                    10000000,
                                    100000000,
                                    1000000000,
                                    10000000000,
                                    100000000000,
                                    1000000000000,
                                    10000000000000,
                                    100000000000000,
                                    1000000000000000,
                                    10000000000000000,
                                    100000000000000000,
                                    1000000000000000000,
                                    10000000000000000000u};
  if (i < 60) return powers[i / 3] + (uint64_t)(i % 3) - 1;
  if (i == 60) return UINT64_MAX;
  return next_random(random) >> (next_random(random) % 64);
}

static void integers_read_as_printf_writes_them(void **state) {
  (void)state;
  uint64_t random = 88172645463325252u;
  for (int i = 0; i < 200000; i++) {
    const uint64_t value = sample(&random, i);
    char expected[64], written[PROF_I_NUMBER_ROOM + 1];
    snprintf(expected, sizeof expected, "%llu", (unsigned long long)value);
    *prof_i_put_u64(written, value) = 0;
    assert_string_equal(written, expected);
    snprintf(expected, sizeof expected, "%lld", (long long)value);
    *prof_i_put_i64(written, (int64_t)value) = 0;
    assert_string_equal(written, expected);
    snprintf(expected, sizeof expected, "0x%llx", (unsigned long long)value);
    *prof_i_put_hex(written, value) = 0;
    assert_string_equal(written, expected);
    snprintf(expected, sizeof expected, "%llu.%03u", (unsigned long long)(value / 1000),
             (unsigned)(value % 1000));
    *prof_i_put_us(written, value) = 0;
    assert_string_equal(written, expected);
  }
}

static void eight_digits_are_right_for_all_values(void **state) {
  (void)state;
  for (uint32_t value = 0; value < 100000000; value += value < 200000 ? 1 : 997) {
    const uint64_t digits = prof_i_eight_digits(value) + PROF_I_EIGHT_ZEROS;
    char text[9] = {0};
    memcpy(text, &digits, 8);
    assert_int_equal(strtoul(text, NULL, 10), value);
  }
}

static void doubles_read_back_the_same(void **state) {
  (void)state;
  uint64_t random = 42;
  for (int i = 0; i < 200000; i++) {
    const uint64_t bits = next_random(&random);
    double value;
    memcpy(&value, &bits, sizeof value);
    if (!isfinite(value)) continue;
    if (i % 3 == 0) value = (double)(int64_t)(bits >> 40) / 1000;
    char text[PROF_I_NUMBER_ROOM + 1];
    *prof_i_put_double(text, value) = 0;
    assert_true(strtod(text, NULL) == value);
    assert_non_null(strpbrk(text, ".e"));
  }
}

static void check_double(double value, const char *expected) {
  char text[PROF_I_NUMBER_ROOM + 1];
  *prof_i_put_double(text, value) = 0;
  assert_string_equal(text, expected);
}

static void doubles_are_short(void **state) {
  (void)state;
  check_double(0, "0.0");
  check_double(-0.0, "-0.0");
  check_double(1, "1.0");
  check_double(-3.5, "-3.5");
  check_double(0.1, "0.1");
  check_double(100, "100.0");
  check_double(123456.789, "123456.789");
  check_double(1e15, "1000000000000000.0");
  check_double(1e16, "1e16");
  check_double(1.5e-5, "0.000015");
  check_double(1.5e-6, "1.5e-6");
  check_double(0.1 + 0.2, "0.30000000000000004");
  check_double(1.7976931348623157e308, "1.7976931348623157e308");
  check_double(5e-324, "4.94065645841247e-324");
}

/* A locale whose decimal point is a comma, made here: a machine may have none. */
static bool make_comma_locale(const char *folder) {
  char path[256], command[1024];
  snprintf(path, sizeof path, "%s/source", folder);
  FILE *file = fopen(path, "w");
  if (file == NULL) return false;
  fputs("LC_NUMERIC\ndecimal_point \",\"\nthousands_sep \"\"\ngrouping -1\nEND LC_NUMERIC\n", file);
  fclose(file);
  snprintf(path, sizeof path, "%s/characters", folder);
  file = fopen(path, "w");
  if (file == NULL) return false;
  fputs("<code_set_name> TINY\n<escape_char> /\n<mb_cur_min> 1\n<mb_cur_max> 1\nCHARMAP\n", file);
  for (unsigned c = 0; c < 128; c++) fprintf(file, "<U%04X> /x%02x c\n", c, c);
  fputs("END CHARMAP\n", file);
  fclose(file);
  snprintf(command, sizeof command,
           "localedef -c -i %s/source -f %s/characters %s/xx_XX >/dev/null 2>&1", folder, folder,
           folder);
  (void)!system(command); /* it warns about what is not defined */
  setenv("LOCPATH", folder, 1);
  const bool is_made = setlocale(LC_NUMERIC, "xx_XX") != NULL;
  snprintf(command, sizeof command, "rm -rf %s", folder);
  (void)!system(command);
  return is_made;
}

static void doubles_do_not_follow_the_locale(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-locale-XXXXXX", text[32];
  assert_non_null(mkdtemp(folder));
  if (!make_comma_locale(folder)) {
    print_message("skip: localedef cannot make a locale here\n");
    skip();
  }
  snprintf(text, sizeof text, "%.1f", 1.5);
  assert_string_equal(text, "1,5");
  check_double(-3.5, "-3.5");
  check_double(1.25e-9, "1.25e-9");
  setlocale(LC_NUMERIC, "C");
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_text_stays_as_it_is),
      cmocka_unit_test(json_specials_and_controls_are_escaped),
      cmocka_unit_test(nothing_ends_or_opens_a_script),
      cmocka_unit_test(ill_formed_utf8_is_replaced_as_unicode_recommends),
      cmocka_unit_test(every_byte_gives_something_a_parser_takes),
      cmocka_unit_test(integers_read_as_printf_writes_them),
      cmocka_unit_test(eight_digits_are_right_for_all_values),
      cmocka_unit_test(doubles_read_back_the_same),
      cmocka_unit_test(doubles_are_short),
      cmocka_unit_test(doubles_do_not_follow_the_locale),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
