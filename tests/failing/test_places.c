/* Where several processes, or a poor file system, obstruct a capture: one PROF_OUTPUT for eight
   processes, for some that are all process 1 of their container, or all its child. Also file
   systems that reserve no room, a small /dev/shm, disks that fill. No trace is overwritten by
   another process that runs beside it, and health says where a capture went and why. */
#define _GNU_SOURCE
#include "failing/host.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <time.h>

enum { MIB = 1 << 20, PROCESSES = 8 };

/* ---- processes that run beside each other ---- */

/* Shared by all: nobody dumps before everybody has started. */
static struct { volatile int started, numbers; } * together;

typedef struct beside {
  int count;
  uint64_t scopes; /* each process has one more than the previous one */
  const char *path;
} beside;

static void wait_for(int count) {
  WAIT_WHILE(together->started < count);
  check(together->started >= count, "%d of %d have started", together->started, count);
}

static int record_beside(const beside *all, uint64_t which) {
  const prof_options options = {.size = sizeof options, .path = all->path, .cap_bytes = 16 << 20};
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(all->scopes + which);
  __atomic_add_fetch(&together->started, 1, __ATOMIC_SEQ_CST);
  wait_for(all->count);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(NULL), PROF_OK);
  return 0;
}

static uint64_t scopes_in_json(const char *path) {
  static char line[1 << 16];
  uint64_t count = 0;
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  while (fgets(line, sizeof line, file))
    for (const char *at = line; (at = strstr(at, "\"ph\":\"X\"")) != NULL; at++) count++;
  fclose(file);
  return count;
}

/* Each one's trace is there, once, and nothing besides. */
static void check_traces(const beside *all) {
  int seen[PROCESSES] = {0}, files = 0;
  DIR *const entries = opendir(host_folder);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;) {
    if (e->d_name[0] == '.') continue;
    files++;
    const uint64_t which = scopes_in_json(host_path(e->d_name)) - all->scopes;
    if (which >= (uint64_t)all->count) fail_msg("%s is nobody's trace", e->d_name);
    seen[which]++;
  }
  closedir(entries);
  for (int i = 0; i < all->count; i++)
    if (seen[i] != 1)
      fail_msg("of process %d there are %d traces, among %d files", i, seen[i], files);
  assert_int_equal(files, all->count);
}

static int one_of_eight(const void *context) {
  const beside *const all = context;
  return record_beside(all, (uint64_t)__atomic_fetch_add(&together->numbers, 1, __ATOMIC_SEQ_CST));
}

static void expect_beside(host_body *body, const beside *all) {
  host_child children[PROCESSES];
  char said[HOST_SAID_ROOM], complaint[HOST_SAID_ROOM + 64], first[HOST_SAID_ROOM + 64] = "";
  bool skipped = false;
  together->started = together->numbers = 0;
  for (int i = 0; i < all->count; i++) children[i] = host_begin(body, all);
  for (int i = 0; i < all->count; i++) {
    const int status = host_end(children[i], said);
    if (WIFEXITED(status) && WEXITSTATUS(status) == HOST_SKIPPED) {
      if (!skipped) print_message("%s", said);
      skipped = true;
    } else if (*host_complaint(status, said, complaint, sizeof complaint) && !first[0]) {
      snprintf(first, sizeof first, "%s", complaint);
    }
  }
  if (skipped) skip();
  if (first[0]) fail_msg("%s", first);
  check_traces(all);
}

static void eight_processes_with_one_output_have_eight_traces(void **state) {
  (void)state;
  const beside all = {PROCESSES, 1000, host_path("trace.json")};
  expect_beside(one_of_eight, &all);
}

static bool write_text(const char *path, const char *text) {
  const int fd = open(path, O_WRONLY | O_CLOEXEC);
  const bool is_done = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
  if (fd >= 0) close(fd);
  return is_done;
}

/* Into a namespace of its own; who is not root becomes root of one of users, too. */
static bool leave_namespace(int which) {
  char users[64], groups[64];
  snprintf(users, sizeof users, "0 %u 1", (unsigned)getuid());
  snprintf(groups, sizeof groups, "0 %u 1", (unsigned)getgid());
  if (unshare(which) == 0) return true;
  if (getuid() == 0 || unshare(which | CLONE_NEWUSER) != 0) return false;
  return write_text("/proc/self/setgroups", "deny") && write_text("/proc/self/uid_map", users) &&
         write_text("/proc/self/gid_map", groups);
}

