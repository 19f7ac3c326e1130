/* Texts that mean harm: every byte, ill-formed UTF-8, overlong forms, line separators, NULs,
   </script>, formats, terminal escapes, a MiB at once. They are put into every place that takes a
   text: names, categories, keys, values, formatted values, instants, counters, flows, threads, the
   process, tracks, open scopes. Each goes through a capture and its reader, which hands the bytes
   out as they were given. Each also goes through every export. check_texts.py reads those back by
   the rule of docs/reference/macros.md, "Names".

   "text --write FOLDER" only records and writes; check_texts.py and tests/viewers read FOLDER. */
#define _GNU_SOURCE
#include <pthread.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "read_everything.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum {
  TEXTS_MAX = 640,
  TRACKS = 200,
  OPEN_AT_ONCE = 60,
  MIB = 1 << 20,
  NAME_MAX_BYTES = 63,
  KEY_MAX_BYTES = 64
};

typedef struct hostile {
  char bytes[128];
  uint32_t count;
} hostile;

static struct {
  hostile texts[TEXTS_MAX];
  uint32_t count;
  char folder[256];
} own;

static void add(const char *bytes, size_t count) {
  hostile *const text = &own.texts[own.count++];
  if (own.count == TEXTS_MAX || count >= sizeof text->bytes) abort();
  memset(text->bytes, 0, sizeof text->bytes);
  memcpy(text->bytes, bytes, count);
  text->count = (uint32_t)count;
}

static void make_texts(void) {
#define TEXT(literal) \
  { literal, sizeof(literal) - 1 }
  static const struct {
    const char *bytes;
    size_t count;
  } texts[] = {
      TEXT(" "),
      TEXT("\""),
      TEXT("\\"),
      TEXT("a\\"),
      TEXT("\\\\"),
      TEXT("\\\""),
      TEXT("\"}],"),
      TEXT("a\0b"),
      TEXT("\0"),
      TEXT("\0\0\0"),
      TEXT("</script><script>alert(1)</script>"),
      TEXT("<!--"),
      TEXT("<SCRIPT"),
      TEXT("<"),
      TEXT("<\xff"),
      TEXT("%s%n%d%p%%"),
      TEXT("%"),
      TEXT("%999999999999d%*.*f%1$n"),
      TEXT("\x1b[2J\x1b]0;title\x07"),
      TEXT("\x1b[31m"),
      TEXT("\x9b"
           "2J"),
      TEXT("\xc2\x9b"
           "31m"),
      TEXT("\xc0\xaf"),
      TEXT("\xc0\x80"),
      TEXT("\xe0\x80\xaf"),
      TEXT("\xe0\x9f\xbf"),
      TEXT("\xf0\x80\x80\xaf"),
      TEXT("\xf0\x8f\xbf\xbf"),
      TEXT("\xed\xa0\x80"),
      TEXT("\xed\xa0\xbd\xed\xb8\x80"),
      TEXT("\xf4\x90\x80\x80"),
      TEXT("\xf8\x88\x80\x80\x80"),
      TEXT("\xff\xfe"),
      TEXT("\xc3"),
      TEXT("\xe2\x82"),
      TEXT("\xf0\x9f\x98"),
      TEXT("\xf0\x9f\x98"
           "A"),
      TEXT("\xe2\x80\xa8line\xe2\x80\xa9paragraph"),
      TEXT("\xef\xbb\xbf"
           "mark"),
      TEXT("\xe2\x80\xae"
           "turned"),
      TEXT("\xe2\x81\xa6"
           "isolated"),
      TEXT("\xd8\x9c"
           "arabic mark"),
      TEXT("\xf0\x9f\x98\x80"),
      TEXT("\xe0\xa4\xb9\xe0\xa4\xbf\xe0\xa4\xa8\xe0\xa5\x8d\xe0\xa4\xa6\xe0\xa5\x80"),
      TEXT("\xe0\xb8\x81\xe0\xb8\xb3"),
      TEXT("\xf4\x8f\xbf\xbf"),
      TEXT("\xef\xbf\xbd"),
      TEXT("\xef\xbf\xbe\xef\xbf\xbf"),
      TEXT("\xe7\xb5\x84"),
      TEXT("a\nb\rc\td\x0b\x0c\b"),
      TEXT("\r\n"),
      TEXT("NaN"),
      TEXT("null"),
      TEXT("{\"rank\": 99}"),
      TEXT("ProfilerStep#x"),
      TEXT("../../etc/passwd"),
      TEXT("'; drop table slice; --"),
      TEXT("External id"),
      TEXT("unfinished"),
      TEXT("cut"),
      TEXT("a,b;c"),
      TEXT("=cmd|' /C calc'!A0"),
      TEXT("std::vector<std::pair<int, char>>"),
      /* of 63, 64 and more bytes, so that the bounds of names and keys cut inside a character */
      TEXT("sixty-one bytes, then two of two bytes: .....................\xc3\xa9\xc3\xa9"),
      TEXT(
          "sixty-two bytes, then two of three bytes: ....................\xe2\x82\xac\xe2\x82\xac"),
      TEXT("\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"
           "\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1\1"),
      TEXT("\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"
           "\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\\"),
  };
#undef TEXT
  own.count = 0;
  for (size_t i = 0; i < COUNT_OF(texts); i++) add(texts[i].bytes, texts[i].count);
  for (int byte = 0; byte < 256; byte++) {
    const char alone = (char)byte, between[] = {'x', (char)byte, 'y'};
    add(&alone, 1);
    add(between, 3);
  }
}

