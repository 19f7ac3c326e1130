/* What a scope costs when chunk changes count: into fresh memory, round a ring, to a disk file, and
   with the helper thread. Also the tails of single scopes, and whether resident memory stays flat
   while a file grows.

   The kernel must populate new room page by page, for any recorder. So figures into new room have
   two floors. One is the warm floor of all benchmarks. The other stores into pages as new, of the
   same kind, populated in the same steps. Each measurement is a process of its own: none begins
   with the memory of the previous one. */
#define _GNU_SOURCE
#include "frame.h"

#include <errno.h>
#include <fcntl.h>
#include <prof/profiler.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23
#endif

enum { STEP_BYTES = 1 << 20, HUGE_BYTES = 2 << 20, BLOCK = 1 << 19, FLOOR_BLOCK = 1 << 17 };

/* ---- the floor into fresh pages ---- */

static struct {
  int fd; /* of a file; -1: private memory */
  bool is_file;
  off_t bytes; /* so far: of the file, or of room */
  char *at, *end;
  char *room; /* private memory's, HUGE_BYTES; at a multiple of that */
} fresh = {.fd = -1};

/* The next MiB of private memory, as the recorder's: mapped and populated. A huge page has two. */
static void fresh_memory_step(void) {
  if (fresh.bytes % HUGE_BYTES == 0) {
    madvise(fresh.room, HUGE_BYTES, MADV_DONTNEED);
    fresh.at = fresh.room;
  }
  madvise(fresh.at, STEP_BYTES, MADV_POPULATE_WRITE);
  fresh.bytes += STEP_BYTES;
  fresh.end = fresh.at + STEP_BYTES;
}

/* The next MiB, as a chunk of the recorder's is made: reserved, mapped, populated; the last one is
   unmapped. */
static void fresh_step(void) {
  if (!fresh.is_file) {
    fresh_memory_step();
    return;
  }
  if (fresh.at) munmap(fresh.end - STEP_BYTES, STEP_BYTES);
  FRAME_REQUIRE(fallocate(fresh.fd, 0, fresh.bytes, STEP_BYTES) == 0, "%s", strerror(errno));
  fresh.at = mmap(NULL, STEP_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fresh.fd, fresh.bytes);
  FRAME_REQUIRE(fresh.at != MAP_FAILED, "%s", strerror(errno));
  madvise(fresh.at, STEP_BYTES, MADV_POPULATE_WRITE);
  fresh.bytes += STEP_BYTES;
  fresh.end = fresh.at + STEP_BYTES;
}

/* 32 bytes an event. */
FRAME_LOOP void fresh_floor(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t start = frame_counter();
    FRAME_WORK();
    const uint64_t end = frame_counter();
    if (fresh.at == fresh.end) fresh_step();
    *(frame_record *)fresh.at = (frame_record){start, end - start, i, 0};
    fresh.at += sizeof(frame_record);
  }
}

/* 16 bytes an event, as a plain scope takes. */
FRAME_LOOP void fresh_floor_16(uint64_t count) {
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t start = frame_counter();
    FRAME_WORK();
    const uint64_t end = frame_counter();
    if (fresh.at == fresh.end) fresh_step();
    ((uint64_t *)fresh.at)[0] = start;
    ((uint64_t *)fresh.at)[1] = end - start;
    fresh.at += 16;
  }
}

