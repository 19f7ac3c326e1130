/* What an OpenCL library may do to the back end, by one that does it on demand
   (plugins/opencl_double.c): each end is reported, none hurts. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <prof/device.h>
#include <prof/profiler.h>
#include <prof/sampler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hang_guard.h"

enum { COUNT = 50, PROFILING = 2, OWNER = 65534, CALLER = 65533 };

static char folder[256];
static const prof_device device = {PROF_DEVICE_OPENCL, 0};

/* ---- in the child ---- */

#define CHECK(condition)                                                                     \
  do {                                                                                       \
    if (!(condition)) {                                                                      \
      fprintf(stderr, "%s:%d: not so: %s; the back end says: %s (%d)\n", __FILE__, __LINE__, \
              #condition, status().reason, status().result);                                 \
      exit(1);                                                                               \
    }                                                                                        \
  } while (0)

static prof_backend_state status(void) {
  prof_backend_state state = {.size = sizeof state};
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++)
    if (strcmp(state.name, "opencl") == 0) return state;
  fputs("there is no back end opencl\n", stderr);
  exit(1);
}

static bool is_loaded(void) {
  void *const library = dlopen("libOpenCL.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (library) dlclose(library);
  return library != NULL;
}

static void *open_double(const char *symbol) {
  void *const library = dlopen("libOpenCL.so.1", RTLD_NOW);
  void *const found = library ? dlsym(library, symbol) : NULL;
  if (!found) {
    fprintf(stderr, "no %s: %s\n", symbol, dlerror());
    exit(1);
  }
  return found;
}

static void *make_queue(uint64_t properties) {
  void *(*make)(uint64_t);
  *(void **)&make = open_double("double_queue");
  return make(properties);
}

static int event_count(void) {
  int (*count)(void);
  *(void **)&count = open_double("double_event_count");
  return count();
}

typedef struct sums {
  uint64_t host, on_device, lost;
  /* of the device's scopes, from their host's start, by CLOCK_MONOTONIC */
  int64_t earliest_ns, latest_ns;
  /* the same as earliest_ns by the trace, of whose clock both are */
  int64_t launch_ns;
  int64_t error_ns; /* what a time of the device may be wrong by, as the trace says */
} sums;

static uint64_t starts[COUNT], ends[COUNT]; /* by the host */

static uint64_t now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

static void look_at(sums *s, const prof_trace *trace, const prof_event *event, uint64_t begun_ns) {
  prof_trace_thread thread = {.size = sizeof thread};
  CHECK(prof_trace_thread_get(trace, event->thread, &thread) == PROF_OK);
  if (!thread.is_stream) {
    s->host++;
    return;
  }
  const int64_t from = (int64_t)(begun_ns + event->start_ns - starts[s->on_device]),
                to =
                    (int64_t)(begun_ns + event->start_ns + event->duration_ns - ends[s->on_device]);
  if (from < s->earliest_ns) s->earliest_ns = from;
  const int64_t since_launch = (int64_t)(event->start_ns - event->launch.start_ns);
  if (to > s->latest_ns) s->latest_ns = to;
  if (since_launch < s->launch_ns) s->launch_ns = since_launch;
  s->on_device++;
}

static sums sum(void) {
  sums s = {.earliest_ns = INT64_MAX, .latest_ns = INT64_MIN, .launch_ns = INT64_MAX};
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  prof_trace_info info = {.size = sizeof info};
  static prof_event event;
  CHECK(prof_get(&trace) == PROF_OK && prof_trace_info_get(trace, &info) == PROF_OK &&
        prof_cursor_create(trace, &cursor) == PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) look_at(&s, trace, &event, info.start_ns);
  s.lost = info.lost_count[PROF_LOSS_DEVICE_TIMES];
  for (uint32_t i = 0; i < info.device_count; i++) {
    prof_trace_device about = {.size = sizeof about};
    CHECK(prof_trace_device_get(trace, i, &about) == PROF_OK);
    const int64_t error_ns = (int64_t)(about.clock_error_ns + info.clock_error_ns);
    if (error_ns > s.error_ns) s.error_ns = error_ns;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  return s;
}

/* Scopes on a queue with these properties, until all are read. */
static sums record(uint64_t properties) {
  CHECK(prof_start(1) == PROF_OK);
  void *const queue = make_queue(properties);
  for (int i = 0; i < COUNT; i++) {
    starts[i] = now_ns();
    WITH_GPU_PROFILER(device, queue, "kernel", "test", PROF_NO_ARGS, {});
    ends[i] = now_ns();
  }
  sums s = sum();
  for (unsigned naps = 0; s.on_device + s.lost < COUNT && hang_nap(&naps); s = sum()) continue;
  CHECK(s.host == COUNT && s.on_device + s.lost == COUNT);
  CHECK(prof_stop() == PROF_OK);
  return s;
}

static void nothing_is_loaded_before_it_is_needed(void) {
  CHECK(prof_start(1) == PROF_OK);
  WITH_BASE_PROFILER(PROF_HOST, "host", "test", PROF_NO_ARGS, {});
  const prof_device other = {PROF_DEVICE_VULKAN, 0};
  WITH_GPU_PROFILER(other, 4096, "another device's", "test", PROF_NO_ARGS, {});
  if (is_loaded()) exit(1);
  CHECK(prof_stop() == PROF_OK);
  CHECK(status().result == PROF_BACKEND_OK && !status().is_open && is_loaded());
}

static void no_platform(void) {
  CHECK(status().result == PROF_BACKEND_NO_DEVICE &&
        strstr(status().reason, "clGetPlatformIDs: CL_PLATFORM_NOT_FOUND_KHR (-1001)"));
}

static void no_device(void) {
  /* to see that it has none, prof would have to query the devices */
  CHECK(status().result == PROF_BACKEND_OK);
  CHECK(prof_start(1) == PROF_OK);
  WITH_GPU_PROFILER(device, make_queue(PROFILING), "kernel", "test", PROF_NO_ARGS, {});
  CHECK(status().result == PROF_BACKEND_NO_DEVICE &&
        strstr(status().reason, "1 platforms, and no device of any"));
  CHECK(sum().host == 1 && sum().on_device == 0);
}

static void no_library(void) {
  CHECK(status().result == PROF_BACKEND_VERSION &&
        strstr(status().reason, "libOpenCL.so.1 cannot be loaded: "));
  CHECK(prof_start(1) == PROF_OK);
  WITH_GPU_PROFILER(device, 4096, "kernel", "test", PROF_NO_ARGS, {});
  CHECK(sum().host == 1 && sum().on_device == 0);
}

static void another_library(void) {
  CHECK(status().result == PROF_BACKEND_VERSION &&
        strstr(status().reason, "libOpenCL.so.1 has no clGetPlatformIDs()"));
}

static void old(void) {
  CHECK(record(PROFILING).on_device == COUNT);
  CHECK(event_count() == 0); /* none is held on to once it is read */
}

static void unknown_clock(void) {
  const sums s = record(PROFILING);
  CHECK(s.on_device == COUNT && s.launch_ns >= 0); /* nothing stands before its launch */
}

/* Inside the host's own scope, except for the stated error, which is wide on a busy machine, and
   the width of a reading. */
static void is_exact(void) {
  const sums s = record(PROFILING);
  CHECK(s.on_device == COUNT);
  CHECK(s.earliest_ns > -2000 - s.error_ns);
  CHECK(s.latest_ns < 2000 + s.error_ns);
}

static void timer_that_is_no_use(void) {
  const sums s = record(PROFILING);
  CHECK(s.on_device == COUNT && s.launch_ns >= 0 && s.latest_ns < 2000 + s.error_ns);
}

static void fails(void) {
  const sums s = record(PROFILING);
  CHECK(s.lost == COUNT);
  /* nobody asks for the times of the begins: they are let go when they are used again */
  CHECK(event_count() <= COUNT);
}

static void no_times(void) {
  const sums s = record(PROFILING);
  CHECK(s.lost == COUNT && event_count() == 0);
}

static void no_profiling(void) {
  const sums s = record(0);
  CHECK(s.lost == COUNT);
  CHECK(status().result == PROF_BACKEND_OK && strstr(status().reason, "CL_QUEUE_PROFILING_ENABLE"));
}

static void no_queue(void) {
  static const uint64_t streams[] = {0, 1, 7, 4095, 65537};
  CHECK(prof_start(1) == PROF_OK);
  for (int i = 0; i < 5; i++) {
    char number[32];
    WITH_GPU_PROFILER(device, streams[i], "kernel", "test", PROF_NO_ARGS, {});
    snprintf(number, sizeof number, "stream %llu is no", (unsigned long long)streams[i]);
    CHECK(strstr(status().reason, number));
  }
  CHECK(sum().host == 5 && sum().on_device == 0 && sum().lost == 5);
}

/* In a program with more rights than its user: see prof_i_opencl_library_open(). The loader takes
   no LD_LIBRARY_PATH there, so what would be opened is the system's. */
static const prof_sampler_options memory_used = {
    .size = sizeof memory_used, .interval_ns = 1000000, .mode = PROF_SAMPLE_VRAM};

static void memory(void) {
  static prof_event event;
  prof_sampler_state sampler = {.size = sizeof sampler};
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  /* the program has not used it */
  CHECK(prof_sampler_start(&memory_used) == PROF_E_NOT_FOUND && !is_loaded());
  record(PROFILING);
  CHECK(status().abilities & PROF_CAN_METRICS);
  CHECK(prof_start(1) == PROF_OK && prof_sampler_start(&memory_used) == PROF_OK);
  while (sampler.sample_count < 3) CHECK(prof_sampler_get(&sampler) == PROF_OK);
  int stopped = prof_sampler_stop();
  /* its thread may have no processor for longer than a stop waits */
  for (unsigned naps = 0; stopped == PROF_E_BUSY && hang_nap(&naps);)
    stopped = prof_sampler_stop() == PROF_E_NOT_RUNNING ? PROF_OK : PROF_E_BUSY;
  CHECK(sampler.meter_count == 1 && stopped == PROF_OK && prof_stop() == PROF_OK);
  CHECK(prof_get(&trace) == PROF_OK && prof_cursor_create(trace, &cursor) == PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_COUNTER) continue;
    CHECK(event.value == (double)(UINT64_C(5) << 30) && event.device.type == PROF_DEVICE_OPENCL &&
          event.device.index == 0);
    CHECK(event.name_bytes == 24 && memcmp(event.name, "opencl:0 memory used (B)", 24) == 0);
    count++;
  }
  CHECK(count >= 3);
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
}

static void no_memory(void) {
  record(PROFILING);
  CHECK(!(status().abilities & PROF_CAN_METRICS));
  CHECK(prof_sampler_start(&memory_used) == PROF_E_NOT_FOUND);
}

static void memory_that_cannot_be(void) { no_memory(); }

static void more_rights(void) {
  if (!getauxval(AT_SECURE)) _exit(3);
  CHECK(status().result == PROF_BACKEND_PERMISSION &&
        strstr(status().reason, "libOpenCL.so.1 is not opened for it"));
  if (is_loaded()) _exit(1);
  _exit(0); /* and no look for leaks: nobody may look into such a process */
}

/* ---- each in a process of its own: name, how the double behaves (NULL: no library; "": nothing
   special) ---- */

#define CASES(X)                               \
  X(nothing_is_loaded_before_it_is_needed, "") \
  X(no_platform, "no_platform")                \
  X(no_device, "no_device")                    \
  X(no_library, NULL)                          \
  X(another_library, "odd")                    \
  X(old, "old")                                \
  X(unknown_clock, "")                         \
  X(timer_that_is_no_use, "timer_lies")        \
  X(is_exact, "timer")                         \
  X(fails, "fails")                            \
  X(no_times, "no_times")                      \
  X(no_profiling, "")                          \
  X(no_queue, "")                              \
  X(memory, "amd")                             \
  X(no_memory, "")                             \
  X(memory_that_cannot_be, "amd_lies")

static const char *program;

/* The only libOpenCL.so.1 that the child finds, if any. */
static void put_library(const char *mode) {
  char from[512], to[512];
  snprintf(to, sizeof to, "%s/libOpenCL.so.1", folder);
  snprintf(from, sizeof from, "%s/%s.so", getenv("PROF_TEST_PLUGIN_DIR"),
           mode && strcmp(mode, "odd") == 0 ? "odd" : "opencl_double");
  unlink(to);
  if (mode)
    assert_int_equal(symlink(from, to), 0);
  else
    assert_int_equal(symlink("/dev/null", to), 0); /* stands before the system's */
}

static void run(const char *name, const char *mode) {
  int status_of_child = -1;
  put_library(mode);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_LIBRARY_PATH", folder, 1);
    setenv("PROF_TEST_OPENCL", mode ? mode : "", 1);
    execl(program, program, name, (char *)NULL);
    _exit(127);
  }
  assert_int_equal(waitpid(child, &status_of_child, 0), child);
  if (status_of_child != 0)
    fail_msg("%s, %s: status 0x%x", name, mode ? mode : "no library", (unsigned)status_of_child);
}

