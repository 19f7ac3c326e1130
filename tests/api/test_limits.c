/* Limits, full disks, file systems that refuse, and a host that closes our descriptors. Each call
   returns a status and a text with the values, and leaves the host as before. Each loss is counted.
   No partial file has the final name. */
#define _GNU_SOURCE
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/syscall.h>

#include "parts.h"
#include "sanitizers.h"

/* Recorded and lost make up what was attempted, and the dump has all that was recorded. */
static void check_sums(uint64_t attempted) {
  const prof_health health = health_now();
  const uint64_t lost = health_lost(&health);
  check(health.recorded_count + lost == attempted, "%" PRIu64 " + %" PRIu64 " != %" PRIu64,
        health.recorded_count, lost, attempted);
  uint64_t count = 0;
  check_status(prof_get_duration("scope", NULL, NULL, &count), PROF_OK);
  check(count == health.recorded_count, "%" PRIu64 " are read, %" PRIu64 " recorded", count,
        health.recorded_count);
}

/* ---- the parts ---- */

static int file_size_limit_before_the_start(void) {
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "%s/limited.json", folder);
  limit(RLIMIT_FSIZE, 4 << 20);
  const prof_options options = {.size = sizeof options, .path = path};
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(1000000); /* 16 MB; past the limit the kernel would kill with SIGXFSZ */
  check_sums(1000000);
  const prof_health health = health_now();
  check(health.is_full == 1, "is_full is %u", health.is_full);
  check(health.recorded_count > 100000, "only %" PRIu64 " recorded", health.recorded_count);
  check(health.lost_count[PROF_LOSS_DISK] + health.lost_count[PROF_LOSS_FULL] > 0,
        "no loss is counted");
  check_status(prof_dump(path), PROF_E_NO_SPACE);
  check(strstr(prof_last_error(), "4194304") && strstr(prof_last_error(), path), "no values");
  check(size_of(path) == -1, "a partial file of %ld bytes", (long)size_of(path));
  limit(RLIMIT_FSIZE, RLIM_INFINITY);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(path), PROF_OK);
  check(size_of(path) > 4 << 20, "%ld bytes", (long)size_of(path));
  check(unlink(path) == 0 && entries_in(folder) == 0, "files were left");
  return 0;
}

static int file_size_limit_after_the_start(void) {
  char path[PATH_ROOM];
  snprintf(path, sizeof path, "%s/limited.json.gz", folder);
  const prof_options options = {.size = sizeof options, .path = path, .cap_bytes = 64 << 20};
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(100000);
  limit(RLIMIT_FSIZE, 2 << 20);
  record_scopes(400000);
  check_sums(500000);
  check(health_now().lost_count[PROF_LOSS_DISK] > 0, "no loss is counted");
  check_status(prof_stop(), PROF_OK);
  limit(RLIMIT_FSIZE, RLIM_INFINITY);
  check_status(prof_dump(NULL), PROF_OK);
  check(unlink(path) == 0 && entries_in(folder) == 0, "files were left");
  return 0;
}

static int file_size_limit_in_memory(void) {
  limit(RLIMIT_FSIZE, 3 << 20); /* memfds too: past it the kernel kills */
  check_status(prof_start(1), PROF_OK);
  prof_health health = health_now();
  check(health.cap_bytes <= 3 << 20, "the cap is %" PRIu64, health.cap_bytes);
  check(strstr(health.reason, "RLIMIT_FSIZE"), "the reason is '%s'", health.reason);
  record_scopes(500000);
  check_sums(500000);
  check_status(prof_stop(), PROF_OK);
  limit(RLIMIT_FSIZE, 0);
  const prof_options others = {.size = sizeof others, .policy = PROF_POLICY_RING};
  check_status(prof_start_with(&others), PROF_E_NO_SPACE);
  check(strstr(prof_last_error(), "RLIMIT_FSIZE"), "no cause");
  check(prof_level() == 0, "the level is %d", prof_level());
  check_sums(500000); /* the capture before it is still there */
  return 0;
}

static void check_says(const char *reason, const char *text) {
  check(strstr(reason, text), "'%s' is not in the reason '%s'", text, reason);
}

