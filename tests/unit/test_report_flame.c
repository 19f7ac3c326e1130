/* Flame graphs: folded stacks and the SVG. With PROF_TEST_FLAME_DIR the pictures stay there. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
/* cmocka.h needs the headers above. */
#include <cmocka.h>

#include "build_capture.h"
#include "device_capture.h"
#include "report/internal.h"

enum { CHUNK = PROF_I_UNIT_BYTES, ROOM = 8 * PROF_I_UNIT_BYTES };
#define HOSTILE "</title><script>alert(1)</script>]]>&\"';\n\x1b[2J\xff\xe2\x80\xa8"

/* step { conv { im2col }, HOSTILE, 畳み込み }, with a kernel that conv launched, and memory */
static void add_capture(prof_i_paths *paths, prof_i_side side, uint64_t im2col_ns) {
  capture c;
  prof_trace *trace = NULL;
  const uint64_t at = CAPTURE_START + 1000;
  capture_begin(&c, ROOM);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "step", "operator", 1);
  capture_site(meta, 2, "conv", "operator", 1);
  capture_site(meta, 3, "im2col", "operator", 1);
  capture_site(meta, 4, HOSTILE, HOSTILE, 1);
  capture_site(meta, 5, "\xe7\x95\xb3\xe3\x81\xbf\xe8\xbe\xbc\xe3\x81\xbf", "operator", 1);
  capture_pool(&c, meta, 1, 1, HOSTILE, 0);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_piece(chunk, at + 300, 1, 0, 4096, 1 << 20, 0, PROF_I_USED_ZERO);
  capture_plain(chunk, at + 200, im2col_ns, 3);
  capture_plain(chunk, at + 100, 4000, 2);
  capture_plain(chunk, at + 5000, 2000, 4);
  capture_plain(chunk, at + 8000, 1500, 5);
  capture_plain(chunk, at, 10000, 1);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_paths_add(paths, trace, side, NULL, NULL), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

static void keep_picture(const char *name, const char *text) {
  char path[4096];
  const char *const folder = getenv("PROF_TEST_FLAME_DIR");
  if (!folder) return;
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static uint32_t count_of(const char *text, const char *part) {
  uint32_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text++) count++;
  return count;
}

static void folded_stacks_have_self_times(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  char *text = NULL;
  add_capture(&paths, PROF_I_SIDE_NEW, 3000);
  prof_i_flame_options options = {.title = "test"};
  assert_true(prof_i_flame_total(&paths, &options) == 10000);
  assert_int_equal(prof_i_flame_folded(&paths, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "step 2500\n"));
  assert_non_null(strstr(text, "step;conv 1000\n"));
  assert_non_null(strstr(text, "step;conv;im2col 3000\n"));
  assert_non_null(strstr(text, "step;\xe7\x95\xb3\xe3\x81\xbf\xe8\xbe\xbc\xe3\x81\xbf 1500\n"));
  assert_non_null(strstr(text,
                         "step;</title><script>alert(1)</script>]]>&\"':  [2J\xef\xbf\xbd"
                         "\xe2\x80\xa8 2000\n"));
  assert_int_equal(count_of(text, "\n"), 5); /* the hostile name has none */
  assert_int_equal(count_of(text, ";"), 5);  /* nor a ';' */
  assert_null(strchr(text, '\x1b'));
  free(text);
  options.kind = PROF_I_FLAME_MEMORY;
  assert_int_equal(prof_i_flame_folded(&paths, &options, &text), PROF_OK);
  assert_string_equal(text, "step;conv;im2col 1048576\n");
  free(text);
  options.kind = PROF_I_FLAME_DEVICE;
  assert_true(prof_i_flame_total(&paths, &options) == 0);
  prof_i_paths_fini(&paths);
}

