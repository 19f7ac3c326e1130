/* Runs two parts and prints what their profilers counted.

   Usage, if built with LINKED. The program is linked with both parts.
     program           Records by the environment, or not at all.
     program start     Each part starts its profiler. The first stops before the second.

   Usage, if built without it. The program opens the parts, and each starts its profiler.
     program A.so global|local B.so */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

typedef struct part {
  int (*start)(void);
  void (*work)(int times);
  uint64_t (*count)(void);
  int (*stop)(void);
  int (*dump)(const char *path);
  const char *(*reason)(void);
} part;

#ifdef LINKED
#define DECLARE(name)                                                       \
  int name##_start(void), name##_stop(void), name##_dump(const char *path); \
  void name##_work(int times);                                              \
  uint64_t name##_count(void);                                              \
  const char *name##_reason(void);
DECLARE(one)
DECLARE(two)
static const part one = {one_start, one_work, one_count, one_stop, one_dump, one_reason};
static const part two = {two_start, two_work, two_count, two_stop, two_dump, two_reason};
#else
static part one, two;
#endif

static void *function(void *library, const char *name, const char *verb) {
  char full[64];
  snprintf(full, sizeof full, "%s_%s", name, verb);
  return dlsym(library, full);
}

static int open_part(part *to, const char *name, const char *path, int flags) {
  void *const library = dlopen(path, RTLD_NOW | flags);
  if (!library) {
    fprintf(stderr, "%s\n", dlerror());
    return 0;
  }
  *(void **)&to->start = function(library, name, "start");
  *(void **)&to->work = function(library, name, "work");
  *(void **)&to->count = function(library, name, "count");
  *(void **)&to->stop = function(library, name, "stop");
  *(void **)&to->dump = function(library, name, "dump");
  *(void **)&to->reason = function(library, name, "reason");
  return to->start && to->work && to->count && to->stop && to->dump && to->reason;
}

static void work(int one_times, int two_times) {
  one.work(one_times);
  two.work(two_times);
  printf("one %lld two %lld\n", (long long)one.count(), (long long)two.count());
}

static void start(const char *name, const part *p) {
  const int status = p->start();
  printf("start %s %d%s%s\n", name, status, status ? ": " : "", status ? p->reason() : "");
}

int main(int argc, char **argv) {
#ifndef LINKED
  if (argc != 4) return 2;
  part opened_one, opened_two;
  if (!open_part(&opened_one, "one", argv[1],
                 strcmp(argv[2], "global") == 0 ? RTLD_GLOBAL : RTLD_LOCAL))
    return 1;
  if (!open_part(&opened_two, "two", argv[3], RTLD_LOCAL)) return 1;
  one = opened_one;
  two = opened_two;
#endif
  if (argc == 1) {
    work(10, 100);
    return 0;
  }
  start("one", &one);
  start("two", &two);
  work(10, 100);
  printf("stop one %d\n", one.stop());
  work(1, 1000);
  printf("stop two %d\n", two.stop());
  printf("dump %d %d\n", one.dump("one.json"), two.dump("two.json"));
  return 0;
}