static int little_address_space(void) {
  long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  check(file && fscanf(file, "%ld", &pages) == 1, "no /proc/self/statm");
  fclose(file);
  /* the call sites' tables alone ask for more */
  limit(RLIMIT_AS, (rlim_t)pages * 4096 + (48 << 20));
  const int status = prof_start(1);
  check(status == PROF_OK || status == PROF_E_NO_MEMORY, "start is %s", prof_status_name(status));
  if (status != PROF_OK) return 0;
  record_scopes(1000);
  WITH_BASE_PROFILER(PROF_HOST, "other", "x", PROF_ARGS("n", 1), {});
  check_status(prof_stop(), PROF_OK);
  const prof_health health = health_now();
  check(health.recorded_count + health_lost(&health) == 1001, "%" PRIu64 " recorded",
        health.recorded_count);
  limit(RLIMIT_AS, RLIM_INFINITY);
  uint64_t count = 0;
  check_status(prof_get_duration("scope", "x", NULL, &count), PROF_OK);
  check(count + 1 == health.recorded_count, "%" PRIu64 " of %" PRIu64 " have their name", count,
        health.recorded_count);
  return 0;
}

static int little_address_space_for_the_arena(void) {
  long pages = 0;
  FILE *const file = fopen("/proc/self/statm", "r");
  check(file && fscanf(file, "%ld", &pages) == 1, "no /proc/self/statm");
  fclose(file);
  limit(RLIMIT_AS, (rlim_t)pages * 4096 + (200 << 20)); /* less than the default cap of 256 MiB */
  check_status(prof_start(1), PROF_OK);
  const prof_health health = health_now();
  check(health.cap_bytes < 200 << 20, "the cap is %" PRIu64, health.cap_bytes);
  check_says(health.reason, "RLIMIT_AS is ");
  check_says(health.reason, "ulimit -v");
  record_scopes(1000);
  check_sums(1000);
  return 0;
}

/* The kernel locks all that is mapped from now on. MCL_CURRENT would be more than the limit. */
static int little_locked_memory(void) {
  enum { LIMIT = 8 << 20 };
  if (WITH_ASAN || WITH_TSAN) return skip_part("sanitizers make mlockall() do nothing");
  char number[32];
  if (setrlimit(RLIMIT_MEMLOCK, &(const struct rlimit){LIMIT, LIMIT}) != 0)
    return skip_part("no 8 MiB may be locked");
  check(geteuid() != 0 || setresuid(65534, 65534, 65534) == 0, "cannot give up being root");
  check(mlockall(MCL_FUTURE) == 0, "mlockall: errno %d", errno);
  const prof_options options = {.size = sizeof options, .cap_bytes = 64 << 20};
  check_status(prof_start_with(&options), PROF_OK);
  const prof_health health = health_now();
  check(health.cap_bytes <= LIMIT, "the cap is %" PRIu64, health.cap_bytes);
  snprintf(number, sizeof number, "%" PRIu64 " bytes", health.cap_bytes);
  check_says(health.reason, number);
  check_says(health.reason, "67108864");
  check_says(health.reason, "RLIMIT_MEMLOCK is 8388608 bytes");
  check_says(health.reason, "ulimit -l");
  record_scopes(1000);
  check_sums(1000);
  return 0;
}

/* A file system of its own, if this process may mount one. */
static int mount_small(const char *at, const char *size) {
  if (unshare(CLONE_NEWNS) != 0) return 0;
  if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0) return 0;
  return mkdir(at, 0755) == 0 && mount("none", at, "tmpfs", 0, size) == 0;
}

static int a_full_disk(void) {
  char disk[PATH_ROOM / 2], path[PATH_ROOM], elsewhere[PATH_ROOM];
  snprintf(disk, sizeof disk, "%s/disk", folder);
  snprintf(path, sizeof path, "%s/trace.json", disk);
  snprintf(elsewhere, sizeof elsewhere, "%s/trace.json", folder);
  if (!mount_small(disk, "size=12m"))
    return skip_part("this user may not mount a small file system to fill");
  const prof_options options = {.size = sizeof options, .path = path};
  check_status(prof_start_with(&options), PROF_OK);
  check(health_now().survives_kill == 1, "not in a file: %s", health_now().reason);
  record_scopes(2000000); /* 32 MB */
  check_sums(2000000);
  const prof_health health = health_now();
  check(health.is_full == 1 && health.lost_count[PROF_LOSS_DISK] > 0, "no loss by the disk");
  check(health.recorded_count > 300000, "only %" PRIu64 " recorded", health.recorded_count);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(NULL), PROF_E_NO_SPACE);
  check(strstr(prof_last_error(), path), "no path");
  check(size_of(path) == -1, "a partial file of %ld bytes", (long)size_of(path));
  check(entries_in(disk) == 1, "%d files on the disk, not the capture alone", entries_in(disk));
  check_status(prof_dump(elsewhere), PROF_OK);
  check(entries_in(disk) == 0, "the capture was left");
  check(unlink(elsewhere) == 0, "%s", elsewhere);
  umount(disk);
  rmdir(disk);
  return 0;
}

