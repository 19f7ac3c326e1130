/* What is shown of memory: the report and its plot, RAF's text, the SVG, which python3 parses.
   Captures are built, so that every figure is known; and written by a process that dies. */
#define _GNU_SOURCE
#include "trace_checks.h"

#include <dirent.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "memory_capture.h"

#define HOSTILE "e\x1b[31m<&>\"'\xff\xef\xbf\xbf\xe2\x80\xae]]>"

typedef struct shown {
  capture c;
  prof_trace *trace;
  prof_memory *memory;
  char *text;
} shown;

static void show_memory(shown *s) {
  s->text = NULL;
  s->trace = open_capture(&s->c);
  assert_int_equal(prof_memory_read(s->trace, &s->memory), PROF_OK);
}

static void show(shown *s, const prof_memory_text_options *options) {
  show_memory(s);
  if (prof_memory_text(s->memory, options, &s->text) != PROF_OK)
    fail_msg("prof_memory_text: %s", prof_last_error());
}

static void hide(shown *s) {
  prof_free(s->text);
  prof_memory_destroy(s->memory);
  prof_trace_destroy(s->trace);
  capture_end(&s->c);
}

static void assert_has(const char *text, const char *part) {
  if (!text || !strstr(text, part))
    fail_msg("\"%s\" is not in:\n%s", part, text ? text : "nothing");
}

static void assert_has_not(const char *text, const char *part) {
  if (strstr(text, part)) fail_msg("\"%s\" is in:\n%s", part, text);
}

static size_t count_of(const char *text, const char *part) {
  size_t count = 0;
  for (; (text = strstr(text, part)) != NULL; text += strlen(part)) count++;
  return count;
}

static void the_report_has_the_figures(void **state) {
  (void)state;
  shown s;
  memory_capture(&s.c, "tensors");
  show(&s, NULL);
  static const char *const parts[] = {
      "Pool 1: tensors on cuda:0, exact, piece by piece, session 1",
      "Pool 2: query on cuda:0, asked by PROFILE_MEMORY(), session 1",
      "time               300.000us          100.000us    1.000ms",
      "used               12.00 MiB                0 B   5.00 MiB",
      "bytes             12582912                  0    5242368",
      "allocated          16.00 MiB          16.00 MiB  16.00 MiB",
      "live pieces                2                  0          2",
      "free in blocks      4.00 MiB          16.00 MiB  11.00 MiB",
      "3 allocs, 2 frees, 1 reserve\n",
      "max_used 12.000 MB, max_allocated 16.000 MB",
      "forward  8.00 MiB       66.67%       1   8.00 MiB",
      "load     4.00 MiB       33.33%       1   4.00 MiB",
      "8 MiB - 16 MiB  8.00 MiB       66.67%",
      "(no scope)  1.00 MiB       1  400.000us  400.000us",
      "Wrong calls: 1 free of what is not live:",
      "not live  700.000us  0x7000000    512  (no scope)  thread 1 (101)",
      "2 samples\n",
      "which pieces were live is not known"};
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) assert_has(s.text, parts[i]);
  assert_has_not(s.text, "incomplete");
  assert_has_not(s.text, "Earlier sessions");
  assert_has_not(s.text, "(no tag)");
  hide(&s);
}

/* Of what came before nothing is known: a free of what is not there may be right. */
static void what_was_there_before_is_said_to_be_unknown(void **state) {
  (void)state;
  shown s;
  capture_begin(&s.c, 192 << 10);
  prof_i_head *const meta = capture_meta(&s.c);
  memory_sites(&s.c, meta);
  uint64_t *const words = (uint64_t *)((unsigned char *)meta + meta->cursor);
  prof_i_pool_state *const pool = memory_pool(&s.c, meta, 1, PROF_MEMORY_POOL, 1, "tensors");
  words[8] = PROF_I_BASELINE_NONE;
  memory_piece(capture_chunk(&s.c, PROF_I_UNIT_BYTES, 1), pool, memory_at(700), true, 0x7000000,
               512);
  show(&s, NULL);
  assert_has(s.text, "what the process had before the start is not known");
  assert_has(s.text, "1 free (512 B) is of a piece whose alloc is not in the capture");
  assert_has_not(s.text, "Wrong calls");
  hide(&s);
}