/* In a namespace of its own each child is process 1, as in a container. */
static int process_one(const void *context) {
  const beside *const all = context;
  const uint64_t which = (uint64_t)__atomic_fetch_add(&together->numbers, 1, __ATOMIC_SEQ_CST);
  if (!leave_namespace(CLONE_NEWPID)) return skip_child("this user may not make a pid namespace");
  const pid_t child = fork();
  check(child >= 0, "%s", strerror(errno));
  if (child == 0) {
    check(getpid() == 1, "the pid is %d", (int)getpid());
    _exit(record_beside(all, which));
  }
  int status = -1;
  check(waitpid(child, &status, 0) == child && status == 0, "process 1 ended with %x",
        (unsigned)status);
  return 0;
}

static void three_processes_that_are_all_process_1_have_three_traces(void **state) {
  (void)state;
  const beside all = {3, 1000, host_path("trace.json")};
  expect_beside(process_one, &all);
}

/* Its child is process 2 of its own namespace, as each of the others' is. */
static int child_of_process_one(const void *context) {
  const beside *const all = context;
  const uint64_t which = (uint64_t)__atomic_fetch_add(&together->numbers, 1, __ATOMIC_SEQ_CST);
  if (!leave_namespace(CLONE_NEWPID)) return skip_child("this user may not make a pid namespace");
  const pid_t first = fork();
  check(first >= 0, "%s", strerror(errno));
  if (first == 0) {
    const prof_options options = {.size = sizeof options, .path = all->path, .cap_bytes = 16 << 20};
    check_status(prof_start_with(&options), PROF_OK);
    const pid_t child = fork();
    if (child == 0) {
      check(getpid() == 2, "the pid is %d", (int)getpid());
      record_scopes(all->scopes + which);
      __atomic_add_fetch(&together->started, 1, __ATOMIC_SEQ_CST);
      wait_for(all->count);
      check_status(prof_stop(), PROF_OK);
      check_status(prof_dump(NULL), PROF_OK);
      _exit(0);
    }
    int status = -1;
    check(waitpid(child, &status, 0) == child && status == 0, "process 2 ended with %x",
          (unsigned)status);
    check_status(prof_stop(), PROF_OK);
    const prof_health health = health_now(); /* its own trace is no matter here */
    check(unlink(health.capture_path) == 0, "%s: %s", health.capture_path, strerror(errno));
    _exit(0);
  }
  int status = -1;
  check(waitpid(first, &status, 0) == first && status == 0, "process 1 ended with %x",
        (unsigned)status);
  return 0;
}

static void three_children_that_are_all_process_2_have_three_traces(void **state) {
  (void)state;
  const beside all = {3, 1000, host_path("trace.json")};
  expect_beside(child_of_process_one, &all);
}

/* ---- file systems ---- */

