/* What every benchmark of prof shares: the floor, alternating rounds, medians with their spread,
   and the line of a promise.

   A round runs each case once, one batch of events, beginning with another case each time. A case's
   figure is a median over the rounds: its ns divided by the ns of the floor in the same round. What
   slows the machine for a while slows both. The 10 % and 90 % points are printed, too.

   The floor is what no recorder on this clock can go below: two counter reads and one 32-byte store
   into a ring of 16 MiB.

   Reading the counter takes time but few instructions, so a neighbour on the same core (another
   virtual machine's, say) slows a scope more than the floor. A probe of plain arithmetic runs
   between the batches; a batch is calm if the probes before and after it are within 10 % of the
   fastest. Calm batches alone count; where fewer than a tenth are, all do, and the line says busy.

   Lines of four columns with " | " between them are results, which bench/run.sh collects; all else
   is notes. For C and C++. SPDX-License-Identifier: MIT */
#ifndef PROF_BENCH_FRAME_H
#define PROF_BENCH_FRAME_H

#ifndef _GNU_SOURCE
#error "define _GNU_SOURCE before the first include"
#endif

#include <dirent.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statfs.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#ifdef __cplusplus
#define FRAME_DOUBLE(x) static_cast<double>(x)
#else
#define FRAME_DOUBLE(x) ((double)(x))
#endif

/* A loop of a few instructions runs up to twice as slow when it crosses a cache line. */
#define FRAME_LOOP static __attribute__((noinline, aligned(64), unused))

/* What stands inside a scope, and inside the floor: nothing that takes time, but nothing moves
   across it either. */
#define FRAME_WORK() __asm__ __volatile__("" ::: "memory")

enum { FRAME_RING_BYTES = 16 << 20 };
#define FRAME_ROUNDS_MAX 2000u

/* ---- time ---- */

static inline uint64_t frame_counter(void) {
#if defined(__x86_64__)
  uint64_t low, high;
  __asm__ __volatile__("rdtsc" : "=a"(low), "=d"(high)::"memory");
  return high << 32 | low;
#elif defined(__aarch64__)
  uint64_t ticks;
  __asm__ __volatile__("mrs %0, cntvct_el0" : "=r"(ticks)::"memory");
  return ticks;
#else
#error "the benchmarks need x86-64 or aarch64"
#endif
}

static inline double frame_now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC_RAW, &now);
  return FRAME_DOUBLE(now.tv_sec) * 1e9 + FRAME_DOUBLE(now.tv_nsec);
}

/* Measured once, over 20 ms. */
static inline double frame_ns_per_tick(void) {
  static double rate;
  if (rate > 0) return rate;
  const double begun = frame_now_ns();
  const uint64_t ticks = frame_counter();
  double now = begun;
  while (now - begun < 20e6) now = frame_now_ns();
  rate = (now - begun) / FRAME_DOUBLE(frame_counter() - ticks);
  return rate;
}

/* ---- the floor ---- */

typedef struct frame_record {
  uint64_t start, duration, site, more;
} __attribute__((aligned(32))) frame_record;

/* 16 MiB, all of it touched. */
static inline frame_record *frame_ring(void) {
  static frame_record ring[FRAME_RING_BYTES / sizeof(frame_record)];
  static bool is_touched;
  if (!is_touched) memset(ring, 1, sizeof ring);
  is_touched = true;
  return ring;
}

/* One event of the floor, at the ring's place `at`; returns the next place. */
static inline __attribute__((always_inline)) uint64_t frame_floor_event(frame_record *ring,
                                                                        uint64_t at,
                                                                        uint64_t site) {
  const uint64_t start = frame_counter();
  FRAME_WORK();
  const uint64_t end = frame_counter();
  const frame_record record = {start, end - start, site, 0};
  ring[at] = record;
  return (at + 1) % (FRAME_RING_BYTES / sizeof(frame_record));
}

