/* The captures of hostile/test_memory.c in two sizes. Four times the bytes take little more than
   four times the steps, to open, to read and to write. */
#define _GNU_SOURCE
#include "hostile/read_everything.h"
#include "hostile/record_kinds.h"

#include "count_steps.h"

enum {
  GROWS = 8,     /* by its square it would be 16 times */
  FIXED = 100000 /* that do not depend on the size */
};

/* Of the larger one. A scope that overlaps a thousand others takes a thousand times the steps. */
static uint64_t bytes_of(size_t kind) {
  return kinds[kind].make == make_overlapping ? MIB / 2 : MIB;
}

typedef struct steps {
  uint64_t read, written;
} steps;

static steps count_steps(size_t kind, uint64_t bytes) {
  capture c;
  steps s;
  prof_trace *trace = NULL;
  build(&c, kind, bytes);
  const uint64_t begun = steps_now;
  assert_int_equal(prof_trace_open_bytes(c.bytes, c.count, &trace), PROF_OK);
  read_events(trace);
  read_tables(trace);
  const uint64_t read = steps_now;
  write_exports(trace);
  s = (steps){read - begun, steps_now - read};
  prof_trace_destroy(trace);
  capture_end(&c);
  return s;
}

static void each_kind_takes_steps_by_its_size(void **state) {
  (void)state;
  for (size_t kind = 0; kind < KINDS; kind++) {
    const uint64_t bytes = bytes_of(kind);
    const steps small = count_steps(kind, bytes / 4), large = count_steps(kind, bytes);
    print_message("%-42s %9llu and %9llu steps to read, %9llu and %9llu to write\n",
                  kinds[kind].name, (unsigned long long)small.read, (unsigned long long)large.read,
                  (unsigned long long)small.written, (unsigned long long)large.written);
    assert_true(small.read > 0 && small.written > 0);
    if (large.read > GROWS * small.read + FIXED || large.written > GROWS * small.written + FIXED)
      fail_msg("%s: four times the bytes take more than %d times the steps", kinds[kind].name,
               GROWS);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(each_kind_takes_steps_by_its_size)};
  return cmocka_run_group_tests_name("steps", tests, NULL, NULL);
}