#define RUN(name, mode)                  \
  static void run_##name(void **state) { \
    (void)state;                         \
    run(#name, mode);                    \
  }
CASES(RUN)

static void a_stale_timer_is_given_up(void **state) {
  (void)state;
  run("timer_that_is_no_use", "timer_stale");
}

static void times_of_the_hosts_clock_need_no_timer(void **state) {
  (void)state;
  run("is_exact", "host_clock");
}

static bool copy_with_rights(const char *to) {
  char bytes[65536];
  FILE *const in = fopen("/proc/self/exe", "rb"), *const out = fopen(to, "wb");
  assert_true(in && out);
  for (size_t count; (count = fread(bytes, 1, sizeof bytes, in)) > 0;)
    assert_int_equal(fwrite(bytes, 1, count, out), count);
  fclose(in);
  assert_int_equal(fclose(out), 0);
  return chown(to, OWNER, OWNER) == 0 && chmod(to, 04755) == 0;
}

static void a_program_with_more_rights_opens_none(void **state) {
  char copy[512];
  int status_of_child = -1;
  (void)state;
  snprintf(copy, sizeof copy, "%s/program", folder);
  if (geteuid() != 0 || !copy_with_rights(copy) || chmod(folder, 0755) != 0) {
    print_message("skip: not root\n");
    unlink(copy);
    skip();
  }
  const pid_t child = fork();
  if (child == 0) {
    if (setgid(CALLER) != 0 || setuid(CALLER) != 0) _exit(3);
    execl(copy, copy, "more_rights", (char *)NULL);
    _exit(3);
  }
  assert_int_equal(waitpid(child, &status_of_child, 0), child);
  unlink(copy);
  /* 127: the library stands where that user may not go */
  if (status_of_child == 3 << 8 || status_of_child == 127 << 8) {
    print_message("skip: nobody gets more rights here\n");
    skip();
  }
  assert_int_equal(status_of_child, 0);
}

static int make_folder(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "%s/prof-opencl-XXXXXX",
           getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
  return mkdtemp(folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  char path[512];
  (void)state;
  snprintf(path, sizeof path, "%s/libOpenCL.so.1", folder);
  unlink(path);
  return rmdir(folder);
}

int main(int argc, char **argv) {
#define ONE(name, mode)                           \
  if (argc == 2 && strcmp(argv[1], #name) == 0) { \
    name();                                       \
    return 0;                                     \
  }
  CASES(ONE)
  ONE(more_rights, NULL)
#define ENTRY(name, mode) cmocka_unit_test(run_##name),
  const struct CMUnitTest tests[] = {CASES(ENTRY) cmocka_unit_test(a_stale_timer_is_given_up),
                                     cmocka_unit_test(times_of_the_hosts_clock_need_no_timer),
                                     cmocka_unit_test(a_program_with_more_rights_opens_none)};
  program = argv[0];
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