/* Texts of which each is another one. As in a program, a text is made some scopes before the scope
   that uses it. A wide load of what has just been stored would have to wait for the store. */
enum { FRAME_TEXTS = 32, FRAME_TEXT_BYTES = 24 };
typedef struct frame_texts {
  char of[FRAME_TEXTS][FRAME_TEXT_BYTES];
} frame_texts;

/* A number of 28 bits in eight digits, no byte 0. */
static inline __attribute__((unused)) void frame_renew(char text[8]) {
  static uint64_t last;
  const uint64_t n = ++last;
  const uint64_t low = (n & 0x7f) | (n & 0x3f80) << 1;
  const uint64_t digits = low | (n & 0x1fc000) << 2 | (n & 0xfe00000) << 3 | 0x8080808080808080u;
  memcpy(text, &digits, 8);
}

/* `at`: where in `text` the number stands; FRAME_TEXT_BYTES - 9 at most. */
static inline __attribute__((unused)) void frame_texts_begin(frame_texts *texts, const char *text,
                                                             size_t at) {
  for (int i = 0; i < FRAME_TEXTS; i++) {
    snprintf(texts->of[i], FRAME_TEXT_BYTES, "%s", text);
    frame_renew(texts->of[i] + at);
  }
}

static inline __attribute__((unused)) const char *frame_texts_next(frame_texts *texts, uint64_t i,
                                                                   size_t at) {
  frame_renew(texts->of[(i + FRAME_TEXTS / 2) % FRAME_TEXTS] + at);
  return texts->of[i % FRAME_TEXTS];
}

FRAME_LOOP void frame_floor(uint64_t count) {
  static uint64_t at;
  frame_record *const ring = frame_ring();
  uint64_t here = at;
  for (uint64_t i = 0; i < count; i++) here = frame_floor_event(ring, here, i);
  at = here;
}

/* ---- rounds ---- */

typedef struct frame_case {
  void (*run)(uint64_t count);
  uint64_t count;              /* events a batch */
  double ns[FRAME_ROUNDS_MAX]; /* an event, by round */
  bool is_calm[FRAME_ROUNDS_MAX];
} frame_case;

typedef struct frame_spread {
  double median, low, high; /* 50, 10 and 90 % */
  bool is_busy;             /* of batches that were not calm */
} frame_spread;

/* BENCH_QUICK=1: a fifth of the rounds, and wider spreads. */
static inline bool frame_is_quick(void) {
  const char *const quick = getenv("BENCH_QUICK");
  return quick && *quick && *quick != '0';
}

static inline unsigned frame_rounds(unsigned normal) {
  const unsigned rounds = frame_is_quick() ? (normal + 4) / 5 : normal;
  return rounds < FRAME_ROUNDS_MAX ? rounds : FRAME_ROUNDS_MAX;
}

static inline double frame_time_batch(void (*run)(uint64_t), uint64_t count) {
  const uint64_t begun = frame_counter();
  run(count);
  return FRAME_DOUBLE(frame_counter() - begun) * frame_ns_per_tick() / FRAME_DOUBLE(count);
}

static inline int frame_compare(const void *a, const void *b) {
  double x, y;
  memcpy(&x, a, sizeof x);
  memcpy(&y, b, sizeof y);
  return (x > y) - (x < y);
}

static inline frame_spread frame_spread_of(const double *values, unsigned count) {
  static double sorted[FRAME_ROUNDS_MAX];
  const unsigned n = count < FRAME_ROUNDS_MAX ? count : FRAME_ROUNDS_MAX;
  memcpy(sorted, values, n * sizeof *sorted);
  qsort(sorted, n, sizeof *sorted, frame_compare);
  const frame_spread spread = {sorted[n / 2], sorted[n / 10], sorted[n - 1 - n / 10], false};
  return spread;
}

/* Arithmetic that a processor can do several instructions at a time of: what a neighbour on its
   core takes away first. */