static int a_disk_without_room_for_a_capture(void) {
  char disk[PATH_ROOM / 2], path[PATH_ROOM];
  snprintf(disk, sizeof disk, "%s/disk", folder);
  snprintf(path, sizeof path, "%s/trace.json", disk);
  if (!mount_small(disk, "size=2m"))
    return skip_part("this user may not mount a small file system");
  const prof_options options = {.size = sizeof options, .path = path};
  check_status(prof_start_with(&options), PROF_OK);
  const prof_health health = health_now();
  check(strstr(health.reason, disk), "the reason does not name the disk: '%s'", health.reason);
  record_scopes(100);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(NULL), PROF_OK);
  check(entries_in(disk) == 1, "%d files, not the trace alone", entries_in(disk));
  umount(disk);
  rmdir(disk);
  return 0;
}

static int a_read_only_file_system(void) {
  char disk[PATH_ROOM / 2], path[PATH_ROOM];
  snprintf(disk, sizeof disk, "%s/disk", folder);
  snprintf(path, sizeof path, "%s/trace.json", disk);
  if (!mount_small(disk, "size=2m") || mount("none", disk, NULL, MS_REMOUNT | MS_RDONLY, NULL) != 0)
    return skip_part("this user may not mount a file system read-only");
  const prof_options options = {.size = sizeof options, .path = path};
  check_status(prof_start_with(&options), PROF_E_PERMISSION);
  check(strstr(prof_last_error(), disk), "no path");
  check_status(prof_start(1), PROF_OK);
  check_status(prof_dump(path), PROF_E_PERMISSION);
  check(strstr(prof_last_error(), path), "no path");
  umount(disk);
  rmdir(disk);
  return 0;
}

/* root may write everywhere, so it becomes somebody else first. */
static int an_unwritable_directory(void) {
  char locked[PATH_ROOM / 2], path[PATH_ROOM];
  snprintf(locked, sizeof locked, "%s/locked", folder);
  snprintf(path, sizeof path, "%s/trace.json", locked);
  check(mkdir(locked, 0555) == 0, "%s", strerror(errno));
  check(chmod(folder, 0755) == 0, "%s", strerror(errno));
  if (geteuid() == 0 && setresuid(65534, 65534, 65534) != 0) {
    rmdir(locked);
    return skip_part("root cannot become another user here");
  }
  const prof_options options = {.size = sizeof options, .path = path};
  check_status(prof_start_with(&options), PROF_E_PERMISSION);
  check(strstr(prof_last_error(), locked), "no path");
  check(prof_level() == 0, "the level is %d", prof_level());
  check_status(prof_start(1), PROF_OK);
  record_scopes(5);
  check_status(prof_dump(path), PROF_E_PERMISSION);
  check(strstr(prof_last_error(), path), "no path");
  check_sums(5);
  return 0;
}

/* The host closes what it does not know, and its own files get our numbers. */
static int descriptors_closed_by_the_host(void) {
  enum { FILES = 16, BYTES = 1000 };
  char path[PATH_ROOM], name[PATH_ROOM], text[BYTES], back[BYTES + 1];
  int files[FILES];
  snprintf(path, sizeof path, "%s/closed.json", folder);
  const prof_options options = {.size = sizeof options, .path = path, .cap_bytes = 64 << 20};
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(1000);
  if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0)
    for (int fd = 3; fd < 1024; fd++) close(fd);
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "%s/host-%d", folder, i);
    files[i] = open(name, O_RDWR | O_CREAT | O_EXCL, 0600);
    memset(text, 'a' + i, sizeof text);
    check(files[i] >= 3 && files[i] < 3 + FILES, "descriptor %d", files[i]);
    check(write(files[i], text, sizeof text) == BYTES, "%s", strerror(errno));
  }
  record_scopes(1000000);
  check_sums(1001000);
  check(health_now().recorded_count == 1001000, "lost %" PRIu64,
        1001000 - health_now().recorded_count);
  check_status(prof_clear(), PROF_OK);
  record_scopes(100000);
  check_status(prof_dump(NULL), PROF_OK);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(NULL), PROF_OK);
  /* gives the arena up: nothing of the host's may be closed */
  check_status(prof_start_with(NULL), PROF_OK);
  check_status(prof_stop(), PROF_OK);
  for (int i = 0; i < FILES; i++) {
    snprintf(name, sizeof name, "%s/host-%d", folder, i);
    check(fcntl(files[i], F_GETFD) >= 0, "the host's descriptor %d is closed", files[i]);
    check(size_of(name) == BYTES, "%s has %ld bytes", name, (long)size_of(name));
    check(lseek(files[i], 0, SEEK_CUR) == BYTES, "its position was moved to %ld",
          (long)lseek(files[i], 0, SEEK_CUR));
    memset(text, 'a' + i, sizeof text);
    check(pread(files[i], back, sizeof back, 0) == BYTES && memcmp(back, text, BYTES) == 0,
          "%s was written to", name);
    check(unlink(name) == 0, "%s", name);
  }
  check(unlink(path) == 0 && entries_in(folder) == 0, "files were left");
  return 0;
}

