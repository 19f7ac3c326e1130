/* usage: make_traces FOLDER

   Makes the traces that the viewers' engines are shown. Each kind is recorded, dumped and forgotten
   in turn. manifest.json in FOLDER says, for each file, how many of each thing this program
   recorded. It is the oracle that the file, both engines and prof's own account must equal. Uses
   the public face alone. */
#define _GNU_SOURCE
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <prof/profiler.h>
#include <prof/trace.h>

/* What one trace holds. */
typedef struct counts {
  unsigned scopes, open, steps, instants, counters, arrows, findings;
} counts;

static struct {
  const char *folder;
  FILE *manifest;
  counts now;
  unsigned file_count;
} own;

static void stop_with(const char *what, int status) {
  fprintf(stderr, "make_traces: %s: %s: %s\n", what, prof_status_name(status), prof_last_error());
  exit(1);
}

static void must(int status, const char *what) {
  if (status != PROF_OK) stop_with(what, status);
}

/* Writes the file, and what it holds into the manifest. */
static void dump_as(const char *name, prof_dump_options options) {
  char path[4096];
  snprintf(path, sizeof path, "%s/%s", own.folder, name);
  options.size = sizeof options;
  must(prof_dump_with(path, &options), name);
  fprintf(own.manifest,
          "%s\n  {\"file\": \"%s\", \"scopes\": %u, \"open\": %u, \"steps\": %u, \"instants\": %u, "
          "\"counters\": %u, "
          "\"arrows\": %u, \"findings\": %u}",
          own.file_count++ > 0 ? "," : "", name, own.now.scopes, own.now.open, own.now.steps,
          own.now.instants, own.now.counters, own.now.arrows, own.now.findings);
}

/* And the capture beside it, for other formats. */
static void dump(const char *name) {
  char path[4096];
  dump_as(name, (prof_dump_options){0});
  snprintf(path, sizeof path, "%s/%s.prof", own.folder, name);
  must(prof_dump(path), path);
}

static void begin(void) {
  own.now = (counts){0};
  must(prof_start(2), "start");
}

static void end(void) {
  const int status = prof_stop();
  if (status != PROF_OK) stop_with("stop", status);
  must(prof_clear(), "clear");
}

/* One scope of a run-time name; NULs count when the length is given. */
static void named(const char *name, uint32_t bytes, const char *category, uint32_t category_bytes) {
  static prof_site site = {.file = __FILE__, .function = "named", .line = __LINE__, .level = 1};
  const prof_details details = {.name = name,
                                .name_bytes = bytes,
                                .category = category,
                                .category_bytes = category_bytes,
                                .device = PROF_HOST};
  prof_i_end_1(prof_i_begin_details_1(&site, &details));
  own.now.scopes++;
}

/* ---- the kinds ---- */

static void plain(void) {
  for (int i = 0; i < 1000; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "matmul", "operator", PROF_NO_ARGS, {
      __asm__ volatile("" ::: "memory");
    });
    own.now.scopes++;
  }
}

static void nest(int depth) {
  PROF_SCOPE("nest");
  own.now.scopes++;
  for (int i = 0; i < 2 && depth > 0; i++) nest(depth - 1);
}

static void dive(int depth) {
  PROF_SCOPE("dive");
  own.now.scopes++;
  if (depth > 0) dive(depth - 1);
}