FRAME_LOOP void frame_probe(uint64_t count) {
  static volatile uint64_t kept;
  uint64_t a = kept, b = a + 1, c = a + 2, d = a + 3;
  for (uint64_t i = 0; i < count; i++) {
    a += a << 3 ^ i;
    b += b << 5 ^ i;
    c += c << 7 ^ i;
    d += d << 9 ^ i;
  }
  kept = a ^ b ^ c ^ d;
}

static inline double frame_probe_ns(void) { return frame_time_batch(frame_probe, 2000); }

/* First one batch of each, unmeasured: call sites are registered, pages and caches filled. */
static inline void frame_run(frame_case *cases, unsigned case_count, unsigned rounds) {
  double fastest = frame_probe_ns();
  for (unsigned i = 0; i < 100; i++) {
    const double ns = frame_probe_ns();
    fastest = ns < fastest ? ns : fastest;
  }
  for (unsigned i = 0; i < case_count; i++) cases[i].run(cases[i].count);
  double before = frame_probe_ns();
  for (unsigned r = 0; r < rounds; r++)
    for (unsigned i = 0; i < case_count; i++) {
      frame_case *const c = &cases[(r + i) % case_count];
      c->ns[r] = frame_time_batch(c->run, c->count);
      const double after = frame_probe_ns();
      c->is_calm[r] = before <= 1.1 * fastest && after <= 1.1 * fastest;
      before = after;
    }
}

/* Of a case's ns, divided by another's in the same round unless that is NULL. */
static inline frame_spread frame_calm_spread(const frame_case *c, const frame_case *by,
                                             unsigned rounds) {
  static double calm[FRAME_ROUNDS_MAX], all[FRAME_ROUNDS_MAX];
  unsigned count = 0;
  for (unsigned r = 0; r < rounds; r++) {
    all[r] = c->ns[r] / (by ? by->ns[r] : 1);
    if (c->is_calm[r] && (!by || by->is_calm[r])) calm[count++] = all[r];
  }
  const bool is_busy = count < rounds / 10 || count == 0;
  frame_spread spread = is_busy ? frame_spread_of(all, rounds) : frame_spread_of(calm, count);
  spread.is_busy = is_busy;
  return spread;
}

static inline frame_spread frame_ns(const frame_case *c, unsigned rounds) {
  return frame_calm_spread(c, NULL, rounds);
}
static inline frame_spread frame_ratio(const frame_case *c, const frame_case *floor_case,
                                       unsigned rounds) {
  return frame_calm_spread(c, floor_case, rounds);
}

/* ---- results ---- */

#define FRAME_PRINTF(text, first) __attribute__((format(printf, text, first)))

static inline void frame_line(const char *what, const char *bound, const char *verdict,
                              const char *format, va_list more) {
  char measured[256];
  vsnprintf(measured, sizeof measured, format, more);
  printf("%-56s | %-60s | %-11s | %s\n", what, measured, bound, verdict);
  fflush(stdout);
}

/* what | measured | bound | held, NOT or not measured */
FRAME_PRINTF(4, 5)
static inline void frame_promise(const char *what, bool is_held, const char *bound,
                                 const char *format, ...) {
  va_list more;
  va_start(more, format);
  frame_line(what, bound, is_held ? "held" : "NOT", format, more);
  va_end(more);
}

/* A figure that nothing is promised about. */
FRAME_PRINTF(2, 3) static inline void frame_figure(const char *what, const char *format, ...) {
  va_list more;
  va_start(more, format);
  frame_line(what, "-", "shown", format, more);
  va_end(more);
}

/* A promise that this run cannot judge. The measured column says why. */
FRAME_PRINTF(3, 4)
static inline void frame_unmeasured(const char *what, const char *bound, const char *format, ...) {
  va_list more;
  va_start(more, format);
  frame_line(what, bound, "not measured", format, more);
  va_end(more);
}

