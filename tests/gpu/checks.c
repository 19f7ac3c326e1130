/* What prof records of a CUDA device, beside what the program itself has counted and timed. A line
   a check, "ok", "failed" or "skipped", with its figure; on the emulated driver "emulated" where
   only a device can tell. All checks, or the named ones. */
#define _GNU_SOURCE
#include <dirent.h>
#include <link.h>
#include <math.h>
#include <prof/op.h>
#include <pthread.h>
#include <signal.h>
#include <sys/wait.h>

#include "../hang_guard.h"
#include "gpu.h"
#include "seen.h"

static const prof_device device = {PROF_DEVICE_CUDA, 0};
static bool has_records; /* CUPTI is there, and may be used */
static const char kernel_name[] = "busy_for";

static void start(uint32_t level) { start_with(level, PROF_DEVICES_RECORDS, 0, 0); }

/* ---- how many of each, and what launched them ---- */

enum { KERNELS = 1000, ROUNDS = 100, BYTES = 1 << 16, ALL = KERNELS + 4 * ROUNDS };

/* One launch in each scope, then four in each. Only what the driver has taken counts. */
static void work(void *stream, tally *kernels, tally *to_device, tally *to_host, tally *inside,
                 tally *fills) {
  static char room[BYTES];
  unsigned long long at = 0;
  gpu.cuMemAlloc_v2(&at, 2 * BYTES);
  for (int i = 0; i < KERNELS; i++)
    WITH_BASE_PROFILER(PROF_HOST, "one", "check", PROF_NO_ARGS,
                       { kernels->wanted += gpu_launch(stream, 2000) == 0; });
  for (int i = 0; i < ROUNDS; i++)
    WITH_BASE_PROFILER(PROF_HOST, "four", "check", PROF_NO_ARGS, {
      to_device->wanted += gpu.cuMemcpyHtoDAsync_v2(at, room, BYTES, stream) == 0;
      inside->wanted += gpu.cuMemcpyDtoDAsync_v2(at + BYTES, at, BYTES / 2, stream) == 0;
      fills->wanted += gpu.cuMemsetD8Async(at, 1, BYTES / 4, stream) == 0;
      to_host->wanted += gpu.cuMemcpyDtoHAsync_v2(room, at, BYTES / 8, stream) == 0;
    });
  gpu.cuStreamSynchronize(stream);
  gpu.cuMemFree_v2(at);
  to_device->wanted_bytes = to_device->wanted * BYTES;
  inside->wanted_bytes = inside->wanted * (BYTES / 2);
  fills->wanted_bytes = fills->wanted * (BYTES / 4);
  to_host->wanted_bytes = to_host->wanted * (BYTES / 8);
}

static void say_names(const prof_trace *trace, tally *all, size_t count, uint64_t lost) {
  const uint64_t others = tally_records(trace, all, count);
  bool are_right = others == 0 && lost == 0;
  char line[512];
  int bytes = 0;
  for (size_t i = 0; i < count; i++) {
    are_right &= all[i].count == all[i].wanted && all[i].bytes == all[i].wanted_bytes;
    bytes += snprintf(line + bytes, sizeof line - (size_t)bytes, "%s %lu of %lu (%lu of %lu B), ",
                      all[i].name, (unsigned long)all[i].count, (unsigned long)all[i].wanted,
                      (unsigned long)all[i].bytes, (unsigned long)all[i].wanted_bytes);
  }
  say("kernels and copies by name", are_right, "%s%lu others, %lu lost", line,
      (unsigned long)others, (unsigned long)lost);
}

/* What was launched while a call was held up between two of prof's looks at CUPTI (some 100 ms: its
   thread had no processor) is launched by nobody. A machine with a device has processors enough:
   there nothing may be; where tests run beside others, a few. */
static bool is_none(size_t nobodys) { return nobodys <= (is_emulated ? 5 : 0); }

/* Each scope has exactly its launches, and each of these has a scope. */
static void say_launches(const prof_trace *trace) {
  static seen scopes[KERNELS + ROUNDS], records[ALL];
  static uint32_t hits[KERNELS + ROUNDS];
  const size_t ones = list_of(trace, OF_HOST, "one", scopes, KERNELS),
               all = ones < KERNELS
                         ? ones
                         : ones + list_of(trace, OF_HOST, "four", scopes + KERNELS, ROUNDS);
  const size_t count = list_of(trace, OF_RECORD, "", records, ALL);
  size_t orphans = 0, wrong = 0;
  memset(hits, 0, sizeof hits);
  for (size_t i = 0; i < count && i < ALL; i++) {
    const size_t at = scope_at(scopes, all < KERNELS + ROUNDS ? all : KERNELS + ROUNDS,
                               records[i].launch_thread, records[i].launched_ns);
    if (at == SIZE_MAX)
      orphans++;
    else
      hits[at]++;
  }
  for (size_t i = 0; i < KERNELS + ROUNDS; i++) wrong += hits[i] != (i < KERNELS ? 1 : 4);
  say("launches of scopes",
      all == KERNELS + ROUNDS && count == ALL && is_none(orphans) && wrong <= orphans,
      "%zu records, %zu of them in no scope; of %zu scopes %zu have not what they launched", count,
      orphans, all, wrong);
}

