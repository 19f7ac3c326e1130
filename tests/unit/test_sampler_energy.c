/* The packages' energy counters, from a folder as the kernel has it: several packages, counters
   that come round, files that may not be read or say nothing. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "../../src/sampler/internal.h"

static char folder[64];

static void put(int package, const char *name, const char *text) {
  char path[160];
  snprintf(path, sizeof path, "%s/intel-rapl:%d", folder, package);
  mkdir(path, 0700);
  snprintf(path, sizeof path, "%s/intel-rapl:%d/%s", folder, package, name);
  FILE *const file = fopen(path, "w");
  assert_non_null(file);
  fputs(text, file);
  fclose(file);
}

static int begin(void **state) {
  (void)state;
  snprintf(folder, sizeof folder, "/tmp/prof-energy-XXXXXX");
  return !mkdtemp(folder);
}
static int end(void **state) {
  char command[96];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command) != 0;
}

static void packages_are_added_up(void **state) {
  prof_i_energy energy;
  uint64_t uj = 0;
  (void)state;
  put(0, "energy_uj", "1000\n");
  put(0, "max_energy_range_uj", "65532610987\n");
  put(2, "energy_uj", "500\n");
  put(2, "max_energy_range_uj", "65532610987\n");
  prof_i_energy_begin(&energy, folder);
  assert_int_equal(energy.count, 2);
  put(0, "energy_uj", "1700\n");
  put(2, "energy_uj", "501\n");
  assert_true(prof_i_energy_end(&energy, folder, &uj));
  assert_int_equal(uj, 701);
}

static void a_counter_may_come_round(void **state) {
  prof_i_energy energy;
  uint64_t uj = 0;
  (void)state;
  put(0, "energy_uj", "65532610980\n");
  put(0, "max_energy_range_uj", "65532610987\n");
  prof_i_energy_begin(&energy, folder);
  put(0, "energy_uj", "13\n");
  assert_true(prof_i_energy_end(&energy, folder, &uj));
  assert_int_equal(uj, 20);
}

static void what_cannot_be_read_is_not_known(void **state) {
  prof_i_energy energy;
  uint64_t uj = 7;
  (void)state;
  prof_i_energy_begin(&energy, folder);
  assert_int_equal(energy.count, 0);
  assert_false(prof_i_energy_end(&energy, folder, &uj));
  put(0, "energy_uj", "none\n");
  put(0, "max_energy_range_uj", "1\n");
  prof_i_energy_begin(&energy, folder);
  assert_int_equal(energy.count, 0);
  put(0, "energy_uj", "5\n");
  prof_i_energy_begin(&energy, folder);
  assert_int_equal(energy.count, 1);
  put(0, "energy_uj", "3\n"); /* back, and not round: the range is less than the old value */
  assert_false(prof_i_energy_end(&energy, folder, &uj));
  put(0, "energy_uj", "");
  assert_false(prof_i_energy_end(&energy, folder, &uj));
}

int main(void) {
#define ENTRY(test) cmocka_unit_test_setup_teardown(test, begin, end)
  const struct CMUnitTest tests[] = {ENTRY(packages_are_added_up), ENTRY(a_counter_may_come_round),
                                     ENTRY(what_cannot_be_read_is_not_known)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