/* As malloc()'s: nothing is said of blocks. */
static void a_pool_that_knows_no_blocks_has_no_column_of_them(void **state) {
  (void)state;
  shown s;
  capture_begin(&s.c, 192 << 10);
  prof_i_head *const meta = capture_meta(&s.c);
  memory_sites(&s.c, meta);
  prof_i_pool_state *const pool = memory_pool(&s.c, meta, 1, PROF_MEMORY_POOL, 1, "malloc");
  memory_piece(capture_chunk(&s.c, PROF_I_UNIT_BYTES, 1), pool, memory_at(500), false, 0x1000,
               4096);
  show(&s, NULL);
  assert_int_equal(count_of(s.text, "  4096  "), 2); /* used, and asked for */
  assert_has_not(s.text, "peak of allocated");
  assert_has_not(s.text, "\u25c7");
  prof_free(s.text);
  assert_int_equal(prof_memory_svg(s.memory, 0, &s.text), PROF_OK);
  assert_has_not(s.text, "allocated");
  hide(&s);
}

/* Figures are never cut: at 70 columns and more these fit. */
static void no_line_is_wider_than_asked(void **state) {
  (void)state;
  static const uint32_t widths[] = {0, 70, 80, 133, 500};
  for (size_t i = 0; i < sizeof widths / sizeof *widths; i++) {
    shown s;
    const prof_memory_text_options options = {
        .size = sizeof options, .width = widths[i], .ascii = 1};
    memory_capture(&s.c, "a name that is rather long, as names go: of sixty-two bytes..");
    show(&s, &options);
    const size_t most = widths[i] ? widths[i] : 80;
    for (const char *line = s.text; *line; line += strcspn(line, "\n") + 1)
      if (strcspn(line, "\n") > most)
        fail_msg("%zu columns: %.*s", most, (int)strcspn(line, "\n"), line);
    hide(&s);
  }
}

static void the_plot_marks_both_peaks_where_they_are(void **state) {
  (void)state;
  shown s;
  /* 40 columns: 25 us each */
  const prof_memory_text_options options = {
      .size = sizeof options, .pool = 1, .ascii = 1, .width = 54};
  memory_capture(&s.c, "tensors");
  show(&s, &options);
  /* The axis goes to 16 MiB, where the line is: 2 MiB a row. */
  assert_has(s.text, "16 MiB +    A---");
  assert_has(s.text, "peak of used 12.00 MiB at 300.000us");
  assert_has(s.text, "peak of allocated 16.00 MiB at 100.000us");
  size_t used_marks = 0;
  for (const char *line = s.text; *line; line += strcspn(line, "\n") + 1) {
    if (strcspn(line, "\n") < 8 || (line[7] != '|' && line[7] != '+')) continue;
    for (const char *at = line + 8; *at != '\n'; at++)
      if (*at == 'U') used_marks++, assert_int_equal(at - line - 8, 12);
  }
  assert_int_equal(used_marks, 1);
  assert_has(s.text, "500us");
  hide(&s);
  const prof_memory_text_options blocks = {.size = sizeof blocks, .pool = 1};
  memory_capture(&s.c, "tensors");
  show(&s, &blocks);
  assert_int_equal(count_of(s.text, "\u25c6"), 2); /* in the plot, and what it means */
  assert_int_equal(count_of(s.text, "\u25c7"), 2);
  assert_true(count_of(s.text, "\u2588") > 40);
  hide(&s);
}