static void hostile(void) {
  char text[16];
  for (int byte = 0; byte < 256; byte++) {
    const int bytes = snprintf(text, sizeof text, "x_y");
    text[1] = (char)byte;
    named(text, (uint32_t)bytes, text, (uint32_t)bytes);
    named(text + 1, 1, text + 1, 1);
  }
  static const char *const names[] = {"",
                                      " ",
                                      "\"",
                                      "\\",
                                      "\\\"",
                                      "\"}],",
                                      "</script><script>alert(1)</script>",
                                      "<!--",
                                      "%s%n%d%p%%",
                                      "\x1b[2J\x1b]0;title\x07",
                                      "\xc0\xaf",
                                      "\xe0\x80\xaf",
                                      "\xf0\x80\x80\xaf",
                                      "\xed\xa0\x80",
                                      "\xed\xa0\xbd\xed\xb8\x80",
                                      "\xf4\x90\x80\x80",
                                      "\xff\xfe",
                                      "\xc3",
                                      "\xe2\x80\xa8line\xe2\x80\xa9",
                                      "\xef\xbb\xbf"
                                      "bom",
                                      "\xe2\x80\xae"
                                      "rtl",
                                      "\xc2\x9b"
                                      "31m",
                                      "\xf0\x9f\x98\x80",
                                      "a\nb\rc\td",
                                      "NaN",
                                      "null",
                                      "{\"rank\": 99}",
                                      "ProfilerStep#x",
                                      "../../etc/passwd",
                                      "'; drop table slice; --",
                                      "std::vector<std::pair<int, char>>"};
  for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
    named(names[i], PROF_NUL_TERMINATED, names[i], PROF_NUL_TERMINATED);
  enum { LONG = 1 << 20 };
  char *const name = malloc(LONG + 1);
  memset(name, 'n', LONG);
  name[LONG] = 0;
  named(name, PROF_NUL_TERMINATED, "long", PROF_NUL_TERMINATED);
  memset(name, '"', LONG);
  named(name, LONG, "long", PROF_NUL_TERMINATED);
  memset(name, 0xe2, LONG);
  named(name, LONG, "long", PROF_NUL_TERMINATED);
  free(name);
}

/* Names of all that a viewer shows beside scopes. */
static void hostile_elsewhere(void) {
  prof_thread_set_name("th\"read\\\xff</script>\x1b[0m");
  prof_process_set_name("pro\"cess\\\xc0\x80\n");
  named("scope", PROF_NUL_TERMINATED, "c", PROF_NUL_TERMINATED);
  PROF_INSTANT("in\"stant\\\xff", "cat\"\\\xfe", PROF_ARGS("key\"\\\xff", "value\"\\\xff\n"));
  PROF_COUNTER("coun\"ter\\\xff</script>", 1.5);
  own.now.instants++;
  own.now.counters++;
  prof_thread_set_name("main");
  prof_process_set_name("make_traces");
}

static void arguments(void) {
  char text[] = "run-time";
  const void *const pointer = &own;
  WITH_BASE_PROFILER(PROF_HOST, "integers", "args",
                     PROF_ARGS("zero", 0, "minus", -1, "i64 min", INT64_MIN, "i64 max", INT64_MAX,
                               "u64 max", UINT64_MAX, "2^53", (int64_t)1 << 53, "2^53+1",
                               ((int64_t)1 << 53) + 1, "char", (char)'c'),
                     {});
  WITH_BASE_PROFILER(PROF_HOST, "doubles", "args",
                     PROF_ARGS("half", 0.5, "nan", (double)NAN, "inf", (double)INFINITY,
                               "minus inf", -(double)INFINITY, "tiny", 5e-324, "huge",
                               1.7976931348623157e308, "minus zero", -0.0, "float", 1.5f),
                     {});
  WITH_BASE_PROFILER(
      PROF_HOST, "others", "args",
      PROF_ARGS("true", (_Bool)1, "false", (_Bool)0, "text", text, "null", (const char *)NULL,
                "pointer", pointer, "quote", "\"", "bad", "\xff\xc3(", "empty", ""),
      {});
  WITH_BASE_PROFILER(PROF_HOST, "the same key", "args",
                     PROF_ARGS("key", 1, "key", 2, "key#", 3, "External id", 4, "\xff", 5, "\xfe",
                               6, "", 7, "cut", 8),
                     {});
  WITH_BASE_PROFILER(PROF_HOST, "formatted", "args",
                     PROF_FMT("%d of %s: %5.2f%% \"%x\"", 3, text, 99.5, 255), {});
  WITH_BASE_PROFILER(PROF_HOST, "wide", "args", PROF_FMT("%300d", 1), {});
  const int64_t a[] = {2, 3}, b[] = {3, 4}, none[] = {0};
  WITH_BASE_PROFILER(PROF_HOST, "shapes", "operator",
                     PROF_SHAPES(PROF_TENSOR(a, 2, PROF_F32), PROF_TENSOR(b, 2, PROF_BF16),
                                 PROF_TENSOR(none, 0, PROF_I64)),
                     {});
  own.now.scopes += 7;
}