static void say_arrows(const prof_trace *trace) {
  char *json = NULL;
  size_t bytes = 0;
  if (prof_trace_json(trace, NULL, &json, &bytes) != PROF_OK)
    return say("arrows in the Chrome JSON", false, "%s", prof_last_error());
  const size_t begins = arrows_of(json, "{\"ph\":\"s\",\"cat\":\"ac2g\""),
               ends = arrows_of(json, "{\"ph\":\"f\",\"bp\":\"e\",\"cat\":\"ac2g\"");
  say("arrows in the Chrome JSON", begins == ends && begins <= ALL && is_none(ALL - begins),
      "%zu begin, %zu end, of %d", begins, ends, ALL);
  prof_free(json);
}

static void counts(void) {
  tally all[] = {{.name = kernel_name},
                 {.name = "Memcpy HtoD"},
                 {.name = "Memcpy DtoH"},
                 {.name = "Memcpy DtoD"},
                 {.name = "Memset"}};
  sums s;
  start(1);
  work(gpu_stream(), &all[0], &all[1], &all[2], &all[3], &all[4]);
  prof_trace *const trace = finish(ALL, 0, &s);
  say_names(trace, all, sizeof all / sizeof *all, s.lost);
  say_launches(trace);
  say_arrows(trace);
  say("none before its launch", s.early == 0, "%lu moved; the clock's error is %.3f us at most",
      (unsigned long)s.early, s.clock_error_us);
  prof_trace_destroy(trace);
}

/* Level 2: the calls themselves, as often as the program made them. */
static void calls(void) {
  static const char *const names[] = {"cuLaunchKernel", "cuMemcpyHtoDAsync", "cuMemcpyDtoHAsync",
                                      "cuMemcpyDtoDAsync", "cuMemsetD8Async"};
  tally all[5] = {{0}};
  sums s;
  char line[256];
  int bytes = 0;
  bool are_right = true;
  start(2);
  work(gpu_stream(), &all[0], &all[1], &all[2], &all[3], &all[4]);
  prof_trace *const trace = finish(ALL, 0, &s);
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    const size_t count = list_of(trace, OF_HOST, names[i], NULL, 0);
    are_right &= count == all[i].wanted;
    bytes += snprintf(line + bytes, sizeof line - (size_t)bytes, "%s %zu of %lu, ", names[i], count,
                      (unsigned long)all[i].wanted);
  }
  say("calls by name", are_right && s.lost == 0, "%s%lu lost", line, (unsigned long)s.lost);
  prof_trace_destroy(trace);
}

/* ---- times ---- */

/* Every record between two looks of the program's at its own clock, before its launch and behind
   its synchronisation: as far off at most as prof says itself. */
static void clocks(void) {
  enum { COUNT = 300 };
  static double from[COUNT], to[COUNT];
  static seen records[COUNT];
  prof_trace_info info = {.size = sizeof info};
  void *const stream = gpu_stream();
  sums s;
  double worst = 0;
  start(1);
  for (int i = 0; i < COUNT; i++) {
    from[i] = gpu_now_ns();
    gpu_launch(stream, 50000);
    gpu.cuStreamSynchronize(stream);
    to[i] = gpu_now_ns();
  }
  prof_trace *const trace = finish(COUNT, 0, &s);
  prof_trace_info_get(trace, &info);
  const size_t count = list_of(trace, OF_RECORD, kernel_name, records, COUNT);
  for (size_t i = 0; i < count && i < COUNT; i++) {
    const double early = from[i] - (double)(info.start_ns + records[i].start_ns),
                 late = (double)(info.start_ns + records[i].end_ns) - to[i];
    worst = fmax(worst, fmax(early, late) / 1e3);
  }
  say("by the program's own clock", count == COUNT && worst <= s.clock_error_us,
      "%zu of %d between launch and synchronisation; outside by %.3f us at most, where %.3f us are "
      "admitted",
      count, COUNT, worst, s.clock_error_us);
  prof_trace_destroy(trace);
}

