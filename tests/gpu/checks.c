/* What prof records of a CUDA device, beside what the program itself has counted and timed: a line a check, "ok", "failed" or "skipped", with its figure. All of them, or those that are named. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <stdbool.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gpu.h"

static const prof_device device = {PROF_DEVICE_CUDA, 0};
static int failures;

__attribute__((format(printf, 3, 4))) static void say(const char *name, bool is_good, const char *format, ...) {
  va_list arguments;
  printf("%-8s %-28s ", is_good ? "ok" : "failed", name);
  va_start(arguments, format);
  vprintf(format, arguments);
  va_end(arguments);
  putchar('\n');
  fflush(stdout);
  failures += !is_good;
}

/* ---- what was recorded ---- */

typedef struct sums {
  uint64_t records, sides, early, lost, scopes_in_table, launched_in_scope, kernels;
  double clock_error_us;
  prof_trace_info info;
} sums;

static uint64_t handle_of(void *stream) { return (uint64_t)(uintptr_t)stream; }

static void start(uint32_t level) {
  const prof_options options = {.size = sizeof options, .level = level, .devices = PROF_DEVICES_RECORDS};
  if (prof_start_with(&options) != PROF_OK) {
    fprintf(stderr, "%s\n", prof_last_error());
    exit(2);
  }
}

static sums sums_of(const prof_trace *trace) {
  const prof_aggregate_options options = {.size = sizeof options, .group = PROF_GROUP_NAME, .rows_limit = UINT32_MAX};
  prof_rows *rows = NULL;
  sums s;
  memset(&s, 0, sizeof s);
  s.info.size = sizeof s.info;
  prof_trace_info_get(trace, &s.info);
  for (uint32_t i = 0; i < s.info.device_count; i++) {
    prof_trace_device about = {.size = sizeof about};
    prof_trace_device_get(trace, i, &about);
    s.records += about.record_count;
    s.sides += about.scope_count;
    s.early += about.early_count;
    if ((double)about.clock_error_ns / 1e3 > s.clock_error_us) s.clock_error_us = (double)about.clock_error_ns / 1e3;
  }
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (i != PROF_LOSS_OVERWRITTEN && i != PROF_LOSS_CLEARED) s.lost += s.info.lost_count[i]; /* those two were there */
  if (prof_trace_aggregate(trace, &options, &rows) == PROF_OK)
    for (uint64_t i = 0; i < rows->row_count; i++)
      if (strcmp(rows->rows[i].name, "work") == 0) s.launched_in_scope += rows->rows[i].device_count;
  prof_rows_destroy(rows);
  return s;
}

static sums before; /* counts go on from check to check */

static void begin_count(void) {
  prof_trace *trace = NULL;
  if (prof_get(&trace) == PROF_OK) before = sums_of(trace);
  prof_trace_destroy(trace);
}

static sums since_before(const prof_trace *trace) {
  sums s = sums_of(trace);
  s.records -= before.records;
  s.sides -= before.sides;
  s.early -= before.early;
  s.lost -= before.lost;
  return s;
}

/* What has come once so much has, or 10 s have passed. The trace is the caller's. */
static prof_trace *settle(uint64_t records, uint64_t sides, sums *sums_out) {
  for (int i = 0;; i++, usleep(20000)) {
    prof_trace *trace = NULL;
    if (prof_get(&trace) != PROF_OK) return NULL;
    *sums_out = since_before(trace);
    if ((sums_out->records + sums_out->lost >= records && sums_out->sides + sums_out->lost >= sides) || i == 500) return trace;
    prof_trace_destroy(trace);
  }
}

static bool is_text(const char *text, uint32_t bytes, const char *wanted) { return bytes == strlen(wanted) && memcmp(text, wanted, bytes) == 0; }

/* Of the device's events of that name: how many, and how long each was, us. */
static size_t durations_of(const prof_trace *trace, const char *name, double *us, size_t room) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  size_t count = 0;
  if (prof_cursor_create(trace, &cursor) != PROF_OK) return 0;
  while (prof_cursor_next(cursor, &event) == 1) {
    if (!(event.flags & PROF_EVENT_ON_DEVICE) || !is_text(event.name, event.name_bytes, name)) continue;
    if (count < room) us[count] = (double)event.duration_ns / 1e3;
    count++;
  }
  prof_cursor_destroy(cursor);
  return count;
}

/* ---- the checks ---- */