static void options_out_of_bounds_are_refused(void **state) {
  (void)state;
  shown s;
  memory_capture(&s.c, "tensors");
  show_memory(&s);
  const prof_memory_text_options wrong[] = {{.size = sizeof *wrong, .width = 39},
                                            {.size = sizeof *wrong, .width = 501},
                                            {.size = sizeof *wrong, .ascii = 2},
                                            {.size = 3}};
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
    assert_int_equal(prof_memory_text(s.memory, &wrong[i], &s.text), PROF_E_INVALID);
  const prof_memory_text_options missing = {.size = sizeof missing, .pool = 3};
  assert_int_equal(prof_memory_text(s.memory, &missing, &s.text), PROF_E_NOT_FOUND);
  assert_has(prof_last_error(), "no pool 3");
  assert_int_equal(prof_memory_text(NULL, NULL, &s.text), PROF_E_INVALID);
  assert_int_equal(prof_memory_text(s.memory, NULL, NULL), PROF_E_INVALID);
  assert_int_equal(prof_memory_svg(s.memory, 2, &s.text), PROF_E_INVALID);
  assert_int_equal(prof_memory_svg_dump(s.memory, 0, NULL), PROF_E_INVALID);
  assert_int_equal(prof_memory_trace_text(s.trace, PROF_HOST, &s.text), PROF_E_NOT_FOUND);
  assert_has(prof_last_error(), "prof_memory_set_query()");
  assert_null(s.text);
  hide(&s);
}

static void the_trace_as_raf_prints_it(void **state) {
  (void)state;
  shown s;
  memory_capture(&s.c, "tensors");
  show_memory(&s);
  assert_int_equal(prof_memory_trace_text(s.trace, (prof_device){PROF_DEVICE_CUDA, 0}, &s.text),
                   PROF_OK);
  assert_string_equal(s.text,
                      "Numbers are the in MBs.\n"
                      "#Trace\t#Tag  \t used\t alloc\n"
                      "     0\tloaded\t4.000\t16.000\n"
                      "     1\t-     \t0.001\t16.000\n");
  hide(&s);
}

static void the_trace_of_raf_begins_at_the_reset(void **state) {
  (void)state;
  shown s;
  memory_capture(&s.c, "tensors");
  const prof_device device = {PROF_DEVICE_CUDA, 0};
  capture_header(&s.c)->memory_reset_ticks = UINT64_MAX >> 8;
  show_memory(&s);
  assert_int_equal(prof_memory_trace_text(s.trace, device, &s.text), PROF_OK);
  assert_string_equal(s.text, "");
  hide(&s);
}

static void a_trace_without_memory_says_what_to_do(void **state) {
  (void)state;
  shown s;
  capture_begin(&s.c, 128 << 10);
  memory_sites(&s.c, capture_meta(&s.c));
  show(&s, NULL);
  assert_has(s.text, "The capture has no memory.");
  assert_has(s.text, "prof_pool_create()");
  hide(&s);
}

static void a_pool_in_which_nothing_happened_has_a_line_and_no_plot(void **state) {
  (void)state;
  shown s;
  capture_begin(&s.c, 128 << 10);
  prof_i_head *const meta = capture_meta(&s.c);
  memory_sites(&s.c, meta);
  memory_pool(&s.c, meta, 1, PROF_MEMORY_POOL, 1, "idle");
  show(&s, NULL);
  assert_has(s.text, "Pool 1: idle");
  assert_has(s.text, "nothing was handed out or taken back: no plot");
  assert_has_not(s.text, "peak of used");
  assert_has_not(s.text, "is lost");
  hide(&s);
}

