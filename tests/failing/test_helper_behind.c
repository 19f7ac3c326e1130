/* A helper thread that gets no further: what it is to make ready stands still in fallocate(), as on
   a slow disk, or where it gets no processor. The program's own threads go on, and make no system
   calls for what they lose. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>

#include "host.h"

enum { MIB = 1 << 20, CAP = 64 * MIB, FIRST_LOOK = 100000, STEP = 50000 };

static struct {
  pthread_t main_thread;
  uint32_t is_closed; /* the gate that another thread's fallocate() waits at */
  uint32_t waiting, helper_slept;
  uint64_t main_bytes;   /* that the main thread has reserved */
  uint64_t main_futexes; /* that it has called */
} own;

static bool is_main(void) { return pthread_equal(pthread_self(), own.main_thread); }
static uint32_t look(const uint32_t *word) { return __atomic_load_n(word, __ATOMIC_ACQUIRE); }
static void nap(void) { nanosleep(&(const struct timespec){0, 100000}, NULL); }

/* prof's calls come here: this program's symbols stand in front of the C library's. */
int fallocate(int fd, int mode, off_t offset, off_t bytes) {
  if (is_main()) {
    own.main_bytes += (uint64_t)bytes;
  } else {
    __atomic_fetch_add(&own.waiting, 1, __ATOMIC_ACQ_REL);
    while (look(&own.is_closed)) nap();
    __atomic_fetch_sub(&own.waiting, 1, __ATOMIC_ACQ_REL);
  }
  int (*next)(int, int, off_t, off_t);
  *(void **)&next = dlsym(RTLD_NEXT, "fallocate");
  return next(fd, mode, offset, bytes);
}

long syscall(long number, ...) {
  va_list list;
  long a[6];
  va_start(list, number);
  for (int i = 0; i < 6; i++) a[i] = va_arg(list, long); /* as the C library's own takes them */
  va_end(list);
  if (number == SYS_futex && is_main()) own.main_futexes++;
  if (number == SYS_futex && !is_main()) __atomic_store_n(&own.helper_slept, 1, __ATOMIC_RELEASE);
  long (*next)(long, ...);
  *(void **)&next = dlsym(RTLD_NEXT, "syscall");
  return next(number, a[0], a[1], a[2], a[3], a[4], a[5]);
}

static void start(void) {
  own.main_thread = pthread_self();
  own.helper_slept = 0;
  own.main_bytes = 0;
  const prof_options options = {.size = sizeof options,
                                .cap_bytes = CAP,
                                .path = host_path("behind.json"),
                                .helper_thread = 1};
  check_status(prof_start_with(&options), PROF_OK);
}

static int start_alone(const void *unused) {
  (void)unused;
  own.is_closed = 1;
  start();
  check(own.main_bytes <= MIB, "the start itself reserves %" PRIu64 " bytes", own.main_bytes);
  record_scopes(FIRST_LOOK);
  const prof_health health = health_now();
  check(health.helper_thread == 1, "there is no helper");
  check(health.recorded_count == FIRST_LOOK, "%" PRIu64 " of %d recorded", health.recorded_count,
        FIRST_LOOK);
  __atomic_store_n(&own.is_closed, 0, __ATOMIC_RELEASE);
  check_status(prof_stop(), PROF_OK);
  return 0;
}

static void a_start_stocks_nothing_and_what_comes_before_the_helper_is_ready_is_recorded(
    void **state) {
  (void)state;
  host_expect("a start", start_alone, NULL);
}

static int lose(const void *unused) {
  (void)unused;
  start();
  while (!look(&own.helper_slept)) nap(); /* it has made ready all that it may */
  __atomic_store_n(&own.is_closed, 1, __ATOMIC_RELEASE);
  uint64_t attempts = 0;
  for (; health_now().lost_count[PROF_LOSS_NO_CHUNK] == 0 && attempts < CAP / 16; attempts += STEP)
    record_scopes(STEP);
  check(health_now().lost_count[PROF_LOSS_NO_CHUNK] > 0, "nothing is lost");
  while (!look(&own.waiting)) nap();
  const uint64_t before = health_now().lost_count[PROF_LOSS_NO_CHUNK];
  own.main_futexes = 0;
  record_scopes(FIRST_LOOK);
  const uint64_t futexes = own.main_futexes,
                 lost = health_now().lost_count[PROF_LOSS_NO_CHUNK] - before;
  __atomic_store_n(&own.is_closed, 0, __ATOMIC_RELEASE);
  check(lost == FIRST_LOOK, "%" PRIu64 " of %d lost", lost, FIRST_LOOK);
  check(futexes == 0, "%" PRIu64 " system calls for %" PRIu64 " lost scopes", futexes, lost);
  const prof_health health = health_now();
  check(health.recorded_count + health.lost_count[PROF_LOSS_NO_CHUNK] == attempts + FIRST_LOOK,
        "%" PRIu64 " recorded, %" PRIu64 " lost of %" PRIu64, health.recorded_count,
        health.lost_count[PROF_LOSS_NO_CHUNK], attempts + FIRST_LOOK);
  check_status(prof_stop(), PROF_OK);
  return 0;
}

static bool is_pwritev_forbidden;

ssize_t pwritev(int fd, const struct iovec *pieces, int count, off_t offset) {
  if (is_pwritev_forbidden) {
    errno = EPERM;
    return -1;
  }
  ssize_t (*next)(int, const struct iovec *, int, off_t);
  *(void **)&next = dlsym(RTLD_NEXT, "pwritev");
  return next(fd, pieces, count, offset);
}

static int record_forbidden(const void *unused) {
  (void)unused;
  const prof_options options = {.size = sizeof options, .path = host_path("forbidden.json")};
  is_pwritev_forbidden = true;
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(FIRST_LOOK);
  check_status(prof_stop(), PROF_OK);
  const prof_health health = health_now();
  check(health.recorded_count == FIRST_LOOK, "%" PRIu64 " of %d recorded", health.recorded_count,
        FIRST_LOOK);
  return 0;
}

static void a_sandbox_that_forbids_pwritev_loses_nothing(void **state) {
  (void)state;
  host_expect("a sandbox", record_forbidden, NULL);
}

static void a_lost_scope_makes_no_system_call(void **state) {
  (void)state;
  host_expect("a loss", lose, NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, host_empty_folder)
  const struct CMUnitTest tests[] = {
      TEST(a_start_stocks_nothing_and_what_comes_before_the_helper_is_ready_is_recorded),
      TEST(a_lost_scope_makes_no_system_call),
      TEST(a_sandbox_that_forbids_pwritev_loses_nothing),
  };
  return cmocka_run_group_tests_name("helper behind", tests, host_make_folder, host_remove_folder);
}
