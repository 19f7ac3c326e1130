/* Back ends are opened once, by the first who needs one, and dead in a forked child. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "device/internal.h"
#include "device/registry.h"

#include "../device/table.h"

enum { THREADS = 8 };

static struct {
  int opens, forks, result; /* opens, forks: any thread */
  bool is_slow, gives_nothing;
} vendor;

static prof_backend_self self;

static int open_and_count(const prof_backend_host *host, prof_backend_self **self_out) {
  (void)host;
  __atomic_fetch_add(&vendor.opens, 1, __ATOMIC_RELAXED);
  if (vendor.is_slow) usleep(100000);
  *self_out = vendor.gives_nothing || vendor.result ? NULL : &self;
  return vendor.result;
}

static void count_fork(prof_backend_self *of) { vendor.forks += of == &self; }

static const char *own_words(prof_backend_self *of) {
  return of ? "of an open one" : "the driver is of yesterday";
}

/* Of a device type of its own, so that tests do not meet. */
static prof_backend make(const char *name, int32_t device_type) {
  prof_backend table = TEST_TABLE(name);
  table.open = open_and_count;
  table.fork_child = count_fork;
  table.device_type = device_type;
  memset(&vendor, 0, sizeof vendor);
  return table;
}

static prof_backend_state state_of(const char *name) {
  prof_backend_state state = {.size = sizeof state};
  for (uint32_t i = 0; prof_backend_status(i, &state) == PROF_OK; i++)
    if (strcmp(state.name, name) == 0) return state;
  fail_msg("there is no back end %s", name);
  return state;
}

static void the_first_that_works_is_opened_once(void **state) {
  (void)state;
  prof_backend absent = make("absent", 100), works = make("works", 100), later = make("later", 100);
  absent.probe = NULL;
  assert_int_equal(prof_backend_add(&absent), PROF_E_INVALID);
  assert_int_equal(prof_backend_add(&works), PROF_OK);
  assert_int_equal(prof_backend_add(&later), PROF_OK);
  assert_null(prof_i_registry_open(101));
  assert_int_equal(vendor.opens, 0);
  prof_i_backend *const end = prof_i_registry_open(100);
  assert_non_null(end);
  assert_string_equal(end->table.name, "works");
  assert_ptr_equal(end->self, &self);
  assert_ptr_equal(prof_i_registry_open(100), end);
  assert_int_equal(vendor.opens, 1);
  assert_int_equal(state_of("works").is_open, 1);
  assert_int_equal(state_of("later").is_open, 0);
}

static void *open_one(void *result) {
  *(prof_i_backend **)result = prof_i_registry_open(110);
  return NULL;
}

static void threads_that_come_meanwhile_do_not_wait(void **state) {
  (void)state;
  const prof_backend table = make("slow", 110);
  pthread_t threads[THREADS];
  prof_i_backend *ends[THREADS] = {NULL};
  vendor.is_slow = true;
  assert_int_equal(prof_backend_add(&table), PROF_OK);
  for (int i = 0; i < THREADS; i++)
    assert_int_equal(pthread_create(&threads[i], NULL, open_one, &ends[i]), 0);
  int opened = 0;
  for (int i = 0; i < THREADS; i++) {
    pthread_join(threads[i], NULL);
    opened += ends[i] != NULL;
  }
  assert_int_equal(vendor.opens, 1);
  assert_true(opened >= 1);
  assert_non_null(prof_i_registry_open(110));
}

static void one_that_cannot_be_opened_is_not_tried_again(void **state) {
  (void)state;
  const prof_backend first = make("refuses", 120);
  prof_backend second = first;
  second.name = "says why";
  second.last_error = own_words;
  vendor.result = PROF_BACKEND_VERSION;
  assert_int_equal(prof_backend_add(&first), PROF_OK);
  assert_int_equal(prof_backend_add(&second), PROF_OK);
  for (int i = 0; i < 2; i++) assert_null(prof_i_registry_open(120));
  assert_int_equal(vendor.opens, 2);
  assert_int_equal(state_of("refuses").result, PROF_BACKEND_VERSION);
  assert_string_equal(state_of("refuses").reason, prof_backend_result_text(PROF_BACKEND_VERSION));
  assert_string_equal(state_of("says why").reason, "the driver is of yesterday");
  const prof_backend nothing = make("nothing", 121);
  vendor.gives_nothing = true;
  assert_int_equal(prof_backend_add(&nothing), PROF_OK);
  assert_null(prof_i_registry_open(121));
  assert_int_equal(state_of("nothing").result, PROF_BACKEND_VENDOR);
  assert_non_null(strstr(state_of("nothing").reason, "gave nothing"));
}

static int devices(prof_backend_self *of, uint32_t index, prof_backend_device *out) {
  assert_ptr_equal(of, &self);
  assert_true(out->size >= sizeof out->size);
  return index < 3 ? PROF_BACKEND_OK : PROF_BACKEND_NO_DEVICE;
}
static int devices_without_end(prof_backend_self *of, uint32_t index, prof_backend_device *out) {
  (void)of, (void)index, (void)out;
  return PROF_BACKEND_OK;
}

static void devices_of_an_open_one_are_counted(void **state) {
  (void)state;
  prof_backend three = make("three", 130), many = make("many", 131);
  three.device = devices;
  many.device = devices_without_end;
  assert_int_equal(prof_backend_add(&three), PROF_OK);
  assert_int_equal(prof_backend_add(&many), PROF_OK);
  assert_int_equal(state_of("three").device_count, 0);
  assert_non_null(prof_i_registry_open(130));
  assert_non_null(prof_i_registry_open(131));
  assert_int_equal(state_of("three").device_count, 3);
  assert_int_equal(state_of("many").device_count, 1024);
}

static void in_a_forked_child_all_that_was_open_is_shut(void **state) {
  (void)state;
  const prof_backend opened = make("opened", 140), looked_at = make("looked at", 141);
  assert_int_equal(prof_backend_add(&opened), PROF_OK);
  assert_int_equal(prof_backend_add(&looked_at), PROF_OK);
  assert_non_null(prof_i_registry_open(140));
  state_of("looked at");
  vendor.forks = 0;
  const pid_t child = fork();
  if (child == 0) {
    prof_i_registry_forget();
    bool is_good = vendor.forks >= 1 && !prof_i_registry_open(140) &&
                   state_of("opened").result == PROF_BACKEND_FORKED && !state_of("opened").is_open;
    is_good &= strstr(state_of("opened").advice, "child") != NULL;
    is_good &= prof_i_registry_open(141) != NULL; /* nobody had opened it */
    _exit(is_good ? 0 : 1);
  }
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);
  assert_non_null(prof_i_registry_open(140));
}

/* This program has libprof.a. */
static void opencl_is_not_supported_where_no_library_is_opened(void **state) {
  (void)state;
  assert_int_equal(state_of("opencl").result, PROF_BACKEND_UNSUPPORTED);
  assert_non_null(strstr(state_of("opencl").reason, "libprof.a"));
  assert_null(prof_i_registry_open(PROF_DEVICE_OPENCL));
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(opencl_is_not_supported_where_no_library_is_opened),
      cmocka_unit_test(the_first_that_works_is_opened_once),
      cmocka_unit_test(threads_that_come_meanwhile_do_not_wait),
      cmocka_unit_test(one_that_cannot_be_opened_is_not_tried_again),
      cmocka_unit_test(devices_of_an_open_one_are_counted),
      cmocka_unit_test(in_a_forked_child_all_that_was_open_is_shut),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