/* What is missing is said, and does not change the peaks. */
static void lost_events_are_said(void **state) {
  (void)state;
  shown s;
  capture_begin(&s.c, 192 << 10);
  prof_i_head *const meta = capture_meta(&s.c);
  memory_sites(&s.c, meta);
  prof_i_pool_state *const pool = memory_pool(&s.c, meta, 1, PROF_MEMORY_POOL, 1, "tensors");
  prof_i_head *const chunk = capture_chunk(&s.c, PROF_I_UNIT_BYTES, 1), *const lost =
                                                                            capture_extent(
                                                                                &s.c,
                                                                                PROF_I_EXTENT_META,
                                                                                PROF_I_UNIT_BYTES);
  memory_piece(chunk, pool, memory_at(100), false, 0x1000, 3 * MEMORY_MIB);
  const uint64_t kept = lost->cursor;
  memory_piece(lost, pool, memory_at(200), false, 0x800000, 5 * MEMORY_MIB);
  memory_piece(lost, pool, memory_at(300), true, 0x800000, 5 * MEMORY_MIB);
  memset((char *)lost + kept, 0, 64);
  lost->cursor = kept;
  memory_piece(chunk, pool, memory_at(400), false, 0x1800000, MEMORY_MIB);
  capture_plain(chunk, memory_at(900), 100 * MEMORY_US, 3);
  show(&s, NULL);
  assert_has(s.text, "live set incomplete: 2 events lost");
  assert_has(s.text, "the event that made the peak of used is lost");
  assert_has(s.text, "8.00 MiB");
  assert_has(s.text, "and 5.00 MiB from before the start, or whose records are lost");
  prof_free(s.text);
  assert_int_equal(prof_memory_svg(s.memory, 0, &s.text), PROF_OK);
  assert_has(s.text, "peak of used: 8.00 MiB at 200.000us");
  assert_has(s.text, "2 events lost");
  hide(&s);
}

static void several_pools_of_a_device_are_summed_and_older_sessions_take_a_line(void **state) {
  (void)state;
  shown s;
  capture_begin(&s.c, 192 << 10);
  prof_i_head *const meta = capture_meta(&s.c), *chunk;
  memory_sites(&s.c, meta);
  prof_i_pool_state *pools[3];
  static const char *const names[] = {"before", "weights", "scratch"};
  for (uint64_t i = 0; i < 3; i++)
    pools[i] = memory_pool(&s.c, meta, (uint32_t)i + 1, PROF_MEMORY_POOL, i ? 2 : 1, names[i]);
  chunk = capture_chunk(&s.c, PROF_I_UNIT_BYTES, 1);
  for (uint64_t i = 0; i < 3; i++)
    memory_piece(chunk, pools[i], memory_at(100 * (i + 1)), false, i << 24 | 0x1000,
                 (i + 1) * MEMORY_MIB);
  capture_plain(chunk, memory_at(900), 100 * MEMORY_US, 3);
  show(&s, NULL);
  assert_has(
      s.text,
      "Device cuda:0, its 2 pools together: peak of used 5.00 MiB (5242880 bytes) at\n300.000us");
  assert_int_equal(count_of(s.text, "Device cuda:0"), 1);
  assert_has(s.text, "Earlier sessions");
  assert_has(s.text, "   1  before  cuda:0        1      1.00 MiB");
  assert_has_not(s.text, "Pool 1: before");
  hide(&s);
}

static void names_that_mean_harm_are_made_readable(void **state) {
  (void)state;
  shown s;
  memory_capture(&s.c, HOSTILE);
  show(&s, NULL);
  for (const char *at = s.text; *at; at++)
    if ((unsigned char)*at < 0x20 && *at != '\n')
      fail_msg("byte 0x%02x in:\n%s", (unsigned char)*at, s.text);
  assert_has(s.text, "e\\x1b[31m<&>\"'\xef\xbf\xbd\xef\xbf\xbf\\u202e]]>");
  prof_free(s.text);
  assert_int_equal(prof_memory_svg(s.memory, 0, &s.text), PROF_OK);
  assert_has(s.text, "e\\x1b[31m&lt;&amp;&gt;&quot;&#39;\xef\xbf\xbd\xef\xbf\xbd\\u202e]]&gt;");
  hide(&s);
}

