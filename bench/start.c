/* What it costs to have prof at all: loading the library, over loading an empty one; starting and
   stopping an empty capture. Nothing may change with loading: no thread, no descriptor.

   usage: start LIBPROF EMPTY

   The paths are of libprof.so and of a library with nothing in it (bench/empty). The program opens
   libprof at run time, in a new process each time; it is not linked with it. */
#define _GNU_SOURCE
#include "frame.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <prof/profiler.h>
#include <sys/mman.h>
#include <sys/wait.h>

enum { LOADS = 200, STARTS = 300 };

/* ---- load ---- */

typedef struct load {
  double ns[2];                        /* of the empty library, of libprof */
  int threads, descriptors, libraries; /* how many more there are with libprof */
} load;

static int entries(const char *path) {
  DIR *const directory = opendir(path);
  int count = 0;
  while (directory && readdir(directory)) count++;
  if (directory) closedir(directory);
  return count;
}

static int count_library(struct dl_phdr_info *info, size_t size, void *count) {
  (void)info;
  (void)size;
  ++*(int *)count;
  return 0;
}

static int libraries(void) {
  int count = 0;
  dl_iterate_phdr(count_library, &count);
  return count;
}

static double load_ns(const char *path) {
  const double begun = frame_now_ns();
  void *const library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  const double ns = frame_now_ns() - begun;
  FRAME_REQUIRE(library, "%s", dlerror());
  return ns;
}

/* In a process of its own: first a library that nobody measures, since the loader's first one costs
   more; then the two. */
static load load_once(char **paths, bool prof_first) {
  load result = {{0, 0}, 0, 0, 0};
  int ends[2];
  FRAME_REQUIRE(pipe(ends) == 0, "no pipe");
  const pid_t child = fork();
  if (child == 0) {
    load_ns("libm.so.6");
    const int threads = entries("/proc/self/task"), descriptors = entries("/proc/self/fd"),
              before = libraries();
    result.ns[prof_first] = load_ns(paths[prof_first]);
    result.ns[!prof_first] = load_ns(paths[!prof_first]);
    result.threads = entries("/proc/self/task") - threads;
    result.descriptors = entries("/proc/self/fd") - descriptors;
    result.libraries = libraries() - before - 1;
    _exit(write(ends[1], &result, sizeof result) == sizeof result ? 0 : 1);
  }
  close(ends[1]);
  const bool is_whole = child > 0 && read(ends[0], &result, sizeof result) == sizeof result;
  close(ends[0]);
  if (child > 0) waitpid(child, NULL, 0);
  FRAME_REQUIRE(is_whole, "the child that loads %s failed", paths[1]);
  return result;
}

static void measure_load(char **paths) {
  static double empty[FRAME_ROUNDS_MAX], over[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(LOADS);
  load last = {{0, 0}, 0, 0, 0};
  for (unsigned r = 0; r < rounds; r++) {
    last = load_once(paths, r % 2);
    empty[r] = last.ns[0];
    over[r] = last.ns[1] - last.ns[0];
  }
  const frame_spread spread = frame_spread_of(over, rounds);
  frame_note("dlopen of an empty library: %.1f us; libprof brings %d libraries, itself counted",
             frame_spread_of(empty, rounds).median / 1e3, last.libraries);
  frame_promise("dlopen of libprof, over an empty library", spread.median <= 20e3, "20 us",
                "%.1f us (%.1f-%.1f)", spread.median / 1e3, spread.low / 1e3, spread.high / 1e3);
  frame_promise("threads and descriptors after it", last.threads == 0 && last.descriptors == 0,
                "0, 0", "%d, %d more", last.threads, last.descriptors);
}

/* ---- start and stop ---- */

static __typeof__(&prof_start_with) start_with;
static __typeof__(&prof_stop) stop;
static __typeof__(&prof_last_error) last_error;

/* What a file to record into costs in the kernel, for any caller: made, 16 KiB reserved, its first
   page mapped and stored to. */
static void bare_file(const char *directory) {
  char path[600];
  snprintf(path, sizeof path, "%s/bare", directory);
  const int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  FRAME_REQUIRE(fd >= 0 && fallocate(fd, 0, 0, 16384) == 0, "%s", path);
  char *const page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  FRAME_REQUIRE(page != MAP_FAILED, "%s", path);
  *page = 1;
  munmap(page, 4096);
  close(fd);
}

/* A capture goes on after a stop unless the options differ: a cap that is another each time makes a
   new arena each time. */
static void measure_start(const char *what, const char *path, const char *directory,
                          uint32_t devices, double bound_ns) {
  static double took[FRAME_ROUNDS_MAX], stopped[FRAME_ROUNDS_MAX], file_took[FRAME_ROUNDS_MAX];
  const unsigned rounds = frame_rounds(STARTS);
  char bound[32];
  for (unsigned r = 0; r < rounds; r++) {
    const prof_options options = {.size = sizeof options,
                                  .path = path,
                                  .cap_bytes = (256u << 20) + (r % 2 << 14),
                                  .devices = devices};
    const double begun = frame_now_ns();
    const int status = start_with(&options);
    const double between = frame_now_ns();
    stop();
    const double end = frame_now_ns();
    FRAME_REQUIRE(status == PROF_OK, "%s", last_error());
    took[r] = end - begun;
    stopped[r] = end - between;
    if (!directory) continue;
    frame_empty_directory(directory);
    const double before = frame_now_ns();
    bare_file(directory);
    file_took[r] = frame_now_ns() - before;
  }
  const frame_spread spread = frame_spread_of(took, rounds);
  if (directory)
    frame_note("a file made, reserved and mapped, nothing more: %.3f ms",
               frame_spread_of(file_took, rounds).median / 1e6);
  snprintf(bound, sizeof bound, "%.1f ms", bound_ns / 1e6);
  frame_promise(what, spread.median <= bound_ns, bound, "%.3f ms (%.3f-%.3f), stop alone %.3f",
                spread.median / 1e6, spread.low / 1e6, spread.high / 1e6,
                frame_spread_of(stopped, rounds).median / 1e6);
}

int main(int argc, char **argv) {
  if (argc != 3) {
    fprintf(stderr, "usage: %s LIBPROF EMPTY\n", argv[0]);
    return 2;
  }
  char *paths[] = {argv[2], argv[1]};
  frame_begin("start");
  measure_load(paths);
  void *const library = dlopen(argv[1], RTLD_NOW);
  FRAME_REQUIRE(library, "%s", dlerror());
  *(void **)&start_with = dlsym(library, "prof_start_with");
  *(void **)&stop = dlsym(library, "prof_stop");
  *(void **)&last_error = dlsym(library, "prof_last_error");
  FRAME_REQUIRE(start_with && stop && last_error, "%s is not libprof", argv[1]);
  const char *const directory = frame_directory();
  char path[600];
  snprintf(path, sizeof path, "%s/start.json", directory);
  measure_start("start and stop of an empty capture, in memory", NULL, NULL, PROF_DEVICES_DEFAULT,
                0.3e6);
  measure_start("the same, and devices' records are asked for", NULL, NULL, PROF_DEVICES_RECORDS,
                0.4e6);
  measure_start("start and stop of an empty capture, with a file", path, directory,
                PROF_DEVICES_DEFAULT, 1e6);
  frame_remove_directory(directory);
  return 0;
}