/* A kernel's record beside two events around it. These have the launch's gaps in them, which are
   the same whatever the kernel takes: what is more than that is a record's error. */
static void times(void) {
  enum { LENGTHS = 4, EACH = 50, COUNT = LENGTHS * EACH };
  static const uint64_t ns[LENGTHS] = {20000, 200000, 1000000, 4000000};
  static double event_us[COUNT], off[LENGTHS][EACH];
  static seen records[COUNT];
  void *const stream = gpu_stream(), *events[2];
  sums s;
  double least = 1e9, most = -1e9, shortest = 1e9;
  for (int i = 0; i < 2; i++) gpu.cuEventCreate(&events[i], 0);
  start(1);
  for (int i = 0; i < COUNT; i++) { /* in turn, so that a clock that changes comes to all alike */
    float ms = 0;
    gpu.cuEventRecord(events[0], stream);
    gpu_launch(stream, ns[i % LENGTHS]);
    gpu.cuEventRecord(events[1], stream);
    gpu.cuEventSynchronize(events[1]);
    gpu.cuEventElapsedTime(&ms, events[0], events[1]);
    event_us[i] = (double)ms * 1e3;
  }
  prof_trace *const trace = finish(COUNT, 0, &s);
  const size_t count = list_of(trace, OF_RECORD, kernel_name, records, COUNT);
  for (size_t i = 0; i < count && i < COUNT; i++) {
    off[i % LENGTHS][i / LENGTHS] = event_us[i] - us_of(&records[i]);
    shortest = fmin(shortest, us_of(&records[i]) - (double)ns[i % LENGTHS] / 1e3);
  }
  for (int i = 0; i < LENGTHS; i++) {
    const double median = gpu_quantile(off[i], EACH, 0.5);
    least = fmin(least, median);
    most = fmax(most, median);
  }
  say("times of kernels: all there", count == COUNT, "%zu of %d", count, COUNT);
  say_of_device(
      "times of kernels: to 1 us", shortest > -1.5 && least > -1 && most - least <= 1,
      "events around kernels of 0.02 to 4 ms are longer by %.2f to %.2f us (medians), the middle "
      "half at 1 ms by %.2f to %.2f us; none is shorter than asked for by more than %.2f us",
      least, most, gpu_quantile(off[2], EACH, 0.25), gpu_quantile(off[2], EACH, 0.75),
      fmax(0, -shortest));
  for (int i = 0; i < 2; i++) gpu.cuEventDestroy_v2(events[i]);
  prof_trace_destroy(trace);
}

static double median_us(const seen *all, size_t count) {
  static double us[KERNELS];
  for (size_t i = 0; i < count && i < KERNELS; i++) us[i] = us_of(&all[i]);
  return gpu_quantile(us, count < KERNELS ? count : KERNELS, 0.5);
}

/* The scope's side by events, and the kernel inside of it by CUPTI: two clocks. */
static void sides(void) {
  enum { COUNT = 500 };
  static seen all[COUNT], records[COUNT];
  void *const stream = gpu_stream();
  sums s;
  start(1);
  for (int i = 0; i < COUNT; i++) {
    WITH_CUDA_PROFILER(device, gpu_handle(stream), "scope", "check", PROF_NO_ARGS,
                       { gpu_launch(stream, 200000); });
    if (i % 50 == 49) gpu.cuStreamSynchronize(stream);
  }
  gpu.cuStreamSynchronize(stream);
  prof_trace *const trace = finish(has_records ? COUNT : 0, COUNT, &s);
  const size_t count = list_of(trace, OF_SIDE, "scope", all, COUNT),
               kernels = list_of(trace, OF_RECORD, kernel_name, records, COUNT);
  const double longer = median_us(all, count) - (has_records ? median_us(records, kernels) : 200);
  say("scopes on a stream: all there",
      count == COUNT && kernels == (has_records ? COUNT : 0) && s.lost == 0,
      "%zu sides, %zu kernels, %lu lost", count, kernels, (unsigned long)s.lost);
  say_of_device(
      "scopes on a stream: times", longer > -1 && longer < 20,
      "a side is longer than its kernel by %.2f us (median); the clock's error is %.3f us at most",
      longer, s.clock_error_us);
  prof_trace_destroy(trace);
}

/* An operator's latency beside a loop of the program's own between two events. */
enum { RUNS = 10, SAMPLES = 50, RUN_NS = 200000 };

static int run_once(void *stream) { return gpu_launch(stream, RUN_NS); }