static void an_svg_has_each_frame_and_no_foreign_element(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  char *text = NULL;
  add_capture(&paths, PROF_I_SIDE_NEW, 3000);
  const prof_i_flame_options options = {.title = HOSTILE};
  assert_int_equal(prof_i_flame_svg(&paths, &options, &text), PROF_OK);
  keep_picture("host.svg", text);
  assert_int_equal(count_of(text, "<g class=\"f\""), 6);
  assert_int_equal(count_of(text, "<script"), 1);
  assert_int_equal(count_of(text, "]]>"), 1);
  assert_int_equal(count_of(text, "http"), 1); /* the name space */
  assert_non_null(strstr(text, "<title>im2col: 3.000us, 30.0%; own 3.000us</title>"));
  /* 30 % of 1180 pixels, from the left */
  assert_non_null(strstr(text, "<rect x=\"10.0000\" y=\"66\" width=\"354.0000\""));
  /* behind conv's 40 %: 20 %, and 15 % behind both */
  assert_non_null(strstr(text, "<rect x=\"482.0000\" y=\"83\" width=\"236.0000\""));
  assert_non_null(strstr(text, "<rect x=\"718.0000\" y=\"83\" width=\"177.0000\""));
  assert_null(strchr(text, '\x1b'));
  free(text);
  prof_i_paths_fini(&paths);
}

static void a_difference_is_red_where_time_grew_and_blue_where_it_shrank(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  char *text = NULL;
  add_capture(&paths, PROF_I_SIDE_BASE, 1000);
  add_capture(&paths, PROF_I_SIDE_NEW, 3000);
  const prof_i_flame_options options = {
      .is_difference = true, .runs_count = {1, 1}, .title = "difference"};
  assert_int_equal(prof_i_flame_folded(&paths, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "step;conv;im2col 1000 3000\n"));
  free(text);
  assert_int_equal(prof_i_flame_svg(&paths, &options, &text), PROF_OK);
  keep_picture("difference.svg", text);
  const char *const grown = strstr(text, "data-n=\"im2col\""), *const shrunk =
                                                                   strstr(text, "data-n=\"conv\"");
  assert_non_null(grown);
  assert_non_null(shrunk);
  assert_memory_equal(strstr(grown, "fill=\"") + 6, "#f05858", 7);
  assert_memory_equal(strstr(shrunk, "fill=\"") + 6, "#5858f4", 7);
  free(text);
  prof_i_paths_fini(&paths);
}

static void add_two(prof_i_paths *paths, prof_i_side side, uint64_t outer_ns, const char *inner,
                    uint64_t inner_ns) {
  capture c;
  prof_trace *trace = NULL;
  capture_begin(&c, ROOM);
  prof_i_head *const meta = capture_meta(&c);
  capture_site(meta, 1, "outer", "operator", 1);
  capture_site(meta, 2, inner, "operator", 1);
  prof_i_head *const chunk = capture_chunk(&c, CHUNK, 1);
  capture_plain(chunk, CAPTURE_START + 100, inner_ns, 2);
  capture_plain(chunk, CAPTURE_START, outer_ns, 1);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_paths_add(paths, trace, side, NULL, NULL), PROF_OK);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* The new side has two captures: values are of one of them. */
static void a_difference_has_the_mean_of_the_captures_of_a_side(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  char *text = NULL;
  add_capture(&paths, PROF_I_SIDE_BASE, 1000);
  add_capture(&paths, PROF_I_SIDE_NEW, 3000);
  add_capture(&paths, PROF_I_SIDE_NEW, 3201);
  prof_i_flame_options options = {
      .is_difference = true, .runs_count = {1, 2}, .title = "difference"};
  assert_int_equal(prof_i_flame_folded(&paths, &options, &text), PROF_OK);
  assert_non_null(strstr(text, "step 2500 2500\n"));
  assert_non_null(strstr(text, "step;conv 3000 900\n")); /* 899.5 */
  assert_non_null(strstr(text, "step;conv;im2col 1000 3101\n"));
  free(text);
  assert_int_equal(prof_i_flame_svg(&paths, &options, &text), PROF_OK);
  assert_non_null(strstr(text,
                         "<title>conv: 4.000us, 40.0%; own 0.900us; base 4.000us, own "
                         "3.000us</title>"));
  assert_non_null(strstr(text,
                         "<title>im2col: 3.101us, 31.0%; own 3.101us; base 1.000us, own "
                         "1.000us</title>"));
  assert_null(strstr(text, "not drawn"));
  free(text);
  /* what has no memory on either side is not gone */
  options.kind = PROF_I_FLAME_MEMORY;
  assert_int_equal(prof_i_flame_svg(&paths, &options, &text), PROF_OK);
  assert_int_equal(count_of(text, "<g class=\"f\""), 4);
  assert_null(strstr(text, "not drawn"));
  free(text);
  prof_i_paths_fini(&paths);
}

