/* prof's HIP back end under a HIP program on a real device: NVIDIA's, by the shim (hip_on_cuda.c),
   which must be the libamdhip64.so.6 that is found. Scopes beside the program's own events,
   capture, threads and streams, streams that have gone, errors that are the program's. A line a
   check, as checks.c. That it holds here says nothing of AMD's costs, fences and clocks. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <math.h>
#include <prof/op.h>
#include <pthread.h>

#include "busy.h"
#include "hip.h"
#include "seen.h"

enum { CAPTURE_GLOBAL = 0, INVALID_DEVICE = 101, NO_SUCH_DEVICE = 99 };

static const prof_device device = {PROF_DEVICE_ROCM, 0};

static struct {
/* NOLINTNEXTLINE(bugprone-macro-parentheses): a declaration's */
#define MEMBER(name, arguments) int32_t(*name) arguments;
#define MEMBER_OF_PROF(need, name, arguments) MEMBER(name, arguments)
  PROF_I_HIP_FUNCTIONS(MEMBER_OF_PROF)
  HIP_PROGRAM_FUNCTIONS(MEMBER)
#undef MEMBER_OF_PROF
#undef MEMBER
  void *busy;
} hip;

/* Why it cannot be; NULL: it can. */
static const char *begin(void) {
  static char why[160], name[96];
  void *module;
  int32_t error = 0;
  void *const library = dlopen("libamdhip64.so.6", RTLD_NOW);
  if (!library) return dlerror();
#define FIND(name, arguments)                  \
  *(void **)&hip.name = dlsym(library, #name); \
  if (!hip.name) return "the library has no " #name "()";
#define FIND_OF_PROF(need, name, arguments) FIND(name, arguments)
  PROF_I_HIP_FUNCTIONS(FIND_OF_PROF)
  HIP_PROGRAM_FUNCTIONS(FIND)
#undef FIND_OF_PROF
#undef FIND
#define TRY(call)                                            \
  if ((error = (call)) != 0) {                               \
    snprintf(why, sizeof why, "%s: error %d", #call, error); \
    return why;                                              \
  }
  TRY(hip.hipSetDevice(0))
  TRY(hip.hipDeviceGetName(name, sizeof name, 0))
  TRY(hip.hipModuleLoadData(&module, gpu_busy_image))
  TRY(hip.hipModuleGetFunction(&hip.busy, module, "busy_for"))
#undef TRY
  is_emulated = dlsym(RTLD_DEFAULT, "emulated_cuda_state") || strstr(name, "Emulated");
  printf("device: %s%s\n", name, is_emulated ? " (no device is behind it)" : "");
  return strstr(name, "shim") ? NULL : "libamdhip64.so.6 is not the shim";
}

static int launch(prof_i_hip_stream stream, uint64_t ns) {
  void *parameters[] = {&ns};
  return hip.hipModuleLaunchKernel(hip.busy, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

static prof_i_hip_stream make_stream(void) {
  prof_i_hip_stream stream = NULL;
  if (hip.hipStreamCreate(&stream) != 0) abort();
  return stream;
}

static prof_i_hip_event make_event(void) {
  prof_i_hip_event event = NULL;
  if (hip.hipEventCreateWithFlags(&event, 0) != 0) abort();
  return event;
}

static double us_between(prof_i_hip_event a, prof_i_hip_event b) {
  float ms = 0;
  hip.hipEventSynchronize(b);
  hip.hipEventElapsedTime(&ms, a, b);
  return (double)ms * 1e3;
}

static uint64_t handle_of(const void *stream) { return (uint64_t)(uintptr_t)stream; }
static void start(void) { start_with(1, PROF_DEVICES_SCOPES, 0, 0); }

static void scopes_on(prof_i_hip_stream stream, const char *name, int count, uint64_t ns) {
  for (int i = 0; i < count; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), name, "check", PROF_NO_ARGS,
                      { launch(stream, ns); });
}

/* ---- the shim itself ---- */

static void memory(void) {
  enum { BYTES = 1 << 16 };
  static unsigned char from[BYTES], to[BYTES];
  const prof_i_hip_stream stream = make_stream();
  size_t free_bytes = 0, all_bytes = 0, wrong = 0;
  void *at = NULL;
  int errors = hip.hipMemGetInfo(&free_bytes, &all_bytes) | hip.hipMalloc(&at, BYTES);
  memset(from, 1, BYTES);
  errors |= hip.hipMemcpyHtoDAsync(at, from, BYTES, stream) |
            hip.hipMemsetD8Async(at, 2, BYTES / 2, stream) |
            hip.hipMemcpyDtoHAsync(to, at, BYTES, stream) | hip.hipStreamSynchronize(stream) |
            hip.hipFree(at);
  for (size_t i = 0; i < BYTES; i++) wrong += to[i] != (i < BYTES / 2 ? 2 : 1);
  say("memory by the shim", errors == 0 && free_bytes > 0 && free_bytes <= all_bytes,
      "error %d; %zu of %zu MiB are free", errors, free_bytes >> 20, all_bytes >> 20);
  say_of_device("copies by the shim", wrong == 0, "%zu of %d bytes came back wrong", wrong, BYTES);
}

/* ---- times ---- */

/* Each scope stands between two events of the program's: it is no longer than these are apart, and
   no shorter than its kernel, by the device's own figures. */
static void times(void) {
  enum { COUNT = 300, NS = 200000 };
  static prof_i_hip_event events[COUNT][2];
  static seen all[COUNT];
  static double longer[COUNT], bent[COUNT];
  const prof_i_hip_stream stream = make_stream();
  sums s;
  double least = 1e9, shortest = 1e9;
  for (int i = 0; i < 2 * COUNT; i++) events[i / 2][i % 2] = make_event();
  start();
  for (int i = 0; i < COUNT; i++) {
    hip.hipEventRecord(events[i][0], stream);
    scopes_on(stream, "scope", 1, NS);
    hip.hipEventRecord(events[i][1], stream);
    if (i % 50 == 49) hip.hipStreamSynchronize(stream);
  }
  hip.hipStreamSynchronize(stream);
  prof_trace *const trace = finish(0, COUNT, &s);
  const size_t count = list_of(trace, OF_SIDE, "scope", all, COUNT),
               used = count < COUNT ? count : COUNT;
  for (size_t i = 0; i < used; i++) {
    const double device_us = (double)all[i].device_ns / 1e3;
    longer[i] = us_between(events[i][0], events[i][1]) - device_us;
    bent[i] = fabs(us_of(&all[i]) - device_us);
    least = fmin(least, longer[i]);
    shortest = fmin(shortest, device_us);
  }
  say("scopes: all there", count == COUNT && s.lost == 0, "%zu of %d sides, %lu lost, %lu moved",
      count, COUNT, (unsigned long)s.lost, (unsigned long)s.early);
  say("scopes: inside of own events", least > -1.1 && shortest >= NS / 1e3 - 1.1,
      "events around a scope are longer by %.2f us at least (steps of 0.5 us); the shortest scope "
      "is %.2f us, its kernel %.0f us",
      least, shortest, NS / 1e3);
  const double middle = gpu_quantile(longer, used, 0.5);
  say_of_device("scopes: as own events", middle < 20,
                "events around a scope are longer by %.2f us (median)", middle);
  say_of_device("scopes: as the device says", gpu_quantile(bent, used, 0.95) < 1,
                "in the trace a scope is off by %.2f us (median), %.2f us (19 of 20), %.2f us "
                "(most) from what its events say; the clock's error is %.3f us at most",
                gpu_quantile(bent, used, 0.5), gpu_quantile(bent, used, 0.95),
                gpu_quantile(bent, used, 1), s.clock_error_us);
  for (int i = 0; i < 2 * COUNT; i++) hip.hipEventDestroy(events[i / 2][i % 2]);
  prof_trace_destroy(trace);
}

/* Beside the program's own clock: not before its launch, and not behind the synchronisation. */
static void clocks(void) {
  enum { COUNT = 200 };
  static double from[COUNT], to[COUNT];
  static seen all[COUNT];
  prof_trace_info info = {.size = sizeof info};
  const prof_i_hip_stream stream = make_stream();
  sums s;
  double early = 0, late = 0;
  start();
  for (int i = 0; i < COUNT; i++) {
    from[i] = gpu_now_ns();
    scopes_on(stream, "scope", 1, 50000);
    hip.hipStreamSynchronize(stream);
    to[i] = gpu_now_ns();
  }
  prof_trace *const trace = finish(0, COUNT, &s);
  prof_trace_info_get(trace, &info);
  const size_t count = list_of(trace, OF_SIDE, "scope", all, COUNT);
  for (size_t i = 0; i < count && i < COUNT; i++) {
    early = fmax(early, from[i] - (double)(info.start_ns + all[i].start_ns));
    late = fmax(late, (double)(info.start_ns + all[i].end_ns) - to[i]);
  }
  const double admitted = (double)info.clock_error_ns + 1000; /* a step of an event's time */
  say("by the program's own clock", count == COUNT && early <= admitted && late <= admitted,
      "%zu of %d; %.3f us before the launch at most, %.3f us behind the synchronisation; the "
      "clock's error is %.3f us at most",
      count, COUNT, fmax(0, early) / 1e3, fmax(0, late) / 1e3, s.clock_error_us);
  prof_trace_destroy(trace);
}

enum { RUNS = 10, SAMPLES = 50, RUN_NS = 200000 };

static int run_once(void *stream) { return launch(stream, RUN_NS); }

static double loop_us(prof_i_hip_stream stream) {
  static double us[SAMPLES];
  const prof_i_hip_event a = make_event(), b = make_event();
  for (int i = 0; i < SAMPLES; i++) {
    hip.hipEventRecord(a, stream);
    for (int k = 0; k < RUNS; k++) launch(stream, RUN_NS);
    hip.hipEventRecord(b, stream);
    us[i] = us_between(a, b) / RUNS;
  }
  hip.hipEventDestroy(a);
  hip.hipEventDestroy(b);
  return gpu_quantile(us, SAMPLES, 0.5);
}

/* The measurement waits on this thread, where "not ready" must not stay as the program's last
   error. */
static void latency(void) {
  const prof_i_hip_stream stream = make_stream();
  const prof_op_stream on = {.size = sizeof on, .device = device, .stream = handle_of(stream)};
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
  hip.hipGetLastError();
  if (prof_op_timer_create(&on, &timer) != PROF_OK)
    return say("an operator's latency", false, "%s", prof_last_error());
  const prof_op op = {.size = sizeof op,
                      .key = "busy_for",
                      .user = stream,
                      .run = run_once,
                      .device = device,
                      .timer = timer};
  if (prof_op_profile(&op, &options, &result) != PROF_OK) {
    say("an operator's latency", false, "%s", prof_last_error());
  } else {
    prof_op_info_get(result, &info);
    const int last = hip.hipGetLastError();
    const double loop = loop_us(stream), share = info.median_us / loop - 1;
    say("an operator's latency: measured",
        info.sample_count == SAMPLES && info.median_us >= RUN_NS / 1e3 - 1 && last == 0,
        "%u samples, median %.3f us of %.0f asked for; the last error is %d", info.sample_count,
        info.median_us, RUN_NS / 1e3, last);
    say_of_device("an operator's latency: to 1 %", fabs(share) <= 0.01,
                  "%.3f us, a loop between two events %.3f us: %+.2f %%", info.median_us, loop,
                  100 * share);
  }
  prof_op_result_destroy(result);
  prof_op_timer_destroy(timer);
}

/* ---- streams, threads, graphs ---- */

typedef struct worker {
  pthread_t thread;
  prof_i_hip_stream stream;
} worker;
enum { WORKERS = 8, OF_EACH = 500 };

static void *launch_some(void *own) {
  worker *const w = own;
  w->stream = make_stream();
  scopes_on(w->stream, "scope", OF_EACH, 1000);
  hip.hipStreamSynchronize(w->stream);
  return NULL;
}

static void threads(void) {
  enum { COUNT = WORKERS * OF_EACH };
  static worker all[WORKERS];
  static seen scopes[COUNT];
  size_t whole = 0;
  sums s;
  start();
  for (int i = 0; i < WORKERS; i++) pthread_create(&all[i].thread, NULL, launch_some, &all[i]);
  for (int i = 0; i < WORKERS; i++) pthread_join(all[i].thread, NULL);
  prof_trace *const trace = finish(0, COUNT, &s);
  const size_t count = list_of(trace, OF_SIDE, "scope", scopes, COUNT);
  for (int i = 0; i < WORKERS; i++) {
    size_t own = 0;
    for (size_t k = 0; k < count && k < COUNT; k++)
      own += scopes[k].stream == handle_of(all[i].stream);
    whole += own == OF_EACH;
  }
  say("threads and streams", count == COUNT && whole == WORKERS && s.lost == 0,
      "%zu of %d sides, %lu lost; %zu of %d streams have all of theirs", count, COUNT,
      (unsigned long)s.lost, whole, WORKERS);
  prof_trace_destroy(trace);
}

static void default_streams(void) {
  enum { COUNT = 50 };
  sums s;
  start();
  for (uintptr_t number = 0; number <= 2; number++) {
    const prof_i_hip_stream stream = (prof_i_hip_stream)number;
    scopes_on(stream, "scope", COUNT, 1000);
    hip.hipStreamSynchronize(stream);
  }
  prof_trace_destroy(finish(0, 3 * COUNT, &s));
  say("default streams", s.sides == 3 * COUNT && s.lost == 0, "%lu of %d sides, %lu lost",
      (unsigned long)s.sides, 3 * COUNT, (unsigned long)s.lost);
}

/* Nothing is put on a stream that is captured, and prof's looks at other streams' events break no
   capture. */
static void graphs(void) {
  enum { NODES = 10, LAUNCHES = 20, COUNT = 50 };
  const prof_i_hip_stream stream = make_stream(), other = make_stream();
  void *graph = NULL, *executable = NULL;
  int taken = 0;
  sums s;
  start();
  scopes_on(other, "scope", COUNT, 100000);
  const int begun = hip.hipStreamBeginCapture(stream, CAPTURE_GLOBAL);
  scopes_on(stream, "into the graph", NODES, 2000);
  prof_trace_destroy(settle(0, COUNT, &s)); /* the other one's events are looked at meanwhile */
  const int ended = hip.hipStreamEndCapture(stream, &graph),
            made = ended ? ended : hip.hipGraphInstantiateWithFlags(&executable, graph, 0);
  for (int i = 0; i < LAUNCHES && !made; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "launch", "check", PROF_NO_ARGS,
                      { taken += hip.hipGraphLaunch(executable, stream) == 0; });
  hip.hipStreamSynchronize(stream);
  prof_trace_destroy(finish(0, COUNT + LAUNCHES, &s));
  say("a graph's capture", !begun && !made && s.captured == NODES,
      "begin %d, end %d, instantiate %d; %lu of %d scopes in it", begun, ended, made,
      (unsigned long)s.captured, NODES);
  say("a graph's launches", taken == LAUNCHES && s.sides == COUNT + LAUNCHES && s.lost == 0,
      "%d of %d launches; %lu of %d sides, %lu lost", taken, LAUNCHES, (unsigned long)s.sides,
      COUNT + LAUNCHES, (unsigned long)s.lost);
}

/* What is on its way when its stream goes is still told; scopes on the handle afterwards are lost,
   counted, and leave the program no error. */
static void gone(void) {
  enum { COUNT = 50 };
  const prof_i_hip_stream stream = make_stream(), other = make_stream();
  sums s;
  start();
  scopes_on(stream, "scope", COUNT, 20000);
  const int destroyed = hip.hipStreamDestroy(stream);
  for (int i = 0; i < COUNT; i++)
    WITH_HIP_PROFILER(device, handle_of(stream), "on a stream that has gone", "check", PROF_NO_ARGS,
                      {});
  const int last = hip.hipGetLastError();
  scopes_on(other, "scope", COUNT, 1000);
  hip.hipStreamSynchronize(other);
  prof_trace_destroy(finish(0, 3 * COUNT, &s));
  say("a stream that has gone",
      destroyed == 0 && s.sides == 2 * COUNT && s.lost == COUNT && last == 0,
      "%lu of %d sides, %lu of %d lost; the last error is %d", (unsigned long)s.sides, 2 * COUNT,
      (unsigned long)s.lost, COUNT, last);
}

/* ---- errors ---- */

/* An error that the program has not fetched is there behind its scope, and what prof calls leaves
   none. */
static void errors(void) {
  enum { COUNT = 20 };
  const prof_i_hip_stream stream = make_stream();
  sums s;
  start();
  scopes_on(stream, "scope", COUNT, 1000);
  hip.hipStreamSynchronize(stream);
  prof_trace_destroy(settle(0, COUNT, &s));
  const int after_scopes = hip.hipGetLastError();
  WITH_HIP_PROFILER(device, handle_of(stream), "fails", "check", PROF_NO_ARGS,
                    { hip.hipSetDevice(NO_SUCH_DEVICE); });
  const int in_scope = hip.hipGetLastError();
  hip.hipSetDevice(NO_SUCH_DEVICE);
  WITH_HIP_PROFILER(device, handle_of(stream), "behind one", "check", PROF_NO_ARGS, {});
  const int before_scope = hip.hipGetLastError();
  scopes_on(stream, "scope", COUNT, 1000);
  hip.hipStreamSynchronize(stream);
  prof_trace_destroy(finish(0, 2 * COUNT + 2, &s));
  say("the program's last error",
      after_scopes == 0 && in_scope == INVALID_DEVICE && before_scope == INVALID_DEVICE &&
          s.sides == 2 * COUNT && s.lost == 2,
      "%d after scopes, %d and %d of %d kept; %lu of %d sides, %lu of 2 lost", after_scopes,
      in_scope, before_scope, INVALID_DEVICE, (unsigned long)s.sides, 2 * COUNT,
      (unsigned long)s.lost);
}

static void again(void) {
  enum { TIMES = 100 };
  const prof_i_hip_stream stream = make_stream();
  sums s;
  for (int i = 0; i < TIMES; i++) {
    start();
    scopes_on(stream, "scope", 1, 1000);
    hip.hipStreamSynchronize(stream);
    prof_stop();
  }
  prof_trace_destroy(settle(0, TIMES, &s));
  say("start and stop 100 times", s.sides == TIMES && s.lost == 0, "%lu of %d sides, %lu lost",
      (unsigned long)s.sides, TIMES, (unsigned long)s.lost);
}

/* ---- */

static const struct {
  const char *name;
  void (*check)(void);
} all_checks[] = {{"memory", memory},   {"times", times},     {"clocks", clocks},
                  {"latency", latency}, {"threads", threads}, {"defaults", default_streams},
                  {"graphs", graphs},   {"gone", gone},       {"errors", errors},
                  {"again", again}};

static bool is_wanted(const char *name, int argc, char **argv) {
  for (int i = 1; i < argc; i++)
    if (strcmp(argv[i], name) == 0) return true;
  return argc == 1;
}

int main(int argc, char **argv) {
  const char *const why = begin();
  if (why) {
    say_skipped("hip", "%s", why);
    return 77;
  }
  for (size_t i = 0; i < sizeof all_checks / sizeof *all_checks; i++) {
    if (!is_wanted(all_checks[i].name, argc, argv)) continue;
    prof_clear();
    begin_count();
    all_checks[i].check();
  }
  printf("%d failed\n", failures);
  return failures ? 1 : 0;
}
