/* A host whose address space or private memory is limited: prof takes a small share of what is
   free, says so, and what was recorded can be dumped and read. */
#define _GNU_SOURCE
#include "failing/host.h"
#include "fault/support/skip.h"

#include <sys/mman.h>
#include <sys/resource.h>

enum { MIB = 1 << 20, SHARE = 8 };

typedef struct limited {
  int which;
  rlim_t bytes; /* beyond what the process has */
  const char *path;
} limited;

static void set_limit(int which, rlim_t bytes) {
  check(setrlimit(which, &(const struct rlimit){bytes, RLIM_INFINITY}) == 0, "%s", strerror(errno));
}

static rlim_t mapped(void) {
  long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  check(file && fscanf(file, "%ld", &pages) == 1, "no /proc/self/statm");
  fclose(file);
  return (rlim_t)pages * (rlim_t)sysconf(_SC_PAGESIZE);
}

static prof_options options_of(const limited *l, uint64_t cap_bytes) {
  return (prof_options){
      .size = sizeof(prof_options), .path = l->path, .cap_bytes = cap_bytes, .devices = 1};
}

/* The tables that are mapped at the first scope count as well. */
static int start_leaves_the_host_its_memory(const void *context) {
  const limited *const l = context;
  set_limit(l->which, mapped() + l->bytes);
  const rlim_t before = mapped();
  const prof_options options = options_of(l, 0);
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(10);
  WITH_BASE_PROFILER(PROF_HOST, "arguments", "x", PROF_ARGS("n", 1), {});
  const rlim_t taken = mapped() - before;
  check(taken <= l->bytes / SHARE, "%lu of %lu bytes are taken", (unsigned long)taken,
        (unsigned long)l->bytes);
  const char *const name = l->which == RLIMIT_AS ? "RLIMIT_AS is " : "RLIMIT_DATA is ";
  check(strstr(health_now().reason, name), "the reason is '%s'", health_now().reason);
  return 0;
}

static void a_start_takes_at_most_an_eighth_of_the_address_space(void **state) {
  (void)state;
  if (SKIP_SANITIZED) skip();
  static const rlim_t sizes[] = {100, 300, 600, 1900};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++)
    for (int in_file = 0; in_file < 2; in_file++) {
      const limited l = {RLIMIT_AS, sizes[i] * MIB, in_file ? host_path("trace.json") : NULL};
      host_expect("a limited start", start_leaves_the_host_its_memory, &l);
    }
}

static void a_start_takes_at_most_an_eighth_of_the_private_memory(void **state) {
  (void)state;
  if (SKIP_SANITIZED) skip();
  const limited l = {RLIMIT_DATA, 300 * MIB, NULL};
  host_expect("a limited start", start_leaves_the_host_its_memory, &l);
}

static int all_can_be_read(const void *context) {
  const limited *const l = context;
  uint64_t count = 0;
  set_limit(l->which, mapped() + l->bytes);
  const prof_options options = options_of(l, 0);
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(1000000);
  host_check_sum(1000000);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(host_path("read.json")), PROF_OK);
  check_status(prof_get_duration(NULL, NULL, NULL, &count), PROF_OK);
  check(count && count == health_now().recorded_count, "%" PRIu64 " are read", count);
  return 0;
}

static void what_a_limited_process_has_recorded_can_be_read(void **state) {
  (void)state;
  if (SKIP_SANITIZED) skip();
  const limited in_memory = {RLIMIT_AS, 80 * MIB, NULL};
  host_expect("in memory", all_can_be_read, &in_memory);
  const limited in_file = {RLIMIT_AS, 80 * MIB, host_path("trace.json")};
  host_expect("in a file", all_can_be_read, &in_file);
}

static int has_large_cap(const void *context) {
  const limited *const l = context;
  set_limit(l->which, mapped() + l->bytes);
  const prof_options options = options_of(l, l->bytes * 2);
  check_status(prof_start_with(&options), PROF_OK);
  const prof_health health = health_now();
  check(health.cap_bytes <= l->bytes / SHARE, "the cap is %" PRIu64, health.cap_bytes);
  check(strstr(health.reason, "RLIMIT_AS is "), "the reason is '%s'", health.reason);
  return 0;
}

static void a_cap_that_has_no_room_becomes_the_share(void **state) {
  (void)state;
  if (SKIP_SANITIZED) skip();
  const limited l = {RLIMIT_AS, 300 * MIB, NULL};
  host_expect("a large cap", has_large_cap, &l);
}

static int has_no_room_for_a_copy(const void *context) {
  const limited *const l = context;
  const rlim_t before = mapped();
  set_limit(l->which, before + l->bytes);
  const prof_options options = options_of(l, l->bytes / 4 * 3);
  check_status(prof_start_with(&options), PROF_OK);
  check(health_now().cap_bytes == l->bytes / 4 * 3, "the cap is %" PRIu64, health_now().cap_bytes);
  record_scopes(2000000);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(host_path("late.json")), PROF_E_NO_MEMORY);
  check(strstr(prof_last_error(), "RLIMIT_AS is ") && strstr(prof_last_error(), "ulimit -v"),
        "no cause");
  set_limit(l->which, RLIM_INFINITY);
  check_status(prof_dump(host_path("late.json")), PROF_OK);
  return 0;
}

static void without_room_for_a_copy_the_limit_is_named(void **state) {
  (void)state;
  if (SKIP_SANITIZED) skip();
  const limited l = {RLIMIT_AS, 40 * MIB, NULL};
  host_expect("no copy", has_no_room_for_a_copy, &l);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, host_empty_folder)
  const struct CMUnitTest tests[] = {
      TEST(a_start_takes_at_most_an_eighth_of_the_address_space),
      TEST(a_start_takes_at_most_an_eighth_of_the_private_memory),
      TEST(what_a_limited_process_has_recorded_can_be_read),
      TEST(a_cap_that_has_no_room_becomes_the_share),
      TEST(without_room_for_a_copy_the_limit_is_named),
  };
  return cmocka_run_group_tests_name("address_space", tests, host_make_folder, host_remove_folder);
}