static double loop_us(void *stream) {
  static double us[SAMPLES];
  void *events[2];
  for (int i = 0; i < 2; i++) gpu.cuEventCreate(&events[i], 0);
  for (int i = 0; i < SAMPLES; i++) {
    float ms = 0;
    gpu.cuEventRecord(events[0], stream);
    for (int k = 0; k < RUNS; k++) gpu_launch(stream, RUN_NS);
    gpu.cuEventRecord(events[1], stream);
    gpu.cuEventSynchronize(events[1]);
    gpu.cuEventElapsedTime(&ms, events[0], events[1]);
    us[i] = (double)ms * 1e3 / RUNS;
  }
  for (int i = 0; i < 2; i++) gpu.cuEventDestroy_v2(events[i]);
  return gpu_quantile(us, SAMPLES, 0.5);
}

static void latency(void) {
  void *const stream = gpu_stream();
  const prof_op_stream on = {.size = sizeof on, .device = device, .stream = gpu_handle(stream)};
  const prof_op_options options = {.size = sizeof options,
                                   .warmup = 5,
                                   .exec = RUNS,
                                   .repeat = SAMPLES,
                                   .repeat_all = 1,
                                   .time_limit_ns = UINT64_C(5000000000),
                                   .no_reuse = 1};
  prof_op_info info = {.size = sizeof info};
  prof_op_timer *timer = NULL;
  prof_op_result *result = NULL;
  if (prof_op_timer_create(&on, &timer) != PROF_OK)
    return say("an operator's latency", false, "%s", prof_last_error());
  const prof_op op = {.size = sizeof op,
                      .key = kernel_name,
                      .user = stream,
                      .run = run_once,
                      .device = device,
                      .timer = timer};
  if (prof_op_profile(&op, &options, &result) != PROF_OK) {
    say("an operator's latency", false, "%s", prof_last_error());
  } else {
    prof_op_info_get(result, &info);
    const double loop = loop_us(stream), share = info.median_us / loop - 1;
    say("an operator's latency: measured",
        info.sample_count == SAMPLES && info.median_us >= RUN_NS / 1e3 - 1,
        "%u samples, median %.3f us of %.0f asked for", info.sample_count, info.median_us,
        RUN_NS / 1e3);
    say_of_device("an operator's latency: to 1 %", fabs(share) <= 0.01,
                  "%.3f us, a loop between two events %.3f us: %+.2f %%", info.median_us, loop,
                  100 * share);
  }
  prof_op_result_destroy(result);
  prof_op_timer_destroy(timer);
}

/* ---- graphs ---- */

static void graphs(void) {
  enum { NODES = 10, LAUNCHES = 100 };
  void *const stream = gpu_stream(), *graph = NULL, *executable = NULL;
  tally kernels = {.name = kernel_name, .wanted = NODES * LAUNCHES};
  uint64_t taken = 0;
  sums s;
  start(2);
  const int begun = gpu.cuStreamBeginCapture_v2(stream, 0);
  for (int i = 0; i < NODES; i++)
    WITH_CUDA_PROFILER(device, gpu_handle(stream), "into the graph", "check", PROF_NO_ARGS,
                       { gpu_launch(stream, 2000); });
  const int ended = gpu.cuStreamEndCapture(stream, &graph),
            made = ended ? ended : gpu.cuGraphInstantiateWithFlags(&executable, graph, 0);
  for (int i = 0; i < LAUNCHES && !made; i++)
    WITH_BASE_PROFILER(PROF_HOST, "launch", "check", PROF_NO_ARGS,
                       { taken += gpu.cuGraphLaunch(executable, stream) == 0; });
  gpu.cuStreamSynchronize(stream);
  prof_trace *const trace = finish(NODES * LAUNCHES, 0, &s);
  const uint64_t others = tally_records(trace, &kernels, 1);
  const size_t calls_seen = list_of(trace, OF_HOST, "cuGraphLaunch", NULL, 0);
  say("a graph's capture", !begun && !made && s.captured == NODES && s.sides == 0,
      "begin %d, instantiate %d; %lu of %d scopes in it", begun, made, (unsigned long)s.captured,
      NODES);
  say("a graph's launches",
      taken == LAUNCHES && calls_seen == LAUNCHES && kernels.count == kernels.wanted &&
          others <= kernels.wanted,
      "%zu of %d launches, %lu of %d kernels, %lu lost", calls_seen, LAUNCHES,
      (unsigned long)kernels.count, NODES * LAUNCHES, (unsigned long)s.lost);
  prof_trace_destroy(trace);
}

/* ---- threads, contexts ---- */