/* As a browser would: by a parser of XML. */
static void the_picture_is_valid_xml(void **state) {
  (void)state;
  shown s;
  memory_capture(&s.c, HOSTILE);
  show_memory(&s);
  char path[] = "/tmp/prof-memory-XXXXXX", command[512];
  const int fd = mkstemp(path);
  assert_true(fd >= 0);
  close(fd);
  assert_int_equal(prof_memory_svg_dump(s.memory, 0, path), PROF_OK);
  snprintf(command, sizeof command,
           "python3 -c 'import sys, xml.etree.ElementTree as tree; r = "
           "tree.parse(sys.argv[1]).getroot();"
           " t = [\"\".join(x.itertext()) for x in r.iter(\"{http://www.w3.org/2000/svg}text\")];"
           " assert r.tag == \"{http://www.w3.org/2000/svg}svg\";"
           " assert \"peak of used: 12.00 MiB at 300.000us\" in t and \"peak of allocated: 16.00 "
           "MiB at 100.000us\" in t and \"200us\" in t and \"8 MiB\" in t, t' %s",
           path);
  const bool has_python = system("python3 -c 'import xml.etree' 2>/dev/null") == 0;
  const int status = has_python ? system(command) : 0;
  unlink(path);
  hide(&s);
  assert_int_equal(status, 0);
  if (has_python) return;
  print_message("skip: python3 is missing, which is to parse the SVG\n");
  skip();
}

/* ---- a process that dies ---- */

static void die_recording(const char *folder) {
  char path[256];
  prof_pool *pool;
  snprintf(path, sizeof path, "%s/trace.json", folder);
  const prof_options options = {.size = sizeof options, .path = path};
  if (prof_pool_create(
          &(prof_pool_options){.size = sizeof(prof_pool_options), .name = "of the dead"}, &pool) ||
      prof_start_with(&options))
    _exit(3);
  prof_memory_alloc(pool, (void *)0x10000, 6 << 20, 0);
  kill(getpid(), SIGKILL);
}

static void the_memory_of_a_process_that_was_killed_is_shown(void **state) {
  (void)state;
  char folder[] = "/tmp/prof-memory-XXXXXX", path[512] = "";
  assert_non_null(mkdtemp(folder));
  const pid_t child = fork();
  if (child == 0) die_recording(folder);
  int status = 0;
  waitpid(child, &status, 0);
  DIR *const files = opendir(folder);
  for (const struct dirent *file; (file = readdir(files)) != NULL;)
    if (strstr(file->d_name, ".prof")) snprintf(path, sizeof path, "%s/%s", folder, file->d_name);
  closedir(files);
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  char *text = NULL;
  const int opened = prof_trace_open(path, &trace);
  if (opened == PROF_OK && prof_memory_read(trace, &memory) == PROF_OK)
    prof_memory_text(memory, NULL, &text);
  unlink(path);
  rmdir(folder);
  assert_true(WIFSIGNALED(status));
  if (opened != PROF_OK) { /* no room could be reserved there, so it stands elsewhere, or nowhere */
    print_message("skip: no capture beside the output: %s\n", prof_last_error());
    skip();
  }
  assert_non_null(text);
  assert_has(text, "ended without a stop");
  assert_has(text, "Pool 1: of the dead on cpu:0");
  assert_has(text, "6291456");
  assert_has(text, "Alive at the end");
  prof_free(text);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_report_has_the_figures),
      cmocka_unit_test(what_was_there_before_is_said_to_be_unknown),
      cmocka_unit_test(a_pool_that_knows_no_blocks_has_no_column_of_them),
      cmocka_unit_test(no_line_is_wider_than_asked),
      cmocka_unit_test(the_plot_marks_both_peaks_where_they_are),
      cmocka_unit_test(options_out_of_bounds_are_refused),
      cmocka_unit_test(the_trace_as_raf_prints_it),
      cmocka_unit_test(the_trace_of_raf_begins_at_the_reset),
      cmocka_unit_test(a_trace_without_memory_says_what_to_do),
      cmocka_unit_test(a_pool_in_which_nothing_happened_has_a_line_and_no_plot),
      cmocka_unit_test(lost_events_are_said),
      cmocka_unit_test(several_pools_of_a_device_are_summed_and_older_sessions_take_a_line),
      cmocka_unit_test(names_that_mean_harm_are_made_readable),
      cmocka_unit_test(the_picture_is_valid_xml),
      cmocka_unit_test(the_memory_of_a_process_that_was_killed_is_shown),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