static void counts(void) {
  enum { KERNELS = 1000, COPIES = 100 };
  static char room[1 << 16];
  static double us[KERNELS];
  unsigned long long at = 0;
  void *const stream = gpu_stream();
  sums s;
  gpu.cuMemAlloc_v2(&at, sizeof room);
  start(1);
  for (int i = 0; i < KERNELS; i++) WITH_BASE_PROFILER(PROF_HOST, "work", "check", PROF_NO_ARGS, { gpu_launch(stream, 2000); });
  for (int i = 0; i < COPIES; i++)
    WITH_BASE_PROFILER(PROF_HOST, "work", "check", PROF_NO_ARGS, {
      gpu.cuMemcpyHtoDAsync_v2(at, room, sizeof room, stream);
      gpu.cuMemsetD8Async(at, 1, sizeof room, stream);
      gpu.cuMemcpyDtoHAsync_v2(room, at, sizeof room, stream);
    });
  gpu.cuStreamSynchronize(stream);
  prof_trace *const trace = settle(KERNELS + 3 * COPIES, 0, &s);
  prof_stop();
  const size_t kernels = durations_of(trace, "busy_for", us, KERNELS);
  say("counts", s.records == KERNELS + 3 * COPIES && kernels == KERNELS && s.lost == 0, "%lu of %d records, %zu of %d kernels, %lu lost", (unsigned long)s.records, KERNELS + 3 * COPIES, kernels, KERNELS, (unsigned long)s.lost);
  say("launched by their scopes", s.launched_in_scope == KERNELS + 3 * COPIES, "%lu of %d", (unsigned long)s.launched_in_scope, KERNELS + 3 * COPIES);
  say("none before its launch", s.early == 0, "%lu moved; the clock's error is %.3f us at most", (unsigned long)s.early, s.clock_error_us);
  prof_trace_destroy(trace);
  gpu.cuMemFree_v2(at);
}

/* A kernel's record beside two events around it, which have the launch's gaps in them. */
static void times(void) {
  enum { KERNELS = 200, KERNEL_NS = 1000000 };
  static double us[KERNELS], event_us[KERNELS], off[KERNELS];
  void *const stream = gpu_stream(), *events[2];
  sums s;
  for (int i = 0; i < 2; i++) gpu.cuEventCreate(&events[i], 0);
  start(1);
  for (int i = 0; i < KERNELS; i++) {
    float ms = 0;
    gpu.cuEventRecord(events[0], stream);
    gpu_launch(stream, KERNEL_NS);
    gpu.cuEventRecord(events[1], stream);
    gpu.cuEventSynchronize(events[1]);
    gpu.cuEventElapsedTime(&ms, events[0], events[1]);
    event_us[i] = (double)ms * 1e3;
  }
  prof_trace *const trace = settle(KERNELS, 0, &s);
  prof_stop();
  const size_t count = durations_of(trace, "busy_for", us, KERNELS);
  for (size_t i = 0; i < KERNELS; i++) off[i] = event_us[i] - us[i];
  const double least = gpu_quantile(off, KERNELS, 0), median = gpu_quantile(off, KERNELS, 0.5);
  say("times", count == KERNELS && gpu_quantile(us, KERNELS, 0) >= KERNEL_NS / 1e3 - 2 && least > -2 && median < 20, "events around a kernel are longer by %.2f us (least %.2f, most %.2f)", median, least, gpu_quantile(off, KERNELS, 1));
  for (int i = 0; i < 2; i++) gpu.cuEventDestroy_v2(events[i]);
  prof_trace_destroy(trace);
}

/* The scope's side by events, and the kernel inside of it by CUPTI: two clocks. */
static void sides(void) {
  enum { SCOPES = 500 };
  static double side_us[SCOPES], us[SCOPES];
  void *const stream = gpu_stream();
  sums s;
  start(1);
  for (int i = 0; i < SCOPES; i++) {
    WITH_CUDA_PROFILER(device, handle_of(stream), "work", "check", PROF_NO_ARGS, { gpu_launch(stream, 200000); });
    if (i % 50 == 49) gpu.cuStreamSynchronize(stream);
  }
  gpu.cuStreamSynchronize(stream);
  prof_trace *const trace = settle(SCOPES, SCOPES, &s);
  prof_stop();
  const size_t count = durations_of(trace, "work", side_us, SCOPES), kernels = durations_of(trace, "busy_for", us, SCOPES);
  const double difference = gpu_quantile(side_us, SCOPES, 0.5) - gpu_quantile(us, SCOPES, 0.5);
  say("scopes on a stream", count == SCOPES && kernels == SCOPES && s.lost == 0 && difference > -2 && difference < 20, "%zu sides, %zu kernels; a side is longer by %.2f us (median); the clock's error is %.3f us at most", count, kernels, difference, s.clock_error_us);
  prof_trace_destroy(trace);
}