typedef struct worker {
  pthread_t thread;
  void *context, *kernel, *stream;
} worker;
enum { WORKERS = 8, OF_EACH = 500 };

/* launches are known of the threads that exist when CUPTI reports them */
static pthread_barrier_t are_told;

static void *launch_some(void *own) {
  worker *const w = own;
  gpu.cuCtxSetCurrent(w->context);
  w->stream = gpu_stream();
  for (int i = 0; i < OF_EACH; i++)
    WITH_CUDA_PROFILER(device, gpu_handle(w->stream), "scope", "check", PROF_NO_ARGS,
                       { gpu_launch_of(w->kernel, w->stream, 1000); });
  gpu.cuStreamSynchronize(w->stream);
  pthread_barrier_wait(&are_told);
  return NULL;
}

/* Of that stream, launched by one thread but for those of nobody. */
static bool has_all(const seen *list, size_t count, const void *stream) {
  size_t own = 0;
  uint32_t thread = UINT32_MAX;
  for (size_t i = 0; i < count; i++) {
    if (list[i].stream != gpu_handle(stream)) continue;
    own++;
    if (thread == UINT32_MAX) thread = list[i].launch_thread;
    if (list[i].launch_thread != UINT32_MAX && list[i].launch_thread != thread) return false;
  }
  return own == OF_EACH && thread != UINT32_MAX;
}

static void threads(void) {
  enum { COUNT = WORKERS * OF_EACH };
  static worker all[WORKERS];
  static seen records[COUNT], scopes[COUNT];
  void *other = NULL, *kernel = NULL;
  sums s;
  const bool has_other = gpu.cuCtxCreate_v2(&other, 0, 0) == 0 && gpu_load(&kernel) == 0;
  size_t whole = 0, nobodys = 0;
  gpu.cuCtxSetCurrent(gpu.context);
  if (!has_other)
    say_skipped("two contexts", "the driver makes no second one: one has all streams");
  pthread_barrier_init(&are_told, NULL, WORKERS + 1);
  start(1);
  for (int i = 0; i < WORKERS; i++) {
    all[i] = has_other && i % 2 ? (worker){.context = other, .kernel = kernel}
                                : (worker){.context = gpu.context, .kernel = gpu.busy};
    pthread_create(&all[i].thread, NULL, launch_some, &all[i]);
  }
  prof_trace *const trace = finish(COUNT, COUNT, &s);
  pthread_barrier_wait(&are_told);
  for (int i = 0; i < WORKERS; i++) pthread_join(all[i].thread, NULL);
  pthread_barrier_destroy(&are_told);
  const size_t count = list_of(trace, OF_RECORD, kernel_name, records, COUNT),
               sides_count = list_of(trace, OF_SIDE, "scope", scopes, COUNT);
  for (int i = 0; i < WORKERS && count == COUNT && sides_count == COUNT; i++)
    whole += has_all(records, COUNT, all[i].stream) && has_all(scopes, COUNT, all[i].stream);
  for (size_t i = 0; i < count && i < COUNT; i++) nobodys += records[i].launch_thread == UINT32_MAX;
  if (other) gpu.cuCtxDestroy_v2(other);
  say("threads, streams, contexts", whole == WORKERS && s.lost == 0 && is_none(nobodys),
      "%zu kernels, %zu of them launched by nobody, %zu sides, %lu lost; %zu of %d streams have "
      "all of theirs, each by one thread; %d contexts",
      count, nobodys, sides_count, (unsigned long)s.lost, whole, WORKERS, 1 + has_other);
  prof_trace_destroy(trace);
}

/* ---- again and again, many, too many ---- */

/* CUPTI does not say what it has dropped: of `lost` some may be the calls that launched. */
static bool is_accounted(uint64_t there, uint64_t lost, uint64_t wanted) {
  return there <= wanted && there + lost >= wanted && (lost > 0 || there == wanted);
}

static int entries_of(const char *folder) {
  int count = 0;
  DIR *const open = opendir(folder);
  while (open && readdir(open)) count++;
  if (open) closedir(open);
  return count;
}

