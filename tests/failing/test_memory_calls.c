/* Every call of the memory profiler that can fail, failing. A host makes pools (plain and checked),
   sets a query, hands out and takes back, asks what was live and reports a failed allocation. The
   nth malloc (mmap, open, rename, ...) that prof makes is refused, for every n, in a fresh child
   each. Then also all calls from the nth on are.

   Whatever failed, a call says so with a status and a text, and leaves its outputs as they were.
   Peaks need no memory and are right to the byte in the process. Every event has its record or is
   counted as missing. A text beside the output is whole or does not exist. No other file and no
   descriptor is left. Once nothing fails any more, all works again. valgrind and the sanitizers
   check that memory is given back, over the same calls (api/test_memory_life.c). Here what is
   mapped must not grow from run to run.

   PROF_FAILING_ONLY=function and PROF_FAILING_NTH=n run one case alone. */
#define _GNU_SOURCE
#include <malloc.h>
#include <prof/memory.h>

#include "failing/walk.h"

enum { ERRNO_OF_HOST = 12345, PIECES = 6000, PIECE_BYTES = 64, ROUNDS = 12 };

static const walk_way ways[] = {
#define WAY WALK_WAY
    WAY(malloc, ENOMEM), WAY(calloc, ENOMEM),    WAY(realloc, ENOMEM), WAY(aligned_alloc, ENOMEM),
    WAY(mmap, ENOMEM),   WAY(mremap, ENOMEM),    WAY(fopen, EMFILE),   WAY(fopen, ENOSPC),
    WAY(rename, EACCES), WAY(fclose, ENOSPC),    WAY(fputs, ENOSPC),   WAY(open_memstream, ENOMEM),
    WAY(open, EMFILE),   WAY(fallocate, ENOSPC),
#undef WAY
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- the child: a host ---- */

static const void *address_of(uint64_t piece) {
  return (const void *)(uintptr_t)(0x10000 + piece * PIECE_BYTES);
}

static prof_pool *make_pool(const char *name, uint32_t checked) {
  static prof_pool *const untouched = (prof_pool *)16;
  prof_pool *pool = untouched;
  const prof_pool_options options = {.size = sizeof options, .name = name, .checked = checked};
  const int status = WALK_ARMED(prof_pool_create(&options, &pool));
  walk_check_said(status);
  check((status == PROF_OK) == (pool != untouched), "%s, and the pool is %p",
        prof_status_name(status), (void *)pool);
  return status == PROF_OK ? pool : NULL;
}

/* All PIECES are out at once: enough for a checked table to grow. */
static void use(prof_pool *pool) {
  walk.arm(1);
  errno = ERRNO_OF_HOST;
  prof_memory_reserve(pool, address_of(0), 1 << 20);
  for (uint64_t i = 0; i < PIECES; i++) prof_memory_alloc(pool, address_of(i), PIECE_BYTES, 0);
  for (uint64_t i = 0; i + 1 < PIECES; i++) prof_memory_free(pool, address_of(i), PIECE_BYTES);
  const int after = errno;
  walk.arm(0);
  check(after == ERRNO_OF_HOST, "errno became %d", after);
}

static int say(void *user, uint64_t *used_bytes_out, uint64_t *allocated_bytes_out) {
  *used_bytes_out = *(const uint64_t *)user;
  *allocated_bytes_out = 2 * *(const uint64_t *)user;
  return 0;
}

static void check_peaks(uint64_t pool_count) {
  prof_memory_max max = {.size = sizeof max};
  check_status(prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &max), PROF_OK);
  check(max.pool_count == pool_count, "%u pools instead of %" PRIu64, max.pool_count, pool_count);
  check(max.max_used_bytes == pool_count * PIECES * PIECE_BYTES &&
            max.used_bytes == pool_count * PIECE_BYTES,
        "peak %" PRIu64 ", used %" PRIu64, max.max_used_bytes, max.used_bytes);
  check(max.max_allocated_bytes == pool_count << 20, "peak of allocated %" PRIu64,
        max.max_allocated_bytes);
}

static void ask_live(const prof_memory *memory) {
  prof_memory_rows *const untouched = (prof_memory_rows *)16, *rows = untouched;
  const int status = WALK_ARMED(
      prof_memory_live(memory, 0, PROF_MEMORY_AT_PEAK_USED, 0, PROF_MEMORY_BY_ADDRESS, &rows));
  walk_check_said(status);
  check((status == PROF_OK) == (rows != untouched), "%s, and the rows are %p",
        prof_status_name(status), (void *)rows);
  if (status == PROF_OK) prof_free(rows);
}

