/* usage: cupti_quiet libcupti.so A program that has CUPTI and no driver, and asks prof for records:
   0 where that ended in time, with as many threads as before. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <time.h>

static int threads(void) {
  DIR *const folder = opendir("/proc/self/task");
  int count = 0;
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

static double now_ms(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e3 + (double)now.tv_nsec / 1e6;
}

int main(int argc, char **argv) {
  const prof_options options = {
      .size = sizeof options, .level = 2, .devices = PROF_DEVICES_RECORDS};
  const struct timespec nap = {0, 100000000};
  if (argc != 2 || !dlopen(argv[1], RTLD_NOW))
    return printf("%s\n", argc == 2 ? dlerror() : "which?"), 2;
  const int before = threads();
  if (prof_start_with(&options) != PROF_OK) return printf("%s\n", prof_last_error()), 1;
  nanosleep(&nap, NULL);
  const double begun = now_ms();
  if (prof_stop() != PROF_OK) return printf("%s\n", prof_last_error()), 1;
  const double took = now_ms() - begun;
  nanosleep(&nap, NULL);
  if (took > 1000) printf("the stop took %.0f ms\n", took);
  /* prof's own helper may stay */
  if (threads() > before + 1) printf("%d threads before, %d after\n", before, threads());
  if (dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD)) printf("libcuda.so.1 was loaded\n");
  return 0;
}