static void again(void) {
  enum { TIMES = 100, WARM = 10 };
  void *const stream = gpu_stream();
  int descriptors = 0, tasks = 0;
  for (int i = 0; i < TIMES; i++) {
    start(1 + (uint32_t)i % 2);
    gpu_launch(stream, 1000);
    gpu.cuStreamSynchronize(stream);
    prof_stop();
    if (i != WARM) continue;
    descriptors = entries_of("/proc/self/fd");
    tasks = entries_of("/proc/self/task");
  }
  prof_trace *const trace = take_trace();
  const size_t count = list_of(trace, OF_RECORD, kernel_name, NULL, 0);
  const uint64_t lost = since_before(trace).lost;
  descriptors = entries_of("/proc/self/fd") - descriptors;
  tasks = entries_of("/proc/self/task") - tasks;
  say("start and stop 100 times",
      is_accounted(count, lost, TIMES) && descriptors <= 0 && tasks <= 0,
      "%zu kernels there, %lu counted as lost; %+d descriptors, %+d threads", count,
      (unsigned long)lost, descriptors, tasks);
  prof_trace_destroy(trace);
}

static uint64_t resident_kib(void) {
  char line[256];
  unsigned long pages = 0, resident = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file && fgets(line, sizeof line, file) && sscanf(line, "%lu %lu", &pages, &resident) != 2)
    resident = 0;
  if (file) fclose(file);
  return resident * 4;
}

/* The driver takes so many at a time: what the emulated one keeps would be its own. */
static void launch_many(void *stream, int count) {
  enum { AT_ONCE = 10000 };
  for (int i = 1; i <= count; i++) {
    gpu_launch(stream, 0);
    if (i % AT_ONCE == 0 || i == count) gpu.cuStreamSynchronize(stream);
  }
}

/* Into a ring: what is recorded takes no more memory, so what grows is prof's, CUPTI's or the
   driver's. */
static void many(void) {
  enum { MANY = 1000000, WARM = 400000, GROWS_KIB = 8192, RING_BYTES = 8 << 20 };
  void *const stream = gpu_stream();
  sums s;
  start_with(1, PROF_DEVICES_RECORDS, PROF_POLICY_RING, RING_BYTES);
  begin_count(); /* a ring is another capture */
  launch_many(stream, WARM);
  const uint64_t at_first = resident_kib();
  const double from = gpu_now_ns();
  launch_many(stream, MANY - WARM);
  const double took = gpu_now_ns() - from;
  /* before a trace is read, which takes its own */
  const int64_t grown = (int64_t)resident_kib() - (int64_t)at_first;
  prof_trace *const trace = finish(MANY, 0, &s);
  say("a million launches: counted", is_accounted(s.records, s.lost, MANY),
      "%lu there, %lu lost and counted; %.2f us a launch", (unsigned long)s.records,
      (unsigned long)s.lost, took / (MANY - WARM) / 1e3);
  say_of_device("a million launches: memory", grown <= GROWS_KIB,
                "%+ld KiB more than after %d; %d are allowed", (long)grown, WARM, GROWS_KIB);
  prof_trace_destroy(trace);
}

/* A capture that has no room for all: what is not in it is counted. */
static void drops(void) {
  enum { MANY = 60000 };
  void *const stream = gpu_stream();
  sums s;
  start_with(1, PROF_DEVICES_RECORDS, PROF_POLICY_KEEP, 1 << 20);
  begin_count();
  launch_many(stream, MANY);
  prof_trace *const trace = finish(MANY, 0, &s);
  const size_t count = list_of(trace, OF_RECORD, kernel_name, NULL, 0);
  say("no room: counted", s.lost > 0 && is_accounted(count, s.lost, MANY),
      "of %d kernels %zu are there and %lu lost", MANY, count, (unsigned long)s.lost);
  prof_trace_destroy(trace);
}

/* ---- another tool ---- */

static int find_cupti(struct dl_phdr_info *info, size_t bytes, void *path_out) {
  (void)bytes;
  if (!strstr(info->dlpi_name, "libcupti.so")) return 0;
  snprintf(path_out, 512, "%s", info->dlpi_name);
  return 1;
}

static void ignore(void *user, int domain, uint32_t number, const void *data) {
  (void)user;
  (void)domain;
  (void)number;
  (void)data;
}

static sums scopes_and_kernels(void *stream, int count) {
  sums s;
  begin_count();
  start(1);
  for (int i = 0; i < count; i++)
    WITH_CUDA_PROFILER(device, gpu_handle(stream), "scope", "check", PROF_NO_ARGS,
                       { gpu_launch(stream, 1000); });
  gpu.cuStreamSynchronize(stream);
  prof_trace *const trace = finish(0, (uint64_t)count, &s);
  prof_trace_destroy(trace);
  return s;
}