FRAME_PRINTF(1, 2) static inline void frame_note(const char *format, ...) {
  va_list more;
  va_start(more, format);
  fputs("  ", stdout);
  vprintf(format, more);
  putchar('\n');
  va_end(more);
  fflush(stdout);
}

/* A case against the floor: "27.1 ns, 1.02x (1.01-1.05)". A bound of 0: shown, nothing promised. */
static inline void frame_promise_ratio(const char *what, const frame_case *c,
                                       const frame_case *floor_case, unsigned rounds,
                                       double bound) {
  const frame_spread ratio = frame_ratio(c, floor_case, rounds);
  char measured[128], limit[32];
  snprintf(measured, sizeof measured, "%.2f ns, %.3fx (%.3f-%.3f)%s", frame_ns(c, rounds).median,
           ratio.median, ratio.low, ratio.high, ratio.is_busy ? ", busy" : "");
  snprintf(limit, sizeof limit, "%.2fx", bound);
  if (bound > 0)
    frame_promise(what, ratio.median <= bound, limit, "%s", measured);
  else
    frame_figure(what, "%s", measured);
}

/* The processor's name, or the architecture's. */
static inline void frame_processor(char *to, size_t room) {
  struct utsname system_name;
  char line[256];
  uname(&system_name);
  snprintf(to, room, "%s", system_name.machine);
  FILE *const file = fopen("/proc/cpuinfo", "r");
  while (file && fgets(line, sizeof line, file)) {
    const char *const colon = strchr(line, ':');
    if (strncmp(line, "model name", 10) != 0 || !colon) continue;
    line[strcspn(line, "\n")] = '\0';
    snprintf(to, room, "%s", colon + 2);
    break;
  }
  if (file) fclose(file);
}

/* First line of every benchmark: what it measures, where, and built by which compiler. */
static inline void frame_begin(const char *what) {
  struct utsname system_name;
  char processor[128];
  uname(&system_name);
  frame_processor(processor, sizeof processor);
  frame_ns_per_tick();
  frame_ring();
#ifdef __clang__
  const char *const compiler = "";
#else
  const char *const compiler = "gcc ";
#endif
  printf("%s: %s, %ld cores, %s %s, %s%s\n", what, processor, sysconf(_SC_NPROCESSORS_ONLN),
         system_name.sysname, system_name.release, compiler, __VERSION__);
}

/* For what must work before anything can be measured. */
#define FRAME_REQUIRE(condition, ...)                                 \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: " #condition ": ", __FILE__, __LINE__); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fputc('\n', stderr);                                            \
      exit(1);                                                        \
    }                                                                 \
  } while (0)

/* ---- files ---- */

/* A new directory under $BENCH_DIR, $TMPDIR or /tmp. */
static inline const char *frame_directory(void) {
  static char path[512];
  const char *place = getenv("BENCH_DIR");
  if (!place || !*place) place = getenv("TMPDIR");
  if (!place || !*place) place = "/tmp";
  snprintf(path, sizeof path, "%s/prof-bench-XXXXXX", place);
  FRAME_REQUIRE(mkdtemp(path), "%s", path);
  return path;
}

static inline void frame_empty_directory(const char *path) {
  DIR *const directory = opendir(path);
  if (!directory) return;
  for (const struct dirent *entry; (entry = readdir(directory)) != NULL;)
    if (entry->d_name[0] != '.') unlinkat(dirfd(directory), entry->d_name, 0);
  closedir(directory);
}

static inline void frame_remove_directory(const char *path) {
  frame_empty_directory(path);
  rmdir(path);
}

static inline const char *frame_file_system(const char *path) {
  struct statfs about;
  if (statfs(path, &about) != 0) return "unknown file system";
  switch (about.f_type) {
    case 0xef53:
      return "ext4";
    case 0x58465342:
      return "XFS";
    case 0x01021994:
      return "tmpfs";
    case 0x794c7630:
      return "overlay";
    default:
      return "other file system";
  }
}

#endif