/* Places that take a text up to its NUL cannot be given these. */
static int has_nul(const hostile *text) { return memchr(text->bytes, 0, text->count) != NULL; }

/* ---- recording ---- */

static void must(int status, const char *what) {
  if (status == PROF_OK) return;
  fprintf(stderr, "text: %s: %s: %s\n", what, prof_status_name(status), prof_last_error());
  exit(1);
}

static prof_arg number_arg(uint32_t i) { return (prof_arg){"i", PROF_ARG_I64, 0, {.i64 = i}}; }
static prof_arg text_arg(const char *key, const hostile *text) {
  return (prof_arg){key, PROF_ARG_STRING, text->count, {.text = text->bytes}};
}

static uint64_t begin_scope(const prof_details *details) {
  static prof_site site = {
      .file = __FILE__, .function = "begin_scope", .line = __LINE__, .level = 1};
  return prof_i_begin_details_1(&site, details);
}

static void record_scope(uint32_t i) {
  const hostile *const text = &own.texts[i];
  const prof_arg args[] = {number_arg(i), text_arg("value", text)};
  const prof_details details = {.name = text->bytes,
                                .name_bytes = text->count,
                                .category = text->bytes,
                                .category_bytes = text->count,
                                .device = PROF_HOST,
                                .args = {.items = args, .count = 2}};
  prof_i_end_1(begin_scope(&details));
}

/* "%s" of the text: what stands for a value does not read formats again. */
static void record_formatted(uint32_t i) {
  const prof_arg args[] = {number_arg(i), text_arg(NULL, &own.texts[i])};
  const prof_details details = {
      .name = "formatted",
      .name_bytes = PROF_NUL_TERMINATED,
      .category = "formatted",
      .category_bytes = PROF_NUL_TERMINATED,
      .device = PROF_HOST,
      .args = {.items = args, .count = 2, .kind = PROF_ARGS_FORMAT, .format = "%d [%s]"}};
  prof_i_end_1(begin_scope(&details));
}

static void record_key(uint32_t i) {
  if (has_nul(&own.texts[i])) return;
  const prof_arg args[] = {number_arg(i), {own.texts[i].bytes, PROF_ARG_I64, 0, {.i64 = 7}}};
  const prof_details details = {.name = "key",
                                .name_bytes = PROF_NUL_TERMINATED,
                                .category = "key",
                                .category_bytes = PROF_NUL_TERMINATED,
                                .device = PROF_HOST,
                                .args = {.items = args, .count = 2}};
  prof_i_end_1(begin_scope(&details));
}

static void record_marks(uint32_t i) {
  static prof_site site = {
      .file = __FILE__, .function = "record_marks", .line = __LINE__, .level = 1};
  const hostile *const text = &own.texts[i];
  const prof_arg args[] = {number_arg(i), text_arg("value", text)};
  const prof_details details = {.name = text->bytes,
                                .name_bytes = text->count,
                                .category = text->bytes,
                                .category_bytes = text->count,
                                .device = PROF_HOST,
                                .args = {.items = args, .count = 2}};
  prof_i_instant_1(&site, &details);
  if (has_nul(text)) return;
  prof_site counter = {.file = __FILE__, .function = "counter", .line = i, .level = 1};
  prof_i_counter_1(&counter, text->bytes, i);
  PROF_SCOPE("flow");
  prof_flow_begin(i, text->bytes);
  prof_flow_end(i, text->bytes);
}