/* A file system of that type, for this process alone. */
static bool mount_here(const char *at, const char *type, const char *options) {
  static bool is_apart;
  if (!is_apart &&
      (!leave_namespace(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0))
    return false;
  is_apart = true;
  mkdir(at, 0755);
  return mount("none", at, type, 0, options) == 0;
}

static int in_a_poor_place(const void *context) {
  (void)context;
  const char *const poor = host_path("poor"), *const path = host_path("poor/trace.json");
  unsetenv("TMPDIR");
  unsetenv("PROF_CAPTURE_DIR");
  if (!mount_here(poor, "ramfs", NULL) || !mount_here("/dev/shm", "tmpfs", "size=1m"))
    return skip_child("this user may not mount a file system");
  const prof_options options = {.size = sizeof options, .path = path};
  check_status(prof_start_with(&options), PROF_OK);
  const prof_health health = health_now();
  check(health.survives_kill == 0 && health.capture_path[0] == '\0', "the capture is %s",
        health.capture_path);
  check(strstr(health.reason, poor) && strstr(health.reason, "fallocate"),
        "the reason does not speak of the folder: %s", health.reason);
  check(strstr(health.reason, "/dev/shm") && strstr(health.reason, "8 MiB"),
        "the reason does not speak of /dev/shm: %s", health.reason);
  check(strstr(health.reason, "memory"), "the reason does not say where it is: %s", health.reason);
  record_scopes(100000);
  check_status(prof_stop(), PROF_OK);
  host_check_sum(100000);
  check_status(prof_dump(NULL), PROF_OK);
  char names[512];
  check(host_entries(poor, "", names, sizeof names) == 1, "%s", names);
  return 0;
}

static void without_room_for_a_file_the_reason_is_given(void **state) {
  (void)state;
  host_expect("a poor place", in_a_poor_place, NULL);
}

static uint64_t cap_of(const char *path, uint64_t cap_bytes) {
  const prof_options options = {.size = sizeof options, .path = path, .cap_bytes = cap_bytes};
  check_status(prof_start_with(&options), PROF_OK);
  const prof_health health = health_now();
  check_status(prof_stop(), PROF_OK);
  return health.cap_bytes;
}

static int on_tmpfs(const void *unused) {
  (void)unused;
  unsetenv("TMPDIR");
  unsetenv("PROF_CAPTURE_DIR");
  if (!mount_here(host_path("poor"), "ramfs", NULL) || !mount_here("/dev/shm", "tmpfs", "size=64m"))
    return skip_child("this user may not mount a file system");
  const uint64_t in_memory = cap_of(NULL, 0), more = in_memory + MIB;
  check(cap_of("/dev/shm/default.json", 0) == in_memory, "the default is not memory's, %" PRIu64,
        in_memory);
  check(cap_of("/dev/shm/chosen.json", more) == more, "a cap that is asked for is not given");
  check(cap_of(host_path("poor/trace.json"), more) == in_memory,
        "what goes to /dev/shm instead has more than memory would, %" PRIu64, in_memory);
  check(strstr(health_now().reason, "/dev/shm"), "the reason is %s", health_now().reason);
  struct statfs about;
  check(statfs(host_folder, &about) == 0, "%s", strerror(errno));
  const bool is_disk = about.f_type != 0x01021994; /* no tmpfs */
  check(!is_disk || cap_of(host_path("file.json"), 0) > in_memory,
        "a file on a disk has no more than memory, %" PRIu64, in_memory);
  return 0;
}

static void a_capture_on_tmpfs_has_the_cap_of_memory(void **state) {
  (void)state;
  host_expect("on tmpfs", on_tmpfs, NULL);
}

/* No capture is beside the output here; it is in /dev/shm. */
static int beside_in_a_poor_place(const void *context) {
  (void)context;
  const beside all = {2, 1000, host_path("poor/trace.json")};
  unsetenv("TMPDIR");
  unsetenv("PROF_CAPTURE_DIR");
  if (!mount_here(host_path("poor"), "ramfs", NULL) || !mount_here("/dev/shm", "tmpfs", "size=64m"))
    return skip_child("this user may not mount a file system");
  const pid_t child = fork();
  check(child >= 0, "fork");
  if (child == 0) _exit(record_beside(&all, 1));
  record_beside(&all, 0);
  int status = -1;
  check(waitpid(child, &status, 0) == child && status == 0, "the other process ended with %x",
        (unsigned)status);
  const prof_health health = health_now();
  check(strstr(health.reason, "/dev/shm"), "the reason is %s", health.reason);
  char names[512];
  check(host_entries(host_path("poor"), "", names, sizeof names) == 2, "two processes left %s",
        names);
  check(host_entries("/dev/shm", "", names, sizeof names) == 0, "captures are left: %s", names);
  return 0;
}

static void two_processes_on_a_poor_file_system_have_two_traces(void **state) {
  (void)state;
  together->started = together->numbers = 0;
  host_expect("two in a poor place", beside_in_a_poor_place, NULL);
}

/* ---- a disk that fills, and is freed ---- */

static uint64_t free_kib(const char *folder) {
  struct statvfs is;
  check(statvfs(folder, &is) == 0, "statvfs(%s)", folder);
  return (uint64_t)is.f_bavail * is.f_frsize >> 10;
}

static int on_a_full_disk(const void *context) {
  const uint32_t with_helper = *(const uint32_t *)context;
  enum { MANY = 1500000, PIECE = 100000 };
  uint64_t many = 0;
  unsigned naps = 0;
  const char *const disk = host_path("disk");
  if (!mount_here(disk, "tmpfs", "size=12m"))
    return skip_child("this user may not mount a file system");
  const prof_options options = {
      .size = sizeof options, .path = host_path("disk/trace.json"), .helper_thread = with_helper};
  check_status(prof_start_with(&options), PROF_OK);
  check(health_now().survives_kill, "%s", health_now().reason);
  do { /* 24 MB; a helper makes room when it has a processor, and recording waits for nobody */
    record_scopes(PIECE);
    many += PIECE;
  } while (many < MANY || (with_helper && !health_now().is_full && hang_nap(&naps)));
  host_check_sum(many);
  check(health_now().is_full && health_now().lost_count[PROF_LOSS_DISK] > 0, "no loss by the disk");
  check(health_now().recorded_count > 300000, "only %" PRIu64 " are recorded in 12 MB",
        health_now().recorded_count);
  check(strstr(health_now().reason, "No space left on device"), "%s", health_now().reason);
  check_status(prof_dump(host_path("disk/trace.json")), PROF_E_NO_SPACE);
  check(strstr(prof_last_error(), "trace.json"), "no path");
  char names[512];
  check(host_entries(disk, "", names, sizeof names) == 1, "not the capture alone: %s", names);
  check_status(prof_clear(), PROF_OK); /* gives its room back */
  check(health_now().recorded_count == 0, "after the clear %" PRIu64 " are recorded",
        health_now().recorded_count);
  uint64_t after = 0;
  do {
    record_scopes(1000);
    after += 1000;
  } while (health_now().recorded_count < 1000 && with_helper && hang_nap(&naps));
  host_check_sum(many + after);
  check(with_helper || !health_now().reason[0], "%s", health_now().reason);
  check(health_now().recorded_count >= 1000,
        "after the clear %" PRIu64 " of %" PRIu64 " are recorded", health_now().recorded_count,
        after);
  /* Chunks made ahead fill it again. */
  while (with_helper && free_kib(disk) > 2048 && hang_nap(&naps)) continue;
  check_status(prof_stop(), PROF_OK);
  check(free_kib(disk) > 8192, "chunks made ahead keep the disk: %" PRIu64 " KiB are free",
        free_kib(disk));
  check_status(prof_dump(NULL), PROF_OK);
  check(host_entries(disk, "", names, sizeof names) == 1, "not the trace alone: %s", names);
  return 0;
}

static void a_full_disk_costs_scopes_until_a_clear(void **state) {
  (void)state;
  host_expect("a full disk", on_a_full_disk, &(const uint32_t){0});
}

static void a_full_disk_with_a_helper_thread_costs_scopes_until_a_clear(void **state) {
  (void)state;
  host_expect("a full disk", on_a_full_disk, &(const uint32_t){1});
}

/* ---- a process without address space ---- */

static pthread_barrier_t limit_is_set;

static void *record_under_the_limit(void *unused) {
  pthread_barrier_wait(&limit_is_set);
  record_scopes(1000);
  return unused;
}

static int without_address_space(const void *unused) {
  const prof_options options = {.size = sizeof options, .cap_bytes = 1 << 20};
  pthread_t thread;
  (void)unused;
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(1000);
  check(!health_now().reason[0], "%s", health_now().reason);
  pthread_barrier_init(&limit_is_set, NULL, 2);
  check(pthread_create(&thread, NULL, record_under_the_limit, NULL) == 0, "no thread");
  const struct rlimit limit = {1 << 20, RLIM_INFINITY};
  check(setrlimit(RLIMIT_AS, &limit) == 0, "%s", strerror(errno));
  pthread_barrier_wait(&limit_is_set);
  check(pthread_join(thread, NULL) == 0, "join");
  host_check_sum(2000);
  const prof_health health = health_now();
  check(health.lost_count[PROF_LOSS_NO_THREAD] == 1000, "nothing is lost");
  check(strstr(health.reason, "no room for more scopes: Cannot allocate memory"), "%s",
        health.reason);
  return 0;
}

static void a_process_without_address_space_is_told_why_scopes_are_lost(void **state) {
  if (SKIP_SANITIZED) skip();
  (void)state;
  host_expect("no address space", without_address_space, NULL);
}

/* A piece without room stays claimed. If the disk is tmpfs and has no page left, an access to the
   piece kills the process: readers must not touch it. */
static void *record_many(void *unused) {
  record_scopes(400000);
  return unused;
}

static int on_a_disk_without_a_page(const void *unused) {
  enum { THREADS = 4 };
  const char *const disk = host_path("disk");
  pthread_t threads[THREADS];
  static const char page[4096] = "no hole";
  (void)unused;
  if (!mount_here(disk, "tmpfs", "size=12m"))
    return skip_child("this user may not mount a file system");
  const prof_options options = {.size = sizeof options, .path = host_path("disk/trace.json")};
  check_status(prof_start_with(&options), PROF_OK);
  for (int i = 0; i < THREADS; i++)
    check(pthread_create(&threads[i], NULL, record_many, NULL) == 0, "no thread");
  for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
  const int rest = open(host_path("disk/rest"), O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
  while (write(rest, page, sizeof page) > 0) continue;
  check(health_now().is_full, "it is not full");
  host_check_sum(THREADS * 400000);
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  check_status(prof_get(&trace), PROF_OK);
  check_status(prof_trace_info_get(trace, &info), PROF_OK);
  check(info.event_count == health_now().recorded_count && info.bad_count == 0,
        "%" PRIu64 " events, %" PRIu64 " bad", info.event_count, info.bad_count);
  prof_trace_destroy(trace);
  check_status(prof_clear(), PROF_OK);
  record_scopes(10);
  check(health_now().recorded_count == 10, "after the clear %" PRIu64 " are recorded",
        health_now().recorded_count);
  check_status(prof_stop(), PROF_OK);
  close(rest);
  return 0;
}

static void what_has_no_room_is_not_looked_at(void **state) {
  (void)state;
  host_expect("a disk without a page", on_a_disk_without_a_page, NULL);
}

/* ---- the size of files ---- */

/* SIGXFSZ would end this child. */
static int under_a_file_size_limit(const void *context) {
  const uint32_t with_helper = *(const uint32_t *)context;
  static const rlim_t limits[] = {0, 1, 4095, 65536, 1 << 20, 3 << 20};
  for (size_t i = 0; i < sizeof limits / sizeof *limits; i++) {
    const prof_options options = {.size = sizeof options,
                                  .path = host_path("limited.json"),
                                  .cap_bytes = (8u << 20) + (i << 20),
                                  .helper_thread = with_helper};
    check_status(prof_start_with(&options), PROF_OK);
    record_scopes(30000); /* more JSON than any of the limits */
    check(setrlimit(RLIMIT_FSIZE, &(const struct rlimit){limits[i], RLIM_INFINITY}) == 0, "%s",
          strerror(errno));
    const prof_health before = health_now();
    record_scopes(300000);
    const prof_health health = health_now();
    check(health.recorded_count + health_lost(&health) ==
              before.recorded_count + health_lost(&before) + 300000,
          "with %llu bytes the sum is wrong", (unsigned long long)limits[i]);
    check(health.lost_count[PROF_LOSS_DISK] > 0, "with %llu bytes nothing is lost",
          (unsigned long long)limits[i]);
    const int status = prof_dump(host_path("other.json"));
    check(status == PROF_E_NO_SPACE, "with %llu bytes a dump is %s", (unsigned long long)limits[i],
          prof_status_name(status));
    check(strstr(prof_last_error(), "RLIMIT_FSIZE"), "no cause");
    check_status(prof_stop(), PROF_OK);
    const int again = prof_start_with(&(const prof_options){
        .size = sizeof options, .path = host_path("second.json"), .cap_bytes = 16 << 20});
    check(again == PROF_OK || again == PROF_E_NO_SPACE, "with %llu bytes a start is %s",
          (unsigned long long)limits[i], prof_status_name(again));
    if (again == PROF_OK) check_status(prof_stop(), PROF_OK);
    check(setrlimit(RLIMIT_FSIZE, &(const struct rlimit){RLIM_INFINITY, RLIM_INFINITY}) == 0, "%s",
          strerror(errno));
    check_status(prof_dump(host_path("other.json")), PROF_OK);
    host_empty(host_folder);
  }
  return 0;
}

static void no_file_size_limit_ends_the_host(void **state) {
  (void)state;
  host_expect("a limit", under_a_file_size_limit, &(const uint32_t){0});
}

static void no_file_size_limit_ends_the_host_with_a_helper_thread(void **state) {
  (void)state;
  host_expect("a limit", under_a_file_size_limit, &(const uint32_t){1});
}

int main(void) {
  together =
      mmap(NULL, sizeof *together, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (together == MAP_FAILED) return 1;
#define TEST(name) cmocka_unit_test_teardown(name, host_empty_folder)
  const struct CMUnitTest tests[] = {
      TEST(eight_processes_with_one_output_have_eight_traces),
      TEST(three_processes_that_are_all_process_1_have_three_traces),
      TEST(three_children_that_are_all_process_2_have_three_traces),
      TEST(without_room_for_a_file_the_reason_is_given),
      TEST(a_capture_on_tmpfs_has_the_cap_of_memory),
      TEST(two_processes_on_a_poor_file_system_have_two_traces),
      TEST(a_full_disk_costs_scopes_until_a_clear),
      TEST(a_full_disk_with_a_helper_thread_costs_scopes_until_a_clear),
      TEST(a_process_without_address_space_is_told_why_scopes_are_lost),
      TEST(what_has_no_room_is_not_looked_at),
      TEST(no_file_size_limit_ends_the_host),
      TEST(no_file_size_limit_ends_the_host_with_a_helper_thread),
  };
  return cmocka_run_group_tests_name("places", tests, host_make_folder, host_remove_folder);
}
