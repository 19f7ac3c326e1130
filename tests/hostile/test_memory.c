/* Captures of 1 MiB that are full of one kind of record each (record_kinds.h): opening and reading
   one takes at most four times its bytes and 16 MiB of memory. Under a sanitizer memory is no
   measure, and they have a quarter. What it takes of time is steps/test_hostile.c's. */
#define _GNU_SOURCE
#include <malloc.h>

#include "read_everything.h"
#include "record_kinds.h"

static void each_kind_stays_within_its_memory(void **state) {
  (void)state;
  for (size_t kind = 0; kind < KINDS; kind++) {
    capture c;
    build(&c, kind, WITH_ASAN || WITH_TSAN ? MIB / 4 : MIB);
    malloc_trim(0);
    const uint64_t before = begin_peak(), most = 4 * c.count + 16 * (uint64_t)MIB;
    prof_trace *trace = NULL;
    assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
    read_events(trace);
    read_tables(trace);
    const uint64_t memory = peak_since(before);
    const prof_trace_info info = info_of(trace);
    write_exports(trace);
    print_message("%-42s %6llu events %5u threads: %5.1f MiB\n", kinds[kind].name,
                  (unsigned long long)info.event_count, info.thread_count, (double)memory / MIB);
    assert_int_equal(info.bad_count, 0);
    prof_trace_destroy(trace);
    capture_end(&c);
    if (before && !WITH_ASAN && !WITH_TSAN && memory > most)
      fail_msg("%s: %llu bytes of memory, not more than %llu", kinds[kind].name,
               (unsigned long long)memory, (unsigned long long)most);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_kind_stays_within_its_memory)};
  return cmocka_run_group_tests_name("memory", tests, NULL, NULL);
}