static void fresh_open(const char *in) {
  char path[600];
  fresh.is_file = in != NULL;
  if (in) {
    snprintf(path, sizeof path, "%s/floor", in);
    fresh.fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FRAME_REQUIRE(fresh.fd >= 0, "%s", strerror(errno));
  } else {
    char *const all =
        mmap(NULL, 2 * HUGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    FRAME_REQUIRE(all != MAP_FAILED, "%s", strerror(errno));
    fresh.room = all + (HUGE_BYTES - (uintptr_t)all % HUGE_BYTES) % HUGE_BYTES;
    madvise(fresh.room, HUGE_BYTES, MADV_HUGEPAGE);
  }
  fresh.bytes = 0;
  fresh.at = fresh.end = NULL;
}

static void fresh_close(void) {
  if (!fresh.is_file) {
    munmap(fresh.room, HUGE_BYTES);
    return;
  }
  if (fresh.at) munmap(fresh.end - STEP_BYTES, STEP_BYTES);
  ftruncate(fresh.fd, 0);
  close(fresh.fd);
  fresh.fd = -1;
}

/* ---- captures ---- */

FRAME_LOOP void scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "plain", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

static void start(prof_options options) {
  options.size = sizeof options;
  const int status = prof_start_with(&options);
  FRAME_REQUIRE(status == PROF_OK, "%s: %s", prof_status_text(status), prof_last_error());
}

static prof_health health(void) {
  prof_health now = {.size = sizeof now};
  prof_health(&now);
  return now;
}

static uint64_t lost(const prof_health *now) {
  uint64_t sum = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    if (i != PROF_LOSS_OVERWRITTEN) sum += now->lost_count[i];
  return sum;
}

static void note_changes(const prof_health *now) {
  frame_note("chunk changes: %llu, median %.1f us, p99 %.1f us, max %.1f us; lost %llu",
             (unsigned long long)now->chunk_changes_count,
             (double)now->chunk_change_median_ns / 1e3, (double)now->chunk_change_p99_ns / 1e3,
             (double)now->chunk_change_max_ns / 1e3, (unsigned long long)lost(now));
}

static const char *directory;

static void start_file(const char *name, bool helper) {
  char path[600];
  snprintf(path, sizeof path, "%s/%s.json", directory, name);
  start((prof_options){.path = path, .helper_thread = helper});
}

/* ---- in memory ---- */

/* A virtual machine's memory costs several times as much when the host gives it for the first time,
   or again some seconds after it was freed. That is not measured here: it is paid just before. */
static void touch_memory(bool in_huge_pages) {
  enum { MIB = 1024 };
  static const size_t bytes = (size_t)MIB << 20;
  double ns[2];
  for (int i = 0; i < 2; i++) {
    const double begun = frame_now_ns();
    char *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED) return;
    if (in_huge_pages) madvise(at, bytes, MADV_HUGEPAGE);
    madvise(at, bytes, MADV_POPULATE_WRITE);
    ns[i] = frame_now_ns() - begun;
    munmap(at, bytes);
  }
  frame_note("memory of this machine%s, populated: %.2f ms a MiB at first, %.2f then",
             in_huge_pages ? ", huge pages" : "", ns[0] / 1e6 / MIB, ns[1] / 1e6 / MIB);
}

/* Does the system give huge pages to a program that asks for them? */
static bool has_huge_pages(void) {
  char text[64] = "";
  FILE *const file = fopen("/sys/kernel/mm/transparent_hugepage/enabled", "r");
  if (file && !fgets(text, sizeof text, file)) text[0] = '\0';
  if (file) fclose(file);
  return strstr(text, "[always]") || strstr(text, "[madvise]");
}

static void measure_new_memory(const char *pages, double bound, bool in_huge_pages) {
  enum { FLOOR, FRESH, FRESH_16, SCOPES };
  static frame_case cases[] = {[FLOOR] = {.run = frame_floor, .count = BLOCK},
                               [FRESH] = {.run = fresh_floor, .count = BLOCK},
                               [FRESH_16] = {.run = fresh_floor_16, .count = BLOCK},
                               [SCOPES] = {.run = scopes, .count = BLOCK}};
  const unsigned rounds = frame_rounds(40);
  char what[100];
  touch_memory(in_huge_pages);
  start((prof_options){.cap_bytes = (rounds + 12ull) * BLOCK * 16});
  fresh_open(NULL);
  frame_run(cases, 4, rounds);
  const prof_health full = health();
  fresh_close();
  frame_note("floor: warm %.2f ns; into fresh private memory %.2f ns, with 16 bytes %.2f ns",
             frame_ns(&cases[FLOOR], rounds).median, frame_ns(&cases[FRESH], rounds).median,
             frame_ns(&cases[FRESH_16], rounds).median);
  note_changes(&full);
  snprintf(what, sizeof what, "into new memory, %s, keep, chunk changes included", pages);
  frame_promise_ratio(what, &cases[SCOPES], &cases[FLOOR], rounds, bound);
  frame_promise_ratio("  a floor of 16 bytes an event into fresh private memory", &cases[FRESH_16],
                      &cases[FLOOR], rounds, 0);
  frame_promise_ratio("  against that floor", &cases[SCOPES], &cases[FRESH_16], rounds, 1.1);
}

static void measure_memory(void) {
  prctl(PR_SET_THP_DISABLE, 1, 0, 0, 0);
  measure_new_memory("pages of 4 KiB", 1.3, false);
}