static long resident_kib(void) {
  struct rusage usage;
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

static int a_million_distinct_names(void) {
  enum { NAMES = 1000000, CAP_MIB = 16 };
  const prof_options options = {.size = sizeof options, .cap_bytes = CAP_MIB << 20};
  char name[64];
  check_status(prof_start_with(&options), PROF_OK);
  const long before = resident_kib();
  for (int i = 0; i < NAMES; i++) {
    snprintf(name, sizeof name, "name number %d of many", i);
    WITH_BASE_PROFILER(PROF_HOST, name, "x", PROF_ARGS("text", name), {});
  }
  const long grown = resident_kib() - before;
  check_status(prof_stop(), PROF_OK);
  const prof_health health = health_now();
  check(health.recorded_count + health_lost(&health) == NAMES, "%" PRIu64 " + %" PRIu64,
        health.recorded_count, health_lost(&health));
  check(health.lost_count[PROF_LOSS_FULL] > 0 && health.is_full == 1, "not full");
  check(health.arena_bytes <= CAP_MIB << 20, "%" PRIu64 " bytes", health.arena_bytes);
  check(health.sites_count < 100, "%u call sites", health.sites_count);
  if (!WITH_ASAN && !WITH_TSAN) /* which keep memory of their own beside it */
    check(grown < (CAP_MIB + 8) * 1024, "resident memory grew by %ld KiB", grown);
  return 0;
}

static void expect_part(const char *name) {
  char said[4096];
  const int status = run_part(name, NULL, said, sizeof said);
  if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
    print_message("%s", said);
    skip();
  }
  if (WIFSIGNALED(status)) fail_msg("%s ended by signal %d: %s", name, WTERMSIG(status), said);
  if (status != 0) fail_msg("%s: %s", name, said);
}

#define RUNS_AS_PART(name)                \
  static void test_##name(void **state) { \
    (void)state;                          \
    expect_part(#name);                   \
  }

RUNS_AS_PART(file_size_limit_before_the_start)

RUNS_AS_PART(file_size_limit_after_the_start)

RUNS_AS_PART(file_size_limit_in_memory)

RUNS_AS_PART(little_address_space)

RUNS_AS_PART(little_address_space_for_the_arena)

RUNS_AS_PART(little_locked_memory)

RUNS_AS_PART(a_full_disk)

RUNS_AS_PART(a_disk_without_room_for_a_capture)

RUNS_AS_PART(a_read_only_file_system)

RUNS_AS_PART(an_unwritable_directory)

RUNS_AS_PART(descriptors_closed_by_the_host)

RUNS_AS_PART(a_million_distinct_names)

static const part parts[] = {
    PART(file_size_limit_before_the_start),
    PART(file_size_limit_after_the_start),
    PART(file_size_limit_in_memory),
    PART(little_address_space),
    PART(little_address_space_for_the_arena),
    PART(little_locked_memory),
    PART(a_full_disk),
    PART(a_disk_without_room_for_a_capture),
    PART(a_read_only_file_system),
    PART(an_unwritable_directory),
    PART(descriptors_closed_by_the_host),
    PART(a_million_distinct_names),
};

int main(int argc, char **argv) {
  if (is_part(argc, argv)) return run_as_part(parts, COUNT_OF(parts), argv);
  const struct CMUnitTest tests[] = {
      TEST(test_an_unwritable_directory),
      TEST(test_a_read_only_file_system),
      TEST(test_a_disk_without_room_for_a_capture),
      TEST(test_a_full_disk),
      TEST(test_file_size_limit_before_the_start),
      TEST(test_file_size_limit_after_the_start),
      TEST(test_file_size_limit_in_memory),
      TEST(test_little_address_space),
      TEST(test_little_address_space_for_the_arena),
      TEST(test_little_locked_memory),
      TEST(test_descriptors_closed_by_the_host),
      TEST(test_a_million_distinct_names),
  };
  return cmocka_run_group_tests_name("limits", tests, make_folder, remove_folder);
}