/* One can subscribe to CUPTI at a time: before, while and after prof records. */
static void tool(void) {
  enum { COUNT = 100 };
  char path[512] = "";
  void *theirs = NULL, *const stream = gpu_stream();
  int (*subscribe)(void **out, void (*callback)(void *, int, uint32_t, const void *), void *user),
      (*unsubscribe)(void *subscriber);
  const sums first = scopes_and_kernels(stream, COUNT);
  dl_iterate_phdr(find_cupti, path);
  void *const library = *path ? dlopen(path, RTLD_NOW | RTLD_NOLOAD) : NULL;
  if (!library) return say_skipped("another tool", "no libcupti.so is in the process");
  *(void **)&subscribe = dlsym(library, "cuptiSubscribe");
  *(void **)&unsubscribe = dlsym(library, "cuptiUnsubscribe");
  if (!subscribe || !unsubscribe)
    return say("another tool", false, "%s has no cuptiSubscribe()", path);
  start(1);
  const int meanwhile = subscribe(&theirs, ignore, NULL);
  if (meanwhile == 0) unsubscribe(theirs);
  prof_stop();
  const int behind = subscribe(&theirs, ignore, NULL);
  const sums second = scopes_and_kernels(stream, COUNT);
  if (behind == 0) unsubscribe(theirs);
  const sums third = scopes_and_kernels(stream, COUNT);
  say("another tool, behind prof", meanwhile != 0 && behind == 0,
      "subscribes while prof records: %d; after it: %d", meanwhile, behind);
  say("another tool, before prof", second.records == 0 && second.sides == COUNT && second.lost == 0,
      "of %d scopes with a kernel %lu sides, %lu kernels, %lu lost", COUNT,
      (unsigned long)second.sides, (unsigned long)second.records, (unsigned long)second.lost);
  say("another tool, gone",
      first.records == COUNT && third.records == COUNT && third.sides == COUNT,
      "%lu kernels before it, %lu after it", (unsigned long)first.records,
      (unsigned long)third.records);
}

/* ---- forks, exits ---- */

/* A child has no use of CUDA: its scopes on the parent's stream have the host's side, and the
   reason; the parent goes on. */
static void forks(void) {
  enum { COUNT = 100 };
  void *const stream = gpu_stream();
  int status = -1;
  sums s;
  start(1);
  for (int i = 0; i < COUNT; i++)
    WITH_CUDA_PROFILER(device, gpu_handle(stream), "scope", "check", PROF_NO_ARGS,
                       { gpu_launch(stream, 1000); });
  const pid_t child = fork();
  if (child == 0) {
    for (int i = 0; i < COUNT; i++)
      WITH_CUDA_PROFILER(device, gpu_handle(stream), "the parent's stream", "check", PROF_NO_ARGS,
                         {});
    const sums theirs = sums_of(take_trace());
    _exit(theirs.sides == 0 && strstr(theirs.reason, "forked") ? 0 : 1);
  }
  for (int i = 0; i < COUNT; i++)
    WITH_CUDA_PROFILER(device, gpu_handle(stream), "scope", "check", PROF_NO_ARGS,
                       { gpu_launch(stream, 1000); });
  waitpid(child, &status, 0);
  gpu.cuStreamSynchronize(stream);
  prof_trace_destroy(finish(2 * COUNT, 2 * COUNT, &s));
  say("a fork", status == 0 && s.records == 2 * COUNT && s.sides == 2 * COUNT && s.lost == 0,
      "the child's status %d; %lu kernels, %lu sides of %d, %lu lost", status,
      (unsigned long)s.records, (unsigned long)s.sides, 2 * COUNT, (unsigned long)s.lost);
}

/* The one file in it, which goes: a process that was killed leaves its capture under a name of its
   own. */
static prof_trace *open_only(const char *folder) {
  char path[512];
  prof_trace *trace = NULL;
  DIR *const open = opendir(folder);
  for (const struct dirent *entry; open && (entry = readdir(open)) != NULL;) {
    if (entry->d_name[0] == '.') continue;
    snprintf(path, sizeof path, "%s/%s", folder, entry->d_name);
    if (!trace) prof_trace_open(path, &trace);
    unlink(path);
  }
  if (open) closedir(open);
  return trace;
}

/* This program again, which ends without a stop: what its capture has. */
static void exit_of(const char *name, const char *how, int wanted_status) {
  enum { COUNT = 200 };
  char path[] = "/tmp/prof-gpu-exit-XXXXXX", output[64], count[16];
  int status = -1;
  if (!mkdtemp(path)) return say(name, false, "no folder");
  snprintf(output, sizeof output, "%s/t.prof", path);
  snprintf(count, sizeof count, "%d", COUNT);
  const pid_t child = fork();
  if (child == 0) {
    setenv("PROF_LEVEL", "1", 1);
    setenv("PROF_DEVICES", "records", 1);
    setenv("PROF_OUTPUT", output, 1);
    execl("/proc/self/exe", "checks", how, count, (char *)NULL);
    _exit(127);
  }
  waitpid(child, &status, 0);
  prof_trace *const trace = open_only(path);
  const size_t there = trace ? list_of(trace, OF_RECORD, kernel_name, NULL, 0) : 0;
  const uint64_t lost = trace ? sums_of(trace).lost : 0;
  say(name, status == wanted_status && is_accounted(there, lost, COUNT),
      "status %d; %zu of %d kernels there, %lu lost and counted", status, there, COUNT,
      (unsigned long)lost);
  prof_trace_destroy(trace);
  rmdir(path);
}