static void *record_thread(void *of) {
  const uint32_t i = (uint32_t)((const hostile *)of - own.texts);
  must(prof_thread_set_name(own.texts[i].bytes), "thread name");
  WITH_BASE_PROFILER(PROF_HOST, "thread", "thread", PROF_ARGS("i", (int64_t)i), {});
  return NULL;
}

static void record_track(uint32_t i) {
  if (i >= TRACKS || has_nul(&own.texts[i])) return;
  must(prof_track_set_name((prof_device){PROF_DEVICE_CUDA, 0}, i, own.texts[i].bytes),
       "track name");
}

/* The keys that escape alike, or that a mark makes alike. */
static void record_twins(void) {
  static const char *const twins[][3] = {{"\\#", "\\", "\\"},
                                         {"\xff", "\xfe", "\xef\xbf\xbd"},
                                         {"cut#", "cut", "cut"},
                                         {"<#", "<", "<"}};
  for (size_t i = 0; i < COUNT_OF(twins); i++) {
    prof_arg args[3];
    for (int k = 0; k < 3; k++) args[k] = (prof_arg){twins[i][k], PROF_ARG_I64, 0, {.i64 = k}};
    const prof_details details = {.name = "twins",
                                  .name_bytes = PROF_NUL_TERMINATED,
                                  .category = "twins",
                                  .category_bytes = PROF_NUL_TERMINATED,
                                  .device = PROF_HOST,
                                  .args = {.items = args, .count = 3}};
    prof_i_end_1(begin_scope(&details));
  }
}

static void record_huge(void) {
  static const char fills[] = {'n', '"', (char)0xe2, 0x1b};
  char *const huge = malloc(MIB);
  if (!huge) abort();
  for (size_t i = 0; i < COUNT_OF(fills); i++) {
    memset(huge, fills[i], MIB);
    static prof_site site = {
        .file = __FILE__, .function = "record_huge", .line = __LINE__, .level = 1};
    const prof_details details = {.name = huge,
                                  .name_bytes = MIB,
                                  .category = "huge",
                                  .category_bytes = PROF_NUL_TERMINATED,
                                  .flags = PROF_I_CATEGORY_LITERAL,
                                  .device = PROF_HOST};
    prof_i_end_1(prof_i_begin_details_1(&site, &details));
  }
  free(huge);
}

static void dump(const char *name, uint32_t format) {
  char path[512];
  const prof_dump_options options = {.size = sizeof options, .format = format};
  snprintf(path, sizeof path, "%s/%s", own.folder, name);
  must(prof_dump_with(path, &options), name);
}

static void end_capture(void) {
  must(prof_stop(), "stop");
  must(prof_clear(), "clear");
}

/* ---- writing ---- */

static void write_list(void) {
  char path[512];
  snprintf(path, sizeof path, "%s/texts", own.folder);
  FILE *const file = fopen(path, "w");
  if (!file) exit(1);
  for (uint32_t i = 0; i < own.count; i++, fputc('\n', file))
    for (uint32_t k = 0; k < own.texts[i].count; k++)
      fprintf(file, "%02x", (unsigned char)own.texts[i].bytes[k]);
  fclose(file);
}

static void write_table(void) {
  char path[512], *table = NULL;
  prof_trace *trace = NULL;
  const prof_aggregate_options options = {
      .size = sizeof options, .group = PROF_GROUP_NAME, .rows_limit = UINT32_MAX};
  must(prof_get(&trace), "get");
  must(prof_trace_table(trace, &options, &table), "table");
  snprintf(path, sizeof path, "%s/table", own.folder);
  FILE *const file = fopen(path, "w");
  if (!file || fputs(table, file) < 0 || fclose(file) != 0) exit(1);
  prof_free(table);
  prof_trace_destroy(trace);
}

static void write_all_of_it(void) {
  must(prof_start(1), "start");
  for (uint32_t i = 0; i < own.count; i++) {
    record_scope(i);
    record_formatted(i);
    record_key(i);
    record_marks(i);
    record_track(i);
    pthread_t thread;
    if (has_nul(&own.texts[i])) continue;
    if (pthread_create(&thread, NULL, record_thread, &own.texts[i]) != 0 ||
        pthread_join(thread, NULL) != 0)
      exit(1);
  }
  record_twins();
  record_huge();
  dump("texts.json", PROF_FORMAT_CHROME);
  dump("texts-raf.json", PROF_FORMAT_RAF);
  dump("texts.prof", PROF_FORMAT_CAPTURE);
  write_table();
  end_capture();
}