static void measure_huge_memory(void) {
  if (has_huge_pages())
    measure_new_memory("huge pages", 1.15, true);
  else
    frame_note("skip: this system gives no huge pages");
}

/* From the second time round on every chunk is a used one. 5 million scopes and more, chunk changes
   included. */
static void measure_ring_of(unsigned mib) {
  static frame_case cases[] = {{.run = frame_floor, .count = BLOCK},
                               {.run = scopes, .count = BLOCK}};
  char what[64];
  snprintf(what, sizeof what, "in memory, ring of %u MiB, warm, sustained", mib);
  start((prof_options){.policy = PROF_POLICY_RING, .cap_bytes = (uint64_t)mib << 20});
  scopes(mib << 17);
  const unsigned rounds = frame_rounds(100);
  frame_run(cases, 2, rounds);
  const prof_health ring = health();
  note_changes(&ring);
  frame_promise_ratio(what, &cases[1], &cases[0], rounds, 1.1);
}
static void measure_ring(void) { measure_ring_of(32); }
static void measure_ring_of_8(void) { measure_ring_of(8); }
static void measure_ring_of_1(void) { measure_ring_of(1); }

/* ---- to a file ---- */

/* Resident pages of this process, file pages included: /proc/self/statm. */
static double resident_mib(void) {
  unsigned long long all = 0, resident = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  if (file && fscanf(file, "%llu %llu", &all, &resident) != 2) resident = 0;
  if (file) fclose(file);
  return (double)resident * (double)sysconf(_SC_PAGESIZE) / (1 << 20);
}

/* The page cache's memory too, see touch_memory(): a file of so many MiB comes and goes, just
   before. Says in ns[] what the first and the second took, a MiB. */
static void touch_files(unsigned mib, double ns[2]) {
  enum { PIECE = 1 << 20 };
  char path[600];
  char *const zeros = calloc(1, PIECE);
  FRAME_REQUIRE(zeros, "memory");
  for (int i = 0; i < 2; i++) {
    snprintf(path, sizeof path, "%s/touched", directory);
    const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    FRAME_REQUIRE(fd >= 0, "%s", path);
    const double begun = frame_now_ns();
    for (unsigned p = 0; p < mib; p++)
      FRAME_REQUIRE(write(fd, zeros, PIECE) == PIECE, "%s: no room for %u MiB", path, mib);
    ns[i] = (frame_now_ns() - begun) / mib;
    close(fd);
    unlink(path);
  }
  free(zeros);
}

static void touch_page_cache(void) {
  double ns[2];
  touch_files(2048, ns);
  frame_note("page cache of this machine, written: %.2f ms a MiB at first, %.2f then", ns[0] / 1e6,
             ns[1] / 1e6);
}

/* Here no thread makes chunks ahead, so the memory of each next part of the file is touched before
   it. A virtual machine may have given memory that was freed two seconds ago back to its host. The
   scopes go at full rate. The floor is measured once in a while, for a fifth of the time, so that
   the disk has little rest. The bound is for all scopes together, over the floor's median: a disk's
   stalls are rare and long, and must count. */
static void stream(bool helper, double bound) {
  enum { TOUCHED_BLOCKS = 16 };
  double touched_ns[2];
  static double ratios[FRAME_ROUNDS_MAX], floors[FRAME_ROUNDS_MAX], megabytes[FRAME_ROUNDS_MAX];
  const uint64_t blocks = (frame_is_quick() ? 20000000 : 100000000) / BLOCK;
  char what[100], limit[16];
  touch_page_cache();
  start_file(helper ? "helped" : "stream", helper);
  double scope_ns = 0;
  scopes(1000);
  for (uint64_t b = 0; b < blocks; b++) {
    if (!helper && b % TOUCHED_BLOCKS == 0)
      touch_files(2 * TOUCHED_BLOCKS * BLOCK / 65536, touched_ns);
    floors[b] = frame_time_batch(frame_floor, FLOOR_BLOCK);
    const double scope_now = frame_time_batch(scopes, BLOCK);
    scope_ns += scope_now / (double)blocks;
    ratios[b] = scope_now / floors[b];
    megabytes[b] = resident_mib();
  }
  const prof_health now = health();
  const frame_spread spread = frame_spread_of(ratios, (unsigned)blocks);
  const double ratio = scope_ns / frame_spread_of(floors, (unsigned)blocks).median;
  const double lost_share = (double)lost(&now) / (double)(blocks * BLOCK);
  double max_mib = 0;
  for (uint64_t b = 0; b < blocks; b++) max_mib = megabytes[b] > max_mib ? megabytes[b] : max_mib;
  note_changes(&now);
  snprintf(limit, sizeof limit, "%.2fx", bound);
  snprintf(what, sizeof what, "stream to a file on %s, %.2g scopes%s", frame_file_system(directory),
           (double)(blocks * BLOCK), helper ? ", helper" : "");
  frame_promise(what, ratio <= bound && now.survives_kill && lost_share < 1e-3, limit,
                "%.2f ns, %.3fx (blocks %.3f, %.3f-%.3f), lost %.2g %%", scope_ns, ratio,
                spread.median, spread.low, spread.high, lost_share * 100);
  snprintf(what, sizeof what, "resident memory while it streams%s", helper ? ", helper" : "");
  frame_promise(what, max_mib - megabytes[0] <= 32, "flat +32 MiB",
                "%.1f MiB at the start, %.1f at most, of %.0f written", megabytes[0], max_mib,
                (double)now.arena_bytes / (1 << 20));
}