/* calls: of each pool. Before the stop what has no record may still be coming. */
static void read_back(uint64_t calls, bool is_armed, bool is_over) {
  prof_trace *trace = NULL;
  prof_memory *const untouched = (prof_memory *)16, *memory = untouched;
  int status = is_armed ? WALK_ARMED(prof_get(&trace)) : prof_get(&trace);
  walk_check_said(status);
  if (!trace) return;
  status =
      is_armed ? WALK_ARMED(prof_memory_read(trace, &memory)) : prof_memory_read(trace, &memory);
  walk_check_said(status);
  check((status == PROF_OK) == (memory != untouched), "%s, and the memory is %p",
        prof_status_name(status), (void *)memory);
  check(status == PROF_OK || is_armed, "%s with nothing failing", prof_status_name(status));
  if (status == PROF_OK) {
    for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
      prof_memory_info info = {.size = sizeof info};
      check_status(prof_memory_pool_get(memory, i, &info), PROF_OK);
      const uint64_t recorded =
          info.alloc_count + info.free_count + info.reserve_count + info.oom_count;
      check(info.source != PROF_MEMORY_POOL || (is_over ? recorded + info.missing_count == calls
                                                        : recorded + info.missing_count <= calls),
            "pool %s: %" PRIu64 " recorded, %" PRIu64 " missing of %" PRIu64, info.name, recorded,
            info.missing_count, calls);
      check(info.source != PROF_MEMORY_POOL || info.peak_used.used_bytes == PIECES * PIECE_BYTES,
            "pool %s: peak %" PRId64, info.name, info.peak_used.used_bytes);
    }
    if (is_armed) ask_live(memory);
    prof_memory_destroy(memory);
  }
  prof_trace_destroy(trace);
}

/* A text that is there is whole. */
static void check_texts(bool must_be) {
  char names[512];
  check(host_entries(host_path("run"), ".tmp", names, sizeof names) == 0, "half a text is left: %s",
        names);
  const char *const path = host_path("run/out.oom.txt");
  if (host_size(path) < 0) {
    check(!must_be, "no text");
    return;
  }
  static char text[1 << 16];
  FILE *const file = fopen(path, "re");
  check(file, "%s", path);
  const size_t bytes = fread(text, 1, sizeof text - 1, file);
  fclose(file);
  text[bytes] = '\0';
  check(strncmp(text, "out of memory: 4096 bytes", 25) == 0 && bytes && text[bytes - 1] == '\n' &&
            (strstr(text, "live, by size:") || strstr(text, "cannot be told")),
        "the text of %zu bytes is cut: %s", bytes, text);
}

static void run_with_failures(void) {
  static uint64_t said_bytes = 1000;
  const prof_options options = {.size = sizeof options,
                                .path = host_path("run/out.json"),
                                .cap_bytes = 4 << 20,
                                .policy = PROF_POLICY_KEEP};
  check_status(prof_start_with(&options), PROF_OK);
  prof_pool *const plain = make_pool("plain", 0), *const checked = make_pool("checked", 1);
  const uint64_t count = (plain ? 1u : 0u) + (checked ? 1u : 0u);
  if (plain) use(plain);
  if (checked) use(checked);
  if (count) check_peaks(count);
  uint64_t calls = 2 * PIECES;
  const int set = WALK_ARMED(prof_memory_set_query(PROF_HOST, say, &said_bytes));
  walk_check_said(set);
  walk.arm(1);
  prof_memory_sample(PROF_HOST, "here", PROF_NUL_TERMINATED);
  walk.arm(0);
  prof_memory_max max = {.size = sizeof max};
  if (set == PROF_OK)
    check_status(prof_memory_max_get(PROF_HOST, PROF_MEMORY_QUERY, &max), PROF_OK);
  check(set != PROF_OK || max.max_used_bytes == said_bytes, "the query's peak is %" PRIu64,
        max.max_used_bytes);
  read_back(calls, true, false);
  if (count) {
    const int told = WALK_ARMED(prof_memory_oom(PROF_HOST, 4096));
    walk_check_said(told);
    check_texts(told == PROF_OK && walk.plan->failed_count == 0);
    calls++;
    check_peaks(count);
  }
  walk_check_said(WALK_ARMED(prof_memory_set_query(PROF_HOST, NULL, NULL)));
  check_status(prof_stop(), PROF_OK);
  read_back(calls, false, true);
  prof_pool_destroy(plain);
  prof_pool_destroy(checked);
}

static int run_case(const void *unused) {
  (void)unused;
  const int before = host_descriptors();
  walk.begin(walk.plan);
  run_with_failures();
  walk.plan->nth = 0;
  host_empty(host_path("run")); /* of the texts there are at most 8, and each has its number */
  size_t used = 0;
  /* nothing fails, nothing is left: pools made and destroyed take no more memory each time */
  for (int i = 0; i < ROUNDS; i++) {
    prof_pool *const pool = make_pool("again", 1);
    check(pool, "no pool, and nothing fails");
    prof_pool_destroy(pool);
    if (i == 1) used = mallinfo2().uordblks;
  }
  const size_t after_rounds = mallinfo2().uordblks;
  check(after_rounds <= used, "%zu bytes in use, %zu before", after_rounds, used);
  const prof_options options = {.size = sizeof options};
  check_status(prof_start_with(&options), PROF_OK); /* gives the file up */
  prof_pool *const pool = make_pool("works", 1);
  check(pool, "no pool");
  use(pool);
  check_peaks(1);
  check_status(prof_stop(), PROF_OK);
  read_back(2 * PIECES, false, true);
  prof_pool_destroy(pool);
  char names[512];
  check(host_entries(host_path("run"), "", names, sizeof names) == 0, "files are left: %s", names);
  const int after = host_descriptors();
  check(after == before, "%d descriptors were open, %d are", before, after);
  return 0;
}