/* process-N.json and, of the first, .prof: the process has the N-th text for its name. */
static void write_processes(void) {
  for (uint32_t i = 0; i < own.count; i++) {
    char name[64];
    if (has_nul(&own.texts[i])) continue;
    must(prof_process_set_name(own.texts[i].bytes), "process name");
    must(prof_start(1), "start");
    PROF_INSTANT("mark", "mark", PROF_NO_ARGS);
    snprintf(name, sizeof name, "process-%u.json", i);
    dump(name, PROF_FORMAT_CHROME);
    snprintf(name, sizeof name, "process-%u.prof", i);
    if (i < 80) dump(name, PROF_FORMAT_CAPTURE);
    end_capture();
  }
  must(prof_process_set_name("text"), "process name");
}

/* open-N.prof: texts N and on are the names of open scopes. */
static void write_open(void) {
  for (uint32_t first = 0; first < own.count; first += OPEN_AT_ONCE) {
    uint64_t starts[OPEN_AT_ONCE];
    uint32_t count = 0;
    char name[64];
    must(prof_start(1), "start");
    for (; count < OPEN_AT_ONCE && first + count < own.count; count++) {
      const hostile *const text = &own.texts[first + count];
      const prof_details details = {.name = text->bytes,
                                    .name_bytes = text->count,
                                    .category = "open",
                                    .category_bytes = PROF_NUL_TERMINATED,
                                    .device = PROF_HOST};
      starts[count] = begin_scope(&details);
    }
    snprintf(name, sizeof name, "open-%u.prof", first);
    dump(name, PROF_FORMAT_CAPTURE);
    while (count > 0) prof_i_end_1(starts[--count]);
    end_capture();
  }
}

static void write_folder(const char *folder) {
  snprintf(own.folder, sizeof own.folder, "%s", folder);
  make_texts();
  write_list();
  write_all_of_it();
  write_processes();
  write_open();
}

/* ---- the tests ---- */

static int make_folder(void **state) {
  char folder[] = "/tmp/prof-text-XXXXXX";
  (void)state;
  if (!mkdtemp(folder)) return -1;
  write_folder(folder);
  return 0;
}

static int remove_folder(void **state) {
  char command[300];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", own.folder);
  return system(command);
}

static void assert_bytes(const char *what, const hostile *wanted, uint32_t most, const char *got,
                         uint64_t count) {
  const uint32_t bytes = wanted->count < most ? wanted->count : most;
  if (count == bytes && (bytes == 0 || memcmp(got, wanted->bytes, bytes) == 0)) return;
  fail_msg("%s of text %td: %llu bytes '%.*s'", what, wanted - own.texts, (unsigned long long)count,
           (int)count, got);
}

/* Which text the event was made for: its argument i. */
static const hostile *text_of(const prof_event *event) {
  assert_true(event->arg_count == 2 && event->args[0].type == PROF_ARG_I64 &&
              event->args[0].value.i64 < own.count);
  return &own.texts[event->args[0].value.i64];
}

static int is_named(const prof_event *event, const char *name) {
  return event->category_bytes == strlen(name) && memcmp(event->category, name, strlen(name)) == 0;
}