static void graphs(void) {
  enum { NODES = 10, LAUNCHES = 100 };
  static double us[NODES * LAUNCHES];
  void *const stream = gpu_stream(), *graph = NULL, *executable = NULL;
  sums s;
  start(1);
  const int begun = gpu.cuStreamBeginCapture_v2(stream, 0);
  for (int i = 0; i < NODES; i++) WITH_CUDA_PROFILER(device, handle_of(stream), "into the graph", "check", PROF_NO_ARGS, { gpu_launch(stream, 2000); });
  const int ended = gpu.cuStreamEndCapture(stream, &graph), made = ended ? ended : gpu.cuGraphInstantiateWithFlags(&executable, graph, 0);
  for (int i = 0; i < LAUNCHES && !made; i++) WITH_BASE_PROFILER(PROF_HOST, "work", "check", PROF_NO_ARGS, { gpu.cuGraphLaunch(executable, stream); });
  gpu.cuStreamSynchronize(stream);
  prof_trace *const trace = settle(NODES * LAUNCHES, 0, &s);
  prof_stop();
  const size_t kernels = durations_of(trace, "busy_for", us, NODES * LAUNCHES);
  say("graphs", !begun && !made && kernels == NODES * LAUNCHES && s.launched_in_scope == NODES * LAUNCHES, "capture %d, %d; %zu of %d kernels, %lu launched by their scope", begun, made, kernels, NODES * LAUNCHES, (unsigned long)s.launched_in_scope);
  prof_trace_destroy(trace);
}