static void measure_stream(void) { stream(false, 1.2); }
static void measure_stream_helper(void) { stream(true, 1.05); }

/* What a scope adds goes to the file too. 5 million scopes and more, everything included. */
static const char *text;

FRAME_LOOP void scopes_with_text(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "text", "bench", PROF_ARGS("shape", text), { FRAME_WORK(); });
}

/* Another each time. */
FRAME_LOOP void scopes_with_new_text(uint64_t count) {
  enum { NUMBER_AT = 2 };
  frame_texts shapes;
  frame_texts_begin(&shapes, "T<########>", NUMBER_AT);
  for (uint64_t i = 0; i < count; i++) {
    const char *const shape = frame_texts_next(&shapes, i, NUMBER_AT);
    WITH_BASE_PROFILER(PROF_HOST, "text", "bench", PROF_ARGS("shape", shape), { FRAME_WORK(); });
  }
}

FRAME_LOOP void scopes_with_name(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, text, "bench", PROF_NO_ARGS, { FRAME_WORK(); });
}

static void measure_texts(void) {
  enum { FLOOR, TEXT, NEW_TEXT, NAME, CASES };
  static frame_case cases[] = {[FLOOR] = {.run = frame_floor, .count = FLOOR_BLOCK},
                               [TEXT] = {.run = scopes_with_text, .count = BLOCK},
                               [NEW_TEXT] = {.run = scopes_with_new_text, .count = BLOCK},
                               [NAME] = {.run = scopes_with_name, .count = BLOCK}};
  const unsigned rounds = frame_rounds(60);
  char same[] = "T<768xf32>";
  text = same;
  touch_page_cache();
  start_file("texts", false);
  frame_run(cases, CASES, rounds);
  const prof_health now = health();
  note_changes(&now);
  frame_promise_ratio("stream to a file, a string argument", &cases[NEW_TEXT], &cases[FLOOR],
                      rounds, 1.65);
  frame_promise_ratio("stream to a file, a string argument seen before", &cases[TEXT],
                      &cases[FLOOR], rounds, 1.5);
  frame_promise_ratio("stream to a file, a run-time name seen before", &cases[NAME], &cases[FLOOR],
                      rounds, 1.3);
}

/* The floor into fresh pages of a file: what the same bytes cost whoever writes them so. */
static void measure_stream_floor(void) {
  static double floors[FRAME_ROUNDS_MAX];
  touch_page_cache();
  const uint64_t blocks = (frame_is_quick() ? 10000000 : 40000000) / BLOCK;
  double fresh_ns = 0;
  fresh_open(directory);
  for (uint64_t b = 0; b < blocks; b++) {
    floors[b] = frame_time_batch(frame_floor, FLOOR_BLOCK);
    fresh_ns += frame_time_batch(fresh_floor_16, BLOCK) / (double)blocks;
  }
  fresh_close();
  frame_figure("  a floor of 16 bytes an event into a file's fresh pages",
               "%.2f ns, %.3fx the warm floor", fresh_ns,
               fresh_ns / frame_spread_of(floors, (unsigned)blocks).median);
}

/* ---- tails ---- */

enum { BUCKETS = 64 * 32 }; /* of ticks: 32 to a doubling */
static uint64_t histogram[BUCKETS], longest;

static void note_one(uint64_t ticks) {
  const unsigned top = ticks < 32 ? 5 : 63 - (unsigned)__builtin_clzll(ticks);
  histogram[top * 32 + (ticks < 32 ? ticks : ticks >> (top - 5) & 31)]++;
  if (ticks > longest) longest = ticks;
}