/* The capture is written to a file, read from there, and has each text as it was given. */
static void the_reader_hands_out_the_bytes_as_they_were_given(void **state) {
  (void)state;
  static prof_event event;
  char path[512];
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  uint32_t named = 0, formatted = 0, keys = 0, instants = 0, counters = 0, flows = 0, huge = 0,
           without_nul = 0;
  snprintf(path, sizeof path, "%s/texts.prof", own.folder);
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  assert_int_equal(info_of(trace).bad_count, 0);
  read_events(trace);
  read_tables(trace);
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind == PROF_EVENT_COUNTER) {
      assert_bytes("counter", &own.texts[(uint32_t)event.value], UINT32_MAX, event.name,
                   event.name_bytes);
      counters++;
    } else if (event.kind == PROF_EVENT_FLOW_BEGIN || event.kind == PROF_EVENT_FLOW_END) {
      assert_bytes("flow", &own.texts[event.id], KEY_MAX_BYTES, event.name, event.name_bytes);
      flows++;
    } else if (is_named(&event, "huge")) {
      assert_true(event.flags & PROF_EVENT_CUT);
      assert_in_range(event.name_bytes, 16000, 16384);
      for (uint32_t i = 1; i < event.name_bytes; i++)
        assert_int_equal(event.name[i], event.name[0]);
      huge++;
    } else if (is_named(&event, "key") && event.arg_count == 2) {
      assert_bytes("key", text_of(&event), KEY_MAX_BYTES, event.args[1].key,
                   event.args[1].key_bytes);
      keys++;
    } else if (is_named(&event, "formatted")) {
      assert_bytes("formatted", text_of(&event), UINT32_MAX, event.args[1].value.text.data,
                   event.args[1].value.text.bytes);
      formatted++;
    } else if (event.arg_count == 2) {
      const hostile *const text = text_of(&event);
      assert_bytes("name", text, UINT32_MAX, event.name, event.name_bytes);
      assert_bytes("category", text, UINT32_MAX, event.category, event.category_bytes);
      assert_bytes("value", text, UINT32_MAX, event.args[1].value.text.data,
                   event.args[1].value.text.bytes);
      if (event.kind == PROF_EVENT_SCOPE)
        named++;
      else
        instants++;
    } else if (is_named(&event, "thread")) {
      prof_trace_thread thread = {.size = sizeof thread};
      const uint32_t most = NAME_MAX_BYTES;
      assert_int_equal(prof_trace_thread_get(trace, event.thread, &thread), PROF_OK);
      assert_bytes("thread", &own.texts[event.args[0].value.i64], most, thread.name,
                   strnlen(thread.name, sizeof thread.name));
      without_nul++;
    }
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  assert_int_equal(named, own.count);
  assert_int_equal(formatted, own.count);
  assert_int_equal(instants, own.count);
  assert_true(without_nul >= 255 * 2);
  assert_int_equal(keys, without_nul);
  assert_int_equal(counters, without_nul);
  assert_int_equal(flows, 2 * without_nul);
  assert_int_equal(huge, 4);
}

/* Chrome JSON, RAF's log, tables, prof info, prof table, prof dump: read back by an independent
   program. */
static void every_export_gives_the_text_back_by_the_rule(void **state) {
  (void)state;
  const char *const source = getenv("PROF_TEST_SOURCE_DIR"), *const build =
                                                                 getenv("PROF_TEST_BUILD_DIR");
  char line[2048];
  if (system("python3 -c '' >/dev/null 2>&1") != 0) {
    print_message("skip: python3 is missing\n");
    skip();
  }
  snprintf(line, sizeof line, "python3 '%s/tests/hostile/check_texts.py' '%s' '%s/prof'",
           source ? source : ".", own.folder, build ? build : ".");
  const int status = system(line);
  if (status != 0)
    fail_msg("check_texts.py: exit status %d", WIFEXITED(status) ? WEXITSTATUS(status) : -1);
}

/* What the library itself says on stderr, of values that whoever starts the program chose. */
static void a_complaint_about_the_environment_is_one_plain_line(void **state) {
  (void)state;
  static const char *const names[] = {"PROF_LEVEL", "PROF_OUTPUT", "PROF_POLICY", "PROF_CLOCK"};
  char self[512] = "", line[600], said[4096];
  assert_true(readlink("/proc/self/exe", self, sizeof self - 1) > 0);
  snprintf(line, sizeof line, "'%s' --nothing 2>&1", self);
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    setenv("PROF_LEVEL", "1", 1);
    setenv(names[i],
           "/no/such\x1b[2J\x1b]0;title\x07\r\nfolder\xc2\x9b"
           "31m\x9b"
           "2J \xe2\x82\xac\x7f",
           1);
    FILE *const pipe = popen(line, "r");
    assert_non_null(pipe);
    said[fread(said, 1, sizeof said - 1, pipe)] = '\0';
    assert_int_equal(pclose(pipe), 0);
    unsetenv(names[i]);
    assert_non_null(strstr(said, "folder"));
    assert_ptr_equal(strchr(said, '\n'), said + strlen(said) - 1);
    assert_non_null(strstr(said, "\xe2\x82\xac")); /* what is a character stays one */
    for (const unsigned char *at = (const unsigned char *)said; at[1]; at++)
      if (*at < 0x20 || *at == 0x7f || *at == 0x9b)
        fail_msg("%s: 0x%02x in '%s'", names[i], *at, said);
  }
  unsetenv("PROF_LEVEL");
}

int main(int argc, char **argv) {
  if (argc == 2 && strcmp(argv[1], "--nothing") == 0) return 0;
  if (argc == 3 && strcmp(argv[1], "--write") == 0) {
    write_folder(argv[2]);
    return 0;
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_reader_hands_out_the_bytes_as_they_were_given),
      cmocka_unit_test(every_export_gives_the_text_back_by_the_rule),
      cmocka_unit_test(a_complaint_about_the_environment_is_one_plain_line),
  };
  return cmocka_run_group_tests_name("text", tests, make_folder, remove_folder);
}