static void frames_that_are_not_drawn_are_counted(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  char *text = NULL;
  add_two(&paths, PROF_I_SIDE_BASE, 1000, "dropped", 100);
  add_two(&paths, PROF_I_SIDE_BASE, 1000, "also dropped", 100);
  add_two(&paths, PROF_I_SIDE_NEW, 1000000, "short", 1);
  const prof_i_flame_options options = {
      .is_difference = true, .runs_count = {1, 1}, .title = "difference"};
  assert_int_equal(prof_i_flame_svg(&paths, &options, &text), PROF_OK);
  assert_non_null(strstr(text, ">not drawn: 1 too small, 2 with nothing in the new side</text>"));
  free(text);
  prof_i_paths_fini(&paths);
}

static void a_capture_without_scopes_makes_an_empty_graph(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  capture c;
  prof_trace *trace = NULL;
  char *text = NULL;
  capture_begin(&c, ROOM);
  capture_meta(&c);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_paths_add(&paths, trace, PROF_I_SIDE_NEW, NULL, NULL), PROF_OK);
  const prof_i_flame_options options = {.title = ""};
  assert_int_equal(prof_i_flame_folded(&paths, &options, &text), PROF_OK);
  assert_string_equal(text, "");
  free(text);
  assert_int_equal(prof_i_flame_svg(&paths, &options, &text), PROF_OK);
  assert_int_equal(count_of(text, "<g class=\"f\""), 1);
  free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
  prof_i_paths_fini(&paths);
}

/* Also those of nested device scopes, launches of no scope and of an unknown thread. */
static void device_work_is_below_the_scope_that_launched_it(void **state) {
  (void)state;
  prof_i_paths paths = {0};
  capture c;
  prof_trace *trace = NULL;
  char *text = NULL;
  device_capture(&c);
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  assert_int_equal(prof_i_paths_add(&paths, trace, PROF_I_SIDE_NEW, NULL, NULL), PROF_OK);
  const prof_i_flame_options options = {.kind = PROF_I_FLAME_DEVICE, .title = "device"};
  assert_int_equal(prof_i_flame_folded(&paths, &options, &text), PROF_OK);
  keep_picture("device.folded", text);
  assert_true(prof_i_flame_total(&paths, &options) == 24); /* prof_row.device_total_ns */
  /* the scopes of site 1, and a vendor's call, have one name */
  assert_non_null(strstr(text, "kernel;kernel;kernel;made at run time;made at run time 4\n"));
  assert_non_null(strstr(text, "kernel;kernel;kernel 7\n"));
  assert_non_null(strstr(text, "kernel;kernel;kernel;kernel;kernel 5\n"));
  assert_non_null(strstr(text, "\nkernel 8\n"));
  free(text);
  prof_trace_destroy(trace);
  capture_end(&c);
  prof_i_paths_fini(&paths);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(folded_stacks_have_self_times),
      cmocka_unit_test(an_svg_has_each_frame_and_no_foreign_element),
      cmocka_unit_test(a_difference_is_red_where_time_grew_and_blue_where_it_shrank),
      cmocka_unit_test(a_difference_has_the_mean_of_the_captures_of_a_side),
      cmocka_unit_test(frames_that_are_not_drawn_are_counted),
      cmocka_unit_test(device_work_is_below_the_scope_that_launched_it),
      cmocka_unit_test(a_capture_without_scopes_makes_an_empty_graph),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