static void marks(void) {
  for (int i = 0; i < 5; i++) {
    {
      PROF_SCOPE("step body");
      own.now.scopes++;
      PROF_COUNTER("memory", i * 1000.25);
      PROF_COUNTER("loss", i % 2 == 0 ? (double)NAN : 0.125);
      own.now.counters += 1 + (unsigned)(i % 2);
      PROF_INSTANT("mark", "marks", PROF_ARGS("i", i));
      PROF_INSTANT("bare mark", "marks", PROF_NO_ARGS);
      own.now.instants += 2;
    }
    prof_step();
    own.now.steps++;
  }
}

static void *receive(void *id) {
  {
    PROF_SCOPE("receive");
    prof_flow_end(*(uint64_t *)id, "message");
  }
  return NULL;
}

static void arrows(void) {
  static const uint64_t ids[] = {0, 1, 42, (uint64_t)1 << 53, UINT64_MAX};
  for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
    uint64_t id = ids[i];
    pthread_t thread;
    {
      PROF_SCOPE("send");
      prof_flow_begin(id, "message");
      own.now.scopes++;
    }
    pthread_create(&thread, NULL, receive, &id);
    pthread_join(thread, NULL);
    own.now.scopes++;
    own.now.arrows++;
  }
  for (int i = 0; i < 3; i++) { /* the same id again and again, one after the other */
    {
      PROF_SCOPE("from");
      prof_flow_begin(7, "again");
    }
    {
      PROF_SCOPE("to");
      prof_flow_end(7, "another name");
    }
    own.now.scopes += 2;
    own.now.arrows++;
  }
  {
    PROF_SCOPE("alone");
    own.now.scopes++;
    prof_flow_begin(1000, "no end");
    prof_flow_end(1001, "no beginning");
  }
  prof_flow_begin(1002, "outside");
  {
    PROF_SCOPE("end of outside");
    own.now.scopes++;
    prof_flow_end(1002, "outside");
    own.now.arrows++;
  }
}

static uint64_t monotonic_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A trace in ns has no order of two begins or ends that are less than 1 ns apart. */
static void wait_for_another_ns(void) {
  for (const uint64_t begun_ns = monotonic_ns(); monotonic_ns() - begun_ns < 10;) continue;
}

/* Scopes that end on another thread, in each other's way. */
enum { OVERLAPS = 20 };

static void *end_all(void *starts) {
  for (size_t i = 0; i < OVERLAPS; i++) {
    prof_scope_end(((const uint64_t *)starts)[i]);
    wait_for_another_ns();
  }
  return NULL;
}

static void overlaps(void) {
  uint64_t starts[OVERLAPS];
  pthread_t thread;
  for (size_t i = 0; i < OVERLAPS; i++) {
    starts[i] = prof_scope_begin(1, i % 2 == 0 ? "even" : "odd", "async", NULL);
    wait_for_another_ns();
  }
  pthread_create(&thread, NULL, end_all, starts);
  pthread_join(thread, NULL);
  own.now.scopes += OVERLAPS;
  nest(3);
}

static void *work(void *number) {
  char name[32];
  snprintf(name, sizeof name, "worker %d", *(int *)number);
  prof_thread_set_name(name);
  for (int i = 0; i < 500; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "task", "work", PROF_NO_ARGS, { PROF_SCOPE("inner"); });
  }
  return NULL;
}

static void threads(void) {
  enum { THREADS = 16 };
  pthread_t all[THREADS];
  int numbers[THREADS];
  for (int i = 0; i < THREADS; i++) {
    numbers[i] = i;
    pthread_create(&all[i], NULL, work, &numbers[i]);
  }
  for (int i = 0; i < THREADS; i++) pthread_join(all[i], NULL);
  own.now.scopes += THREADS * 1000;
}