/* ---- the walk over all n ---- */

/* False: the nth call is never made. */
static void memory_is_right_without_a_failure(void **state) {
  (void)state;
  assert_false(walk_nth(run_case, NULL, &ways[0], 0, false));
  assert_int_equal(walk.failures, 0);
  /* the plugin stands in front */
  assert_true(walk.plan->counts[INJECT_malloc] > 0 && walk.plan->counts[INJECT_calloc] > 0);
}

static void memory_is_right_with_each_call_failing_once(void **state) {
  (void)state;
  walk_all(run_case, NULL, ways, WAYS, false);
}

static void memory_is_right_with_each_call_failing_from_then_on(void **state) {
  (void)state;
  walk_all(run_case, NULL, ways, WAYS, true);
}

/* A pool whose state finds no room in the arena: no record can name it. In the process its peaks
   are right all the same, and each of its events is counted as lost. */
static int run_full(const void *unused) {
  (void)unused;
  const prof_options options = {
      .size = sizeof options, .cap_bytes = 1 << 20, .policy = PROF_POLICY_KEEP};
  prof_memory_max max = {.size = sizeof max};
  prof_pool *pool = NULL;
  prof_trace *trace = NULL;
  prof_memory *memory = NULL;
  check_status(prof_start_with(&options), PROF_OK);
  enum { POOLS = 4096 };
  static prof_pool *filling[POOLS];
  for (int i = 0; i < POOLS; i++) check_status(prof_pool_create(NULL, &filling[i]), PROF_OK);
  const prof_device device = {PROF_DEVICE_CPU, 7};
  const uint64_t lost_before = health_now().lost_count[PROF_LOSS_FULL];
  check_status(prof_pool_create(
                   &(prof_pool_options){
                       .size = sizeof(prof_pool_options), .name = "no room", .device = device},
                   &pool),
               PROF_OK);
  use(pool);
  check_status(prof_memory_max_get(device, PROF_MEMORY_POOL, &max), PROF_OK);
  check(max.max_used_bytes == PIECES * PIECE_BYTES && max.used_bytes == PIECE_BYTES &&
            max.max_allocated_bytes == 1 << 20,
        "peak %" PRIu64 ", used %" PRIu64, max.max_used_bytes, max.used_bytes);
  const uint64_t lost = health_now().lost_count[PROF_LOSS_FULL] - lost_before;
  check(lost == 2 * PIECES, "%" PRIu64 " lost of %d", lost, 2 * PIECES);
  check_status(prof_memory_reset(), PROF_OK);
  check_status(prof_memory_max_get(device, PROF_MEMORY_POOL, &max), PROF_OK);
  check(max.max_used_bytes == PIECE_BYTES, "peak %" PRIu64 " after a reset", max.max_used_bytes);
  check_status(prof_get(&trace), PROF_OK);
  check_status(prof_memory_read(trace, &memory), PROF_OK);
  prof_memory_info info = {.size = sizeof info};
  check(prof_memory_device_get(memory, device, PROF_MEMORY_POOL, &info) == PROF_E_NOT_FOUND,
        "the capture has it");
  prof_trace_info about = {.size = sizeof about};
  check_status(prof_trace_info_get(trace, &about), PROF_OK);
  check(about.bad_count == 0, "%" PRIu64 " bad", about.bad_count);
  prof_memory_destroy(memory);
  prof_trace_destroy(trace);
  prof_pool_destroy(pool);
  for (int i = 0; i < POOLS; i++) prof_pool_destroy(filling[i]);
  check_status(prof_stop(), PROF_OK);
  return 0;
}

static void a_pool_without_room_in_the_arena_keeps_its_peaks(void **state) {
  (void)state;
  host_expect("no room", run_full, NULL);
}

int main(int argc, char **argv) {
  const int ended = walk_begin(argv);
  if (ended) return ended;
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(memory_is_right_without_a_failure),
      cmocka_unit_test(memory_is_right_with_each_call_failing_once),
      cmocka_unit_test(memory_is_right_with_each_call_failing_from_then_on),
      cmocka_unit_test(a_pool_without_room_in_the_arena_keeps_its_peaks),
  };
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  return cmocka_run_group_tests_name("memory, every call failing", tests, host_make_folder,
                                     host_remove_folder);
}
