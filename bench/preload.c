/* usage: preload LIBPROF_MEMORY

   What the preload library adds to a pair of malloc() and free(). The program runs itself anew with
   the library preloaded, recording into a file. There the pair of the process's malloc() alternates
   with libc's own, which the library replaces. The figure is the difference of the two in the same
   round. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <malloc.h>
#include <sys/wait.h>

#include "frame.h"

enum { ROUNDS = 300, PAIRS = 8192, LIVE = 1024, ADDED_NS_MAX = 60 };

static struct {
  void *(*malloc)(size_t);
  void (*free)(void *);
} libc;

/* To the optimiser each is a stranger, so that no pair is left out. */
static void *(*volatile the_malloc)(size_t) = malloc;
static void (*volatile the_free)(void *) = free;

static inline __attribute__((always_inline)) void pairs(void *(*get)(size_t), void (*give)(void *),
                                                        uint64_t count, size_t bytes) {
  for (uint64_t i = 0; i < count; i++) {
    void *const piece = get(bytes);
    FRAME_WORK();
    give(piece);
  }
}

/* As programs do it: one of a thousand live pieces goes, another comes, of 1 to 512 bytes. */
static inline __attribute__((always_inline)) void mixed(void *(*get)(size_t), void (*give)(void *),
                                                        uint64_t count) {
  static void *live[LIVE];
  uint64_t state = 1;
  for (uint64_t i = 0; i < count; i++) {
    state = state * 6364136223846793005u + 1442695040888963407u;
    void **const at = &live[state >> 40 & (LIVE - 1)];
    give(*at);
    *at = get((size_t)(state >> 55) + 1);
  }
  for (int i = 0; i < LIVE; i++) {
    give(live[i]);
    live[i] = NULL;
  }
}

FRAME_LOOP void told_small(uint64_t count) { pairs(the_malloc, the_free, count, 64); }
FRAME_LOOP void bare_small(uint64_t count) { pairs(libc.malloc, libc.free, count, 64); }
FRAME_LOOP void told_large(uint64_t count) { pairs(the_malloc, the_free, count, 100000); }
FRAME_LOOP void bare_large(uint64_t count) { pairs(libc.malloc, libc.free, count, 100000); }
FRAME_LOOP void told_mixed(uint64_t count) { mixed(the_malloc, the_free, count); }
FRAME_LOOP void bare_mixed(uint64_t count) { mixed(libc.malloc, libc.free, count); }

/* A case of what is added: told less bare, by round. */
static frame_case less(const frame_case *told, const frame_case *bare, unsigned rounds) {
  frame_case added = *told;
  for (unsigned r = 0; r < rounds; r++) {
    added.ns[r] = told->ns[r] - bare->ns[r];
    added.is_calm[r] = told->is_calm[r] && bare->is_calm[r];
  }
  return added;
}

static void report(const char *what, const frame_case *told, const frame_case *bare,
                   unsigned rounds) {
  static frame_case added;
  char limit[32];
  added = less(told, bare, rounds);
  const frame_spread spread = frame_ns(&added, rounds);
  snprintf(limit, sizeof limit, "%d ns", ADDED_NS_MAX);
  frame_promise(what, spread.median <= ADDED_NS_MAX, limit, "%.1f ns added (%.1f-%.1f) to %.1f%s",
                spread.median, spread.low, spread.high, frame_ns(bare, rounds).median,
                spread.is_busy ? ", busy" : "");
}

static int find_libc(void) {
  void *const handle = dlopen("libc.so.6", RTLD_NOW);
  void *const get = handle ? dlsym(handle, "malloc") : NULL, *const give =
                                                                 handle ? dlsym(handle, "free")
                                                                        : NULL;
  if (!get || !give || get == (void *)(uintptr_t)the_malloc) return 0;
  memcpy(&libc.malloc, &get, sizeof get);
  memcpy(&libc.free, &give, sizeof give);
  return 1;
}

static void measure(void) {
  static frame_case cases[] = {
      {.run = told_small, .count = PAIRS}, {.run = bare_small, .count = PAIRS},
      {.run = told_large, .count = PAIRS}, {.run = bare_large, .count = PAIRS},
      {.run = told_mixed, .count = PAIRS}, {.run = bare_mixed, .count = PAIRS}};
  const unsigned rounds = frame_rounds(ROUNDS);
  FRAME_REQUIRE(find_libc(), "malloc() is libc's: the library is not before it");
  frame_begin("preload");
  frame_run(cases, 6, rounds);
  report("preloaded: malloc(64) + free", &cases[0], &cases[1], rounds);
  report("preloaded: 1 to 512 bytes, a thousand live", &cases[4], &cases[5], rounds);
  report("preloaded: malloc(100000) + free", &cases[2], &cases[3], rounds);
  fflush(stdout);
}

int main(int argc, char **argv) {
  if (getenv("PROF_MEMORY")) {
    measure();
    _exit(0); /* no trace: the capture goes with its directory */
  }
  if (argc != 2 || access(argv[1], R_OK) != 0) {
    printf("skip: no libprof_memory.so; usage: preload LIBPROF_MEMORY\n");
    return 0;
  }
  const char *const directory = frame_directory();
  char output[600], library[4096];
  FRAME_REQUIRE(realpath(argv[1], library), "%s", argv[1]);
  snprintf(output, sizeof output, "%s/preload.prof", directory);
  const pid_t child = fork();
  if (child == 0) {
    setenv("LD_PRELOAD", library, 1);
    setenv("PROF_MEMORY", "1", 1);
    setenv("PROF_OUTPUT", output, 1);
    execl("/proc/self/exe", "preload", (char *)NULL);
    _exit(127);
  }
  int status = 1;
  FRAME_REQUIRE(child > 0 && waitpid(child, &status, 0) == child, "%s", strerror(errno));
  frame_remove_directory(directory);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