static void devices(void) {
  const prof_device gpu = {PROF_DEVICE_CUDA, 0}, other = {PROF_DEVICE_OPENCL, 1},
                    unknown = {99, -1};
  prof_track_set_name(gpu, 7, "compute \"stream\"");
  prof_track_set_name(other, 1, "queue");
  WITH_GPU_PROFILER(gpu, 7, "launch", "kernel launch", PROF_ARGS("grid", 128), {});
  WITH_GPU_PROFILER(other, UINT64_MAX, "enqueue", "kernel launch", PROF_NO_ARGS, {});
  WITH_GPU_PROFILER(unknown, 0, "odd", "kernel launch", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(gpu, "on a device, no stream", "operator", PROF_NO_ARGS, {});
  own.now.scopes += 4;
}

/* ---- all of them ---- */

static void each(const char *file, void (*record)(void)) {
  begin();
  record();
  dump(file);
  end();
}

static void nest_seven(void) { nest(7); }

static void dive_600(void) {
  dive(599);
  own.now.findings = 1;
}

static void nothing(void) {}

static void write_unfinished(void) {
  begin();
  {
    PROF_SCOPE("outer");
    const char *volatile name = "run-time \"name\"";
    WITH_BASE_PROFILER(PROF_HOST, name, "operator", PROF_ARGS("n", 1), {
      plain();
      own.now.open = 2;
      dump("unfinished.json");
      own.now.open = 0;
    });
  }
  end();
}

/* What is left out stands on the time line: a site whose name would break JSON is muted, and one
   more. */
static void write_muted(void) {
  begin();
  plain();
  for (int i = 0; i < 2; i++) {
    WITH_BASE_PROFILER(PROF_HOST, "muted \"</script>\xff", "operator", PROF_NO_ARGS, {});
    PROF_INSTANT("muted mark", "marks", PROF_NO_ARGS);
    if (i == 0) must(prof_mute("muted*", NULL, 1), "mute");
  }
  own.now.scopes++;
  own.now.instants++;
  must(prof_mute("muted*", NULL, 0), "mute");
  dump("muted.json");
  dump_as("raf-muted.json", (prof_dump_options){.format = PROF_FORMAT_RAF});
  end();
}

static void write_other_formats(void) {
  begin();
  nest(7);
  dump("nested.json.gz");
  dump_as("forced-gzip", (prof_dump_options){.gzip = 1});
  dump_as("raf-nested.json", (prof_dump_options){.format = PROF_FORMAT_RAF});
  dump("nested.prof");
  end();
  begin();
  hostile();
  threads();
  arguments();
  overlaps();
  dump_as("raf-all.json.gz", (prof_dump_options){.format = PROF_FORMAT_RAF});
  dump("all.json.gz");
  end();
}

int main(int count, char **words) {
  if (count != 2) {
    fprintf(stderr, "usage: make_traces FOLDER\n");
    return 2;
  }
  char path[4096];
  own.folder = words[1];
  snprintf(path, sizeof path, "%s/manifest.json", own.folder);
  own.manifest = fopen(path, "w");
  if (own.manifest == NULL) {
    perror(path);
    return 1;
  }
  fputs("[", own.manifest);
  must(prof_rank_set(3, 8), "rank");
  each("empty.json", nothing);
  each("plain.json", plain);
  each("nested.json", nest_seven);
  each("deep.json", dive_600);
  each("hostile.json", hostile);
  each("hostile-elsewhere.json", hostile_elsewhere);
  each("arguments.json", arguments);
  each("marks.json", marks);
  each("arrows.json", arrows);
  each("overlaps.json", overlaps);
  each("threads.json", threads);
  each("devices.json", devices);
  write_unfinished();
  write_muted();
  write_other_formats();
  fputs("\n]\n", own.manifest);
  return fclose(own.manifest) == 0 ? 0 : 1;
}
