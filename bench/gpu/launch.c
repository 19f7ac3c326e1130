/* What it costs the host on a CUDA device.
   A launch: bare, with kernels recorded (level 1), with all calls (level 2), and after recording
   has stopped.
   A scope on a stream: beside two event records of the driver's, and while scopes are off.
   The cases alternate, a round of each in turn. Prints medians over the rounds, and the bounds of
   the middle half. One promise: a scope on a stream takes at most 1.2 times what its two event
   records take. On the emulated driver the figure is shown, and not judged. */
#define _GNU_SOURCE
#include <prof/device.h>
#include <prof/profiler.h>
#include <stdbool.h>
#include <unistd.h>

#include "../../tests/gpu/gpu.h"

enum { LAUNCHES = 2000, SCOPES = 1000, ROUNDS_MAX = 64 };

static const prof_device device = {PROF_DEVICE_CUDA, 0};
static void *stream;

static double launches(void) {
  const double from = gpu_now_ns();
  for (int i = 0; i < LAUNCHES; i++) gpu_launch(stream, 0);
  const double took = gpu_now_ns() - from;
  gpu.cuStreamSynchronize(stream);
  return took / LAUNCHES;
}

static double markers(void) {
  static void *events[2 * SCOPES];
  static bool are_there;
  for (int i = 0; i < 2 * SCOPES && !are_there; i++) gpu.cuEventCreate(&events[i], 0);
  are_there = true;
  const double from = gpu_now_ns();
  for (int i = 0; i < 2 * SCOPES; i++) gpu.cuEventRecord(events[i], stream);
  const double took = gpu_now_ns() - from;
  gpu.cuStreamSynchronize(stream);
  return took / SCOPES;
}

static double scopes(void) {
  const double from = gpu_now_ns();
  for (int i = 0; i < SCOPES; i++)
    WITH_CUDA_PROFILER(device, gpu_handle(stream), "scope", "bench", PROF_NO_ARGS, {});
  const double took = gpu_now_ns() - from;
  gpu.cuStreamSynchronize(stream);
  usleep(20000); /* the collector gives events back */
  return took / SCOPES;
}

static void start(uint32_t level, uint32_t devices) {
  const prof_options options = {.size = sizeof options,
                                .level = level,
                                .devices = devices,
                                .policy = PROF_POLICY_RING,
                                .cap_bytes = 64 << 20};
  if (prof_start_with(&options) == PROF_OK) return;
  fprintf(stderr, "%s\n", prof_last_error());
  exit(2);
}

static double recorded(uint32_t level) {
  start(level, PROF_DEVICES_RECORDS);
  launches(); /* its first buffers */
  const double ns = launches();
  prof_stop();
  return ns;
}
static double recorded_1(void) { return recorded(1); }
static double recorded_2(void) { return recorded(2); }

static double scoped(void) {
  start(1, PROF_DEVICES_SCOPES);
  scopes(); /* its first events */
  const double ns = scopes();
  prof_stop();
  return ns;
}

static const struct {
  const char *what;
  double (*run)(void);
  int beside; /* the row that it is a multiple of */
} rows[] = {{"a launch, bare", launches, 0},
            {"a launch, kernels recorded", recorded_1, 0},
            {"a launch, all calls recorded", recorded_2, 0},
            {"a launch, after recording", launches, 0},
            {"two event records", markers, 4},
            {"a scope on a stream", scoped, 4},
            {"a scope, off", scopes, 4}};
enum { ROWS = sizeof rows / sizeof *rows, MARKERS = 4, SCOPED = 5 };

/* Round by round, so that a machine that changes changes both. */
static int judge(const double *scope_ns, const double *marker_ns, int rounds) {
  const double most = 1.2;
  double ratios[ROUNDS_MAX];
  for (int i = 0; i < rounds; i++) ratios[i] = scope_ns[i] / marker_ns[i];
  const double ratio = gpu_quantile(ratios, (size_t)rounds, 0.5);
  const bool is_held = ratio <= most;
  printf("%-8s %-32s %.3fx of two event records, at most %.1fx\n",
         gpu.is_emulated ? "emulated"
         : is_held       ? "ok"
                         : "failed",
         "a scope on a stream", ratio, most);
  return is_held || gpu.is_emulated ? 0 : 1;
}

int main(int argc, char **argv) {
  static double ns[ROWS][ROUNDS_MAX];
  const int wanted = argc > 1 ? atoi(argv[1]) : 15, rounds = wanted < 1            ? 1
                                                             : wanted > ROUNDS_MAX ? ROUNDS_MAX
                                                                                   : wanted;
  const char *const why = gpu_begin();
  if (why) {
    printf("%-8s %-32s %s\n", "skipped", "launches", why);
    return 77;
  }
  stream = gpu_stream();
  launches();
  /* Before CUPTI has ever been in the process: what it leaves behind shows in "after recording". */
  double untouched[ROUNDS_MAX];
  for (int i = 0; i < rounds; i++) untouched[i] = launches();
  const double first = gpu_quantile(untouched, (size_t)rounds, 0.5);
  for (int i = 0; i < rounds; i++)
    for (int k = 0; k < ROWS; k++) ns[k][i] = rows[k].run();
  gpu_describe();
  printf("%d rounds\n", rounds);
  /* before the rounds are put in order of size */
  const int failed = judge(ns[SCOPED], ns[MARKERS], rounds);
  printf("%-34s %9.1f ns\n", "a launch, CUPTI never there", first);
  for (int k = 0; k < ROWS; k++) {
    double *const mine = ns[k];
    const double median = gpu_quantile(mine, (size_t)rounds, 0.5),
                 base = gpu_quantile(ns[rows[k].beside], (size_t)rounds, 0.5);
    printf("%-34s %9.1f ns   %6.3fx   (%.1f to %.1f)\n", rows[k].what, median,
           median / (rows[k].beside == 0 ? first : base), gpu_quantile(mine, (size_t)rounds, 0.25),
           gpu_quantile(mine, (size_t)rounds, 0.75));
  }
  return failed;
}