/* Upper edge of the bucket that holds this share of all. */
static double share_ns(double share, uint64_t count) {
  uint64_t seen = 0;
  for (unsigned i = 0; i < BUCKETS; i++) {
    seen += histogram[i];
    if ((double)seen >= share * (double)count)
      return (double)((32ull + i % 32 + 1) << (i / 32) >> 5) * frame_ns_per_tick();
  }
  return (double)longest * frame_ns_per_tick();
}

static void show_tail(const char *what, uint64_t count, double bound_us) {
  const double p9999 = share_ns(0.9999, count);
  char measured[200], limit[32];
  snprintf(measured, sizeof measured, "p50 %.0f ns, p99 %.0f ns, p99.99 %.2f us, max %.0f us",
           share_ns(0.5, count), share_ns(0.99, count), p9999 / 1e3,
           (double)longest * frame_ns_per_tick() / 1e3);
  snprintf(limit, sizeof limit, "%.0f us", bound_us);
  if (bound_us > 0)
    frame_promise(what, p9999 <= bound_us * 1e3, limit, "%s", measured);
  else
    frame_figure(what, "%s", measured);
}

static uint64_t tail_count(void) { return frame_is_quick() ? 5000000 : 20000000; }

static void tail_of_floor(void) {
  frame_record *const ring = frame_ring();
  const uint64_t count = tail_count();
  for (uint64_t i = 0, at = 0; i < count; i++) {
    const uint64_t begun = frame_counter();
    at = frame_floor_event(ring, at, i);
    note_one(frame_counter() - begun);
  }
  show_tail("tail of the floor: what the machine itself does", count, 0);
}

/* Each scope between two readings of the counter; what the readings themselves take is in it. */
static void tail(const char *what, double bound_us) {
  const uint64_t count = tail_count();
  scopes(1000);
  for (uint64_t i = 0; i < count; i++) {
    const uint64_t begun = frame_counter();
    WITH_BASE_PROFILER(PROF_HOST, "tail", "bench", PROF_NO_ARGS, { FRAME_WORK(); });
    note_one(frame_counter() - begun);
  }
  show_tail(what, count, bound_us);
  const prof_health now = health();
  if (lost(&now))
    frame_note("lost %llu of %llu, which are in this tail too", (unsigned long long)lost(&now),
               (unsigned long long)count);
}

static void tail_of_memory(void) {
  start((prof_options){.cap_bytes = tail_count() * 16 + (16 << 20)});
  tail("tail of a scope, in memory", 0);
}
static void tail_of_ring(void) {
  start((prof_options){.policy = PROF_POLICY_RING, .cap_bytes = 32 << 20});
  tail("tail of a scope, ring of 32 MiB", 0);
}
static void tail_of_file(void) {
  start_file("tail", false);
  tail("tail of a scope, file", 0);
}
static void tail_of_helper(void) {
  start_file("tail-helped", true);
  tail("tail of a scope, file, helper thread", 5);
}

/* ---- all ---- */

static void isolated(void (*measure)(void)) {
  int status = 1;
  fflush(stdout);
  const pid_t child = fork();
  if (child == 0) {
    measure();
    prof_stop();
    fflush(stdout);
    _exit(0);
  }
  if (child > 0) waitpid(child, &status, 0);
  FRAME_REQUIRE(status == 0, "a measurement failed, status %d", status);
  frame_empty_directory(directory);
}

/* Arguments: the places of those to run, from 0. None: all. */
int main(int argc, char **argv) {
  static void (*const measurements[])(void) = {
      measure_memory,    measure_huge_memory, measure_ring,          measure_ring_of_8,
      measure_ring_of_1, measure_stream,      measure_stream_helper, measure_stream_floor,
      measure_texts,     tail_of_floor,       tail_of_memory,        tail_of_ring,
      tail_of_file,      tail_of_helper};
  frame_begin("stream");
  directory = frame_directory();
  touch_memory(false);
  const size_t count = sizeof measurements / sizeof *measurements;
  for (size_t i = 0; argc == 1 && i < count; i++) isolated(measurements[i]);
  for (int i = 1; i < argc; i++)
    if (strtoul(argv[i], NULL, 10) < count) isolated(measurements[strtoul(argv[i], NULL, 10)]);
  frame_remove_directory(directory);
  return 0;
}