static void exits(void) {
  exit_of("an exit without a stop", "exit-when-done", 0);
  exit_of("an exit with a kernel running", "exit-while-busy", 0);
  exit_of("killed when all was recorded", "be-killed", SIGTERM);
}

static uint64_t records_now(void) {
  prof_trace *const trace = take_trace();
  const uint64_t records = sums_of(trace).records;
  prof_trace_destroy(trace);
  return records;
}

static size_t kernels_now(void) {
  prof_trace *const trace = take_trace();
  const size_t count = list_of(trace, OF_RECORD, kernel_name, NULL, 0);
  prof_trace_destroy(trace);
  return count;
}

/* Recording began before CUDA did: a fill that is recorded says that CUPTI has joined in. */
static int end_so(const char *how, int count) {
  void *const stream = gpu_stream();
  unsigned long long at = 0;
  const bool is_busy = strcmp(how, "exit-while-busy") == 0;
  if (gpu.cuMemAlloc_v2(&at, 1) != 0) return 1;
  for (int i = 0; i < 500 && records_now() == 0; i++) {
    gpu.cuMemsetD8Async(at, 0, 1, stream);
    gpu.cuStreamSynchronize(stream);
    usleep(10000);
  }
  for (int i = is_busy; i < count; i++) gpu_launch(stream, 1000);
  gpu.cuStreamSynchronize(stream);
  if (is_busy) return gpu_launch(stream, 300000000);
  if (strcmp(how, "be-killed") != 0) return 0;
  WAIT_WHILE(kernels_now() < (size_t)count);
  return raise(SIGTERM);
}

/* ---- */

/* Why no kernels are recorded here, as prof says it; NULL: they are, or nobody knows why not. No
   scope is put on a stream: its clock's error would stand beside CUPTI's. */
static const char *why_no_records(void *stream) {
  static prof_backend_state state;
  static char reason[sizeof state.reason];
  const char *why = NULL;
  start(1);
  for (int i = 0; i < 500 && records_now() == 0 && !why; i++) { /* CUPTI takes its time to begin */
    gpu_launch(stream, 0);
    gpu.cuStreamSynchronize(stream);
    usleep(10000);
    state.size = sizeof state;
    for (uint32_t k = 0; prof_backend_status(k, &state) == PROF_OK; k++)
      if (strcmp(state.name, "cuda") == 0 && strstr(state.reason, "records no kernels"))
        why = strcpy(reason, state.reason);
  }
  prof_stop();
  return why;
}

static const struct {
  const char *name;
  void (*check)(void);
  bool needs_records;
} all_checks[] = {/* drops and many make captures of their own: behind those that share one */
                  {"counts", counts, true}, {"calls", calls, true},     {"clocks", clocks, true},
                  {"times", times, true},   {"sides", sides, false},    {"latency", latency, false},
                  {"graphs", graphs, true}, {"threads", threads, true}, {"again", again, true},
                  {"tool", tool, true},     {"forks", forks, true},     {"drops", drops, true},
                  {"many", many, true},     {"exits", exits, true}};

static bool is_wanted(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc == 1;
}

int main(int argc, char **argv) {
  const char *const why = gpu_begin();
  if (why) {
    say_skipped("checks", "%s", why);
    return 77;
  }
  if (argc == 3 && atoi(argv[2]) > 0) return end_so(argv[1], atoi(argv[2]));
  is_emulated = gpu.is_emulated;
  gpu_describe();
  const char *const no_records = why_no_records(gpu_stream());
  has_records = !no_records;
  for (size_t i = 0; i < sizeof all_checks / sizeof *all_checks; i++) {
    if (!is_wanted(all_checks[i].name, argc, argv)) continue;
    if (all_checks[i].needs_records && !has_records) {
      say_skipped(all_checks[i].name, "%s", no_records);
      continue;
    }
    prof_clear();
    begin_count();
    all_checks[i].check();
  }
  printf("%d failed\n", failures);
  return failures ? 1 : 0;
}