static uint64_t resident_kib(void) {
  char line[256];
  unsigned long pages = 0, resident = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file && fgets(line, sizeof line, file) && sscanf(line, "%lu %lu", &pages, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return resident * 4;
}

/* Into a ring: what is recorded takes no more memory, so what grows is prof's, CUPTI's or the driver's. */
static void many(void) {
  enum { MANY = 1000000, WARM = 50000 };
  const prof_options options = {.size = sizeof options, .level = 1, .devices = PROF_DEVICES_RECORDS, .policy = PROF_POLICY_RING, .cap_bytes = 64 << 20};
  void *const stream = gpu_stream();
  uint64_t at_first = 0;
  sums s;
  if (prof_start_with(&options) != PROF_OK) return say("a million launches", false, "%s", prof_last_error());
  begin_count(); /* a ring is another capture */
  const double from = gpu_now_ns();
  for (int i = 0; i < MANY; i++) {
    gpu_launch(stream, 0);
    if (i == WARM) at_first = resident_kib();
  }
  gpu.cuStreamSynchronize(stream);
  const double took = gpu_now_ns() - from;
  prof_trace *const trace = settle(MANY, 0, &s);
  const int64_t grown = (int64_t)resident_kib() - (int64_t)at_first;
  prof_stop();
  say("a million launches", s.records + s.lost >= MANY, "%lu there, %lu lost and counted; %.2f us a launch; %ld KiB more than after %d", (unsigned long)s.records, (unsigned long)s.lost, took / MANY / 1e3, (long)grown, WARM);
  prof_trace_destroy(trace);
}

static void again_and_again(void) {
  enum { TIMES = 100 };
  void *const stream = gpu_stream();
  prof_trace *trace = NULL;
  for (int i = 0; i < TIMES; i++) {
    start(1 + (uint32_t)i % 2);
    gpu_launch(stream, 1000);
    gpu.cuStreamSynchronize(stream);
    prof_stop();
  }
  if (prof_get(&trace) != PROF_OK) return say("start and stop 100 times", false, "%s", prof_last_error());
  const sums s = since_before(trace);
  say("start and stop 100 times", s.records + s.lost == TIMES, "%lu kernels there, %lu counted as lost", (unsigned long)s.records, (unsigned long)s.lost);
  prof_trace_destroy(trace);
}

typedef struct worker {
  pthread_t thread;
  void *context;
  int number;
} worker;
enum { WORKERS = 8, OF_EACH = 500 };

static void *work(void *own) {
  const worker *const w = own;
  gpu.cuCtxSetCurrent(w->context);
  void *const stream = gpu_stream();
  for (int i = 0; i < OF_EACH; i++) WITH_CUDA_PROFILER(device, handle_of(stream), "work", "check", PROF_NO_ARGS, { gpu_launch(stream, 1000); });
  gpu.cuStreamSynchronize(stream);
  return NULL;
}

static void threads(void) {
  static worker all[WORKERS];
  void *other = NULL, *kernel = gpu.busy;
  sums s;
  const bool has_other = gpu.cuCtxCreate_v2(&other, 0, 0) == 0;
  gpu.cuCtxSetCurrent(gpu.context);
  start(1);
  for (int i = 0; i < WORKERS; i++) {
    all[i] = (worker){.context = gpu.context, .number = i}; /* a kernel is its module's context's: the other context has scopes alone */
    pthread_create(&all[i].thread, NULL, work, &all[i]);
  }
  for (int i = 0; i < WORKERS; i++) pthread_join(all[i].thread, NULL);
  if (has_other) {
    gpu.cuCtxSetCurrent(other);
    void *const stream = gpu_stream();
    for (int i = 0; i < OF_EACH; i++) WITH_CUDA_PROFILER(device, handle_of(stream), "work", "check", PROF_NO_ARGS, {});
    gpu.cuStreamSynchronize(stream);
    gpu.cuCtxSetCurrent(gpu.context);
  }
  prof_trace *const trace = settle(WORKERS * OF_EACH, (uint64_t)(WORKERS + has_other) * OF_EACH, &s);
  prof_stop();
  if (has_other) gpu.cuCtxDestroy_v2(other);
  say("threads and contexts", s.records == WORKERS * OF_EACH && s.sides == (uint64_t)(WORKERS + has_other) * OF_EACH && s.lost == 0 && gpu.busy == kernel, "%lu kernels, %lu sides, %lu lost; %d contexts", (unsigned long)s.records, (unsigned long)s.sides, (unsigned long)s.lost, 1 + has_other);
  prof_trace_destroy(trace);
}

/* This program again, which ends without a stop: what its capture has. */
static void exits(const char *program) {
  enum { KERNELS = 200 };
  char path[] = "/tmp/prof-gpu-exit-XXXXXX", output[64], count[16];
  int status = -1;
  prof_trace *trace = NULL;
  if (!mkdtemp(path)) return say("an exit without a stop", false, "no folder");
  snprintf(output, sizeof output, "%s/t.prof", path);
  snprintf(count, sizeof count, "%d", KERNELS);
  const pid_t child = fork();
  if (child == 0) {
    setenv("PROF_LEVEL", "1", 1);
    setenv("PROF_DEVICES", "records", 1);
    setenv("PROF_OUTPUT", output, 1);
    execl(program, program, "launch-and-exit", count, (char *)NULL);
    _exit(127);
  }
  waitpid(child, &status, 0);
  const int opened = prof_trace_open(output, &trace);
  const sums s = opened == PROF_OK ? sums_of(trace) : (sums){0};
  say("an exit without a stop", status == 0 && s.records + s.lost >= KERNELS, "status %d, %lu kernels there, %lu lost", status, (unsigned long)s.records, (unsigned long)s.lost);
  prof_trace_destroy(trace);
  unlink(output);
  rmdir(path);
}

static int launch_and_exit(int count) {
  void *const stream = gpu_stream();
  usleep(500000); /* recording began before CUDA did */
  for (int i = 0; i < count; i++) gpu_launch(stream, 1000);
  gpu.cuStreamSynchronize(stream);
  return 0;
}

/* ---- */

static const struct {
  const char *name;
  void (*check)(void);
} all[] = {{"counts", counts}, {"times", times}, {"sides", sides}, {"graphs", graphs}, {"again", again_and_again}, {"threads", threads}, {"many", many}};

static bool is_wanted(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc == 1;
}

int main(int argc, char **argv) {
  const char *const why = gpu_begin();
  if (why) {
    printf("skipped  all of them: %s\n", why);
    return 77;
  }
  if (argc == 3 && strcmp(argv[1], "launch-and-exit") == 0) return launch_and_exit(atoi(argv[2]));
  printf("device: %s, CUDA %d.%d\n", gpu.name, gpu.version / 1000, gpu.version % 1000 / 10);
  for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
    if (!is_wanted(all[i].name, argc, argv)) continue;
    prof_clear();
    begin_count();
    all[i].check();
  }
  if (is_wanted("exits", argc, argv)) exits("/proc/self/exe");
  printf("%d failed\n", failures);
  return failures ? 1 : 0;
}
