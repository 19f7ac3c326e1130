/* Bad paths, full disks, limits, hostile names, a host that closes our descriptors, wrong
   environment. Each call returns a status and a text with the values, and leaves the host as
   before. Each loss is counted. No partial file has the final name.

   What needs limits or a process of its own runs as "PROGRAM --part NAME", and says on stderr what
   went wrong. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "events.h"
#include "sanitizers.h"

enum { SKIPPED = 77, PATH_ROOM = 512 };

static char folder[] = "/tmp/prof-bad-XXXXXX"; /* of a part: where it was started */

/* ---- parts: processes of their own ---- */

/* In a part: says why and ends it. */
#define check(condition, ...)                                         \
  do {                                                                \
    if (!(condition)) {                                               \
      fprintf(stderr, "%s:%d: %s: ", __FILE__, __LINE__, #condition); \
      fprintf(stderr, __VA_ARGS__);                                   \
      fprintf(stderr, "; last error: %s\n", prof_last_error());       \
      exit(1);                                                        \
    }                                                                 \
  } while (0)
#define check_status(expression, wanted)                                           \
  do {                                                                             \
    const int got = (expression);                                                  \
    check(got == (wanted), "%s is %s, not %s", #expression, prof_status_name(got), \
          prof_status_name(wanted));                                               \
  } while (0)

static int skip_part(const char *why) {
  fprintf(stderr, "skip: %s\n", why);
  return SKIPPED;
}

static prof_health health_now(void) {
  prof_health health = {.size = sizeof health};
  check_status(prof_health(&health), PROF_OK);
  return health;
}

static uint64_t lost_in(const prof_health *health) {
  uint64_t lost = 0;
  for (int i = 0; i < PROF_LOSS_COUNT; i++) lost += health->lost_count[i];
  return lost;
}

static void record_scopes(uint64_t count) {
  for (uint64_t i = 0; i < count; i++)
    WITH_BASE_PROFILER(PROF_HOST, "scope", "x", PROF_NO_ARGS, {});
}

/* Recorded and lost make up what was attempted, and the dump has all that was recorded. */
static void check_sums(uint64_t attempted) {
  const prof_health health = health_now();
  const uint64_t lost = lost_in(&health);
  check(health.recorded_count + lost == attempted, "%" PRIu64 " + %" PRIu64 " != %" PRIu64,
        health.recorded_count, lost, attempted);
  uint64_t count = 0;
  check_status(prof_get_duration("scope", NULL, NULL, &count), PROF_OK);
  check(count == health.recorded_count, "%" PRIu64 " are read, %" PRIu64 " recorded", count,
        health.recorded_count);
}

/* A macro: the type of the first argument differs between C libraries. */
#define limit(which, bytes)                                                          \
  check(setrlimit(which, &(const struct rlimit){(bytes), RLIM_INFINITY}) == 0, "%s", \
        strerror(errno))

static off_t size_of(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? about.st_size : -1;
}

static int entries_in(const char *path) {
  char command[PATH_ROOM + 32], line[64] = "";
  snprintf(command, sizeof command, "ls -A '%s' | wc -l", path);
  FILE *const pipe = popen(command, "r");
  check(pipe && fgets(line, sizeof line, pipe), "%s", command);
  pclose(pipe);
  return atoi(line);
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
  check(health.recorded_count + lost_in(&health) == 1001, "%" PRIu64 " recorded",
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
  check(health.recorded_count + lost_in(&health) == NAMES, "%" PRIu64 " + %" PRIu64,
        health.recorded_count, lost_in(&health));
  check(health.lost_count[PROF_LOSS_FULL] > 0 && health.is_full == 1, "not full");
  check(health.arena_bytes <= CAP_MIB << 20, "%" PRIu64 " bytes", health.arena_bytes);
  check(health.sites_count < 100, "%u call sites", health.sites_count);
  if (!WITH_ASAN && !WITH_TSAN) /* which keep memory of their own beside it */
    check(grown < (CAP_MIB + 8) * 1024, "resident memory grew by %ld KiB", grown);
  return 0;
}

/* The host's own program, with prof linked and told by its environment to record. */
static int program(void) {
  record_scopes(100);
  return 0;
}

static int program_in_little_space(void) {
  if (WITH_ASAN || WITH_TSAN) return skip_part("a sanitizer needs address space");
  limit(RLIMIT_AS, 1 << 30);
  execl("/proc/self/exe", "test_bad_input", "--part", "program", folder, (char *)NULL);
  return 1;
}
static int program_that_starts_otherwise(void) {
  record_scopes(100);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_start_with(NULL), PROF_OK); /* no path: nothing to write at exit */
  record_scopes(100);
  return 0;
}

/* PROF_LEVEL is the least level, as long as its recording lasts. */
static int program_that_asks_for_less(void) {
  check(prof_level() == 2, "the level is %d", prof_level());
  check_status(prof_start(1), PROF_OK);
  check(prof_level() == 2, "the level is %d after prof_start(1)", prof_level());
  check_status(prof_stop(), PROF_OK);
  check_status(prof_start(1), PROF_OK);
  check(prof_level() == 1, "the level is %d in a recording of the program's", prof_level());
  check_status(prof_start(2), PROF_OK);
  check_status(prof_start(1), PROF_OK);
  check(prof_level() == 1, "the level is %d, and was 2 before", prof_level());
  return 0;
}

static const struct {
  const char *name;
  int (*run)(void);
} parts[] = {
#define PART(name) \
  { #name, name }
    PART(file_size_limit_before_the_start),
    PART(file_size_limit_after_the_start),
    PART(file_size_limit_in_memory),
    PART(little_address_space),
    PART(little_address_space_for_the_arena),
    PART(little_locked_memory),
    PART(program_in_little_space),
    PART(a_full_disk),
    PART(a_disk_without_room_for_a_capture),
    PART(a_read_only_file_system),
    PART(an_unwritable_directory),
    PART(descriptors_closed_by_the_host),
    PART(a_million_distinct_names),
    PART(program),
    PART(program_that_starts_otherwise),
    PART(program_that_asks_for_less),
#undef PART
};

/* ---- running a part ---- */

/* Runs it with these variables ("NAME=value", at most three); what it said on stderr comes back.
   Returns its wait status. */
static int run_part(const char *name, const char *const *variables, char *said, size_t room) {
  int ends[2];
  assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    dup2(ends[1], STDERR_FILENO);
    for (; variables && *variables; variables++) putenv((char *)(uintptr_t)*variables);
    execl("/proc/self/exe", "test_bad_input", "--part", name, folder, (char *)NULL);
    _exit(126);
  }
  close(ends[1]);
  size_t used = 0;
  for (ssize_t more; used + 1 < room && (more = read(ends[0], said + used, room - 1 - used)) > 0;)
    used += (size_t)more;
  said[used] = '\0';
  close(ends[0]);
  int status = -1;
  while (waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
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

/* ---- paths ---- */

static void bad_paths_are_refused_with_their_name(void **state) {
  (void)state;
  char file[PATH_ROOM], missing[PATH_ROOM], below_file[PATH_ROOM], fifo[PATH_ROOM],
      socket_path[PATH_ROOM], long_name[PATH_ROOM + 300];
  static char very_long[5001];
  char letters[301];
  memset(letters, 'n', sizeof letters - 1);
  letters[sizeof letters - 1] = '\0';
  memset(very_long, 'd', sizeof very_long - 1);
  for (size_t i = 0; i < sizeof very_long - 1; i += 100) very_long[i] = '/';
  snprintf(file, sizeof file, "%s/file", folder);
  snprintf(missing, sizeof missing, "%s/missing/trace.json", folder);
  snprintf(below_file, sizeof below_file, "%s/file/trace.json", folder);
  snprintf(fifo, sizeof fifo, "%s/fifo", folder);
  snprintf(socket_path, sizeof socket_path, "%s/socket", folder);
  snprintf(long_name, sizeof long_name, "%s/%s.json", folder, letters);
  assert_int_equal(close(open(file, O_WRONLY | O_CREAT, 0600)), 0);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  memcpy(address.sun_path, socket_path, strlen(socket_path) + 1);
  const int socket_fd = socket(AF_UNIX, SOCK_STREAM, 0);
  assert_int_equal(bind(socket_fd, (const struct sockaddr *)&address, sizeof address), 0);
  const struct {
    const char *path;
    int start_status, dump_status;
    const char *text; /* that the error has; NULL: the path */
  } bad[] = {
      {missing, PROF_E_NOT_FOUND, PROF_E_NOT_FOUND, NULL},
      {below_file, PROF_E_NOT_FOUND, PROF_E_NOT_FOUND, NULL},
      {folder, PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {"/dev/full", PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {"/dev/zero", PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {fifo, PROF_E_FILE_TYPE, PROF_E_IO, NULL}, /* nobody reads: waiting would stop the program */
      {socket_path, PROF_E_FILE_TYPE, PROF_E_FILE_TYPE, NULL},
      {very_long, PROF_E_INVALID, PROF_E_INVALID, "4095"},
      {long_name, PROF_E_INVALID, PROF_E_INVALID, "nnnn"},
      {"", PROF_E_INVALID, PROF_E_INVALID, "empty"},
  };
  for (int recording = 0; recording < 2; recording++) {
    events_record(1);
    record_scopes(3);
    if (!recording) assert_status(prof_stop(), PROF_OK);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
      const prof_options options = {.size = sizeof options, .path = bad[i].path};
      int status = prof_start_with(&options);
      if (status != (recording && *bad[i].path && strlen(bad[i].path) < 4096 ? PROF_E_RUNNING
                     : recording                                             ? status
                                                                             : bad[i].start_status))
        fail_msg("start to '%.80s': %s, not %s: %s", bad[i].path, prof_status_name(status),
                 prof_status_name(bad[i].start_status), prof_last_error());
      if (!recording) assert_error_has(bad[i].text ? bad[i].text : bad[i].path);
      status = prof_dump(bad[i].path);
      if (status != bad[i].dump_status)
        fail_msg("dump to '%.80s': %s, not %s: %s", bad[i].path, prof_status_name(status),
                 prof_status_name(bad[i].dump_status), prof_last_error());
      assert_error_has(bad[i].text ? bad[i].text : bad[i].path);
      assert_int_equal(prof_level(), recording);
      assert_int_equal(health_now().recorded_count, 3);
    }
    if (recording) assert_status(prof_stop(), PROF_OK);
  }
  close(socket_fd);
  unlink(file);
  unlink(fifo);
  unlink(socket_path);
  assert_int_equal(entries_in(folder), 0);
}

/* The longest name that a file system takes: the capture beside it needs a longer one, and finds a
   way. */
static void the_longest_name_works(void **state) {
  (void)state;
  char path[PATH_ROOM], letters[256];
  memset(letters, 'n', sizeof letters - 1);
  letters[sizeof letters - 1] = '\0';
  snprintf(path, sizeof path, "%s/%s", folder, letters);
  const prof_options options = {.size = sizeof options, .path = path, .cap_bytes = 8 << 20};
  assert_status(prof_start_with(&options), PROF_OK);
  record_scopes(3);
  assert_int_equal(health_now().survives_kill, 1);
  assert_status(prof_stop(), PROF_OK);
  assert_status(prof_dump(NULL), PROF_OK);
  assert_int_equal(unlink(path), 0);
  assert_int_equal(entries_in(folder), 0);
  assert_status(prof_start_with(NULL), PROF_OK);
  assert_status(prof_stop(), PROF_OK);
}

static void what_is_no_capture_is_not_opened(void **state) {
  (void)state;
  char empty[PATH_ROOM], text[PATH_ROOM], missing[PATH_ROOM], below_file[PATH_ROOM + 16],
      fifo[PATH_ROOM];
  static char very_long[5001];
  memset(very_long, 'l', sizeof very_long - 1);
  snprintf(empty, sizeof empty, "%s/empty.prof", folder);
  snprintf(text, sizeof text, "%s/text.prof", folder);
  snprintf(missing, sizeof missing, "%s/missing.prof", folder);
  snprintf(below_file, sizeof below_file, "%s/x.prof", text);
  snprintf(fifo, sizeof fifo, "%s/fifo.prof", folder);
  assert_int_equal(close(open(empty, O_WRONLY | O_CREAT, 0600)), 0);
  assert_int_equal(mkfifo(fifo, 0600), 0);
  FILE *const file = fopen(text, "w");
  for (int i = 0; i < 10000; i++) fputs("no capture ", file);
  fclose(file);
  const struct {
    const char *path;
    int status;
    const char *text; /* that the error has */
  } bad[] = {{missing, PROF_E_NOT_FOUND, missing},
             {below_file, PROF_E_NOT_FOUND, below_file},
             {folder, PROF_E_FILE_TYPE, folder},
             {"/dev/zero", PROF_E_FILE_TYPE, "/dev/zero"},
             {fifo, PROF_E_FILE_TYPE, fifo},
             {empty, PROF_E_TRUNCATED, "0 bytes"},
             {text, PROF_E_NOT_CAPTURE, "not a capture"},
             {"", PROF_E_NOT_FOUND, ""},
             {very_long, PROF_E_INVALID, "llll"}};
  for (size_t i = 0; i < COUNT_OF(bad); i++) {
    prof_trace *trace = NULL;
    const int status = prof_trace_open(bad[i].path, &trace);
    if (status != bad[i].status)
      fail_msg("opening '%.80s': %s, not %s: %s", bad[i].path, prof_status_name(status),
               prof_status_name(bad[i].status), prof_last_error());
    assert_null(trace);
    assert_error_has(bad[i].text);
  }
}

/* ---- names ---- */

static void hostile_names_are_kept_or_cut_and_the_json_stays_valid(void **state) {
  (void)state;
  enum { MIB = 1 << 20 };
  char *const huge = malloc(MIB + 1);
  memset(huge, 'h', MIB);
  huge[MIB] = '\0';
  static const char *const names[] = {"",
                                      "\xff\xfe\xfd",
                                      "\xc0\xaf",
                                      "\xed\xa0\x80",
                                      "\xf4\x90\x80\x80",
                                      "cut \xe2\x82",
                                      "\"quoted\"",
                                      "back\\slash",
                                      "tab\tline\nbell\a",
                                      "\x7f\x1b[31m",
                                      "</script>",
                                      "%s%n%d",
                                      ("\xef\xbb\xbf"
                                       "mark"),
                                      "\xf0\x9f\x92\xa9 fine"};
  events_record(1);
  for (size_t i = 0; i < COUNT_OF(names); i++) {
    WITH_BASE_PROFILER(PROF_HOST, names[i], names[i], PROF_ARGS("text", names[i]), {});
    WITH_BASE_PROFILER(PROF_HOST, "args", "x", PROF_FMT("%s", names[i]), {});
    PROF_INSTANT(names[i], names[i], PROF_NO_ARGS);
    prof_flow_begin(i, names[i]);
  }
  WITH_BASE_PROFILER(PROF_HOST, huge, "x", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "huge category", huge, PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "huge argument", "x", PROF_ARGS("text", huge, "n", 5), {});
  PROF_INSTANT(huge, huge, PROF_ARGS("text", huge));
  assert_status(prof_thread_set_name(huge), PROF_OK);
  assert_status(prof_process_set_name("\xff\"\n"), PROF_OK);
  events_stop_and_read();
  assert_event_total(4 * COUNT_OF(names) + 4);
  assert_int_equal(health_now().cut_text_count, 4);
  size_t cut = 0;
  for (size_t i = 0; i < events.count; i++) {
    const prof_event *const e = &events.items[i].e;
    cut += (e->flags & PROF_EVENT_CUT) != 0;
    assert_in_range(e->name_bytes, 0, 16384);
    assert_in_range(e->category_bytes, 0, 16384);
  }
  assert_int_equal(cut, 4);
  const seen_event *const argument = only_event("huge argument");
  assert_int_equal(argument->e.arg_count, 1); /* the text, cut; nothing is made up behind it */
  assert_in_range(argument->e.args[0].value.text.bytes, 8000, 16384);

  char *text = NULL;
  size_t bytes = 0;
  assert_status(prof_get_json(&text, &bytes), PROF_OK);
  assert_int_equal(strlen(text), bytes);
  for (size_t i = 0; i < bytes;) { /* well-formed UTF-8, and no control character but line ends */
    const unsigned char c = (unsigned char)text[i];
    const size_t more = c < 0x80                ? 0
                        : c >= 0xc2 && c < 0xe0 ? 1
                        : c >= 0xe0 && c < 0xf0 ? 2
                        : c >= 0xf0 && c < 0xf5 ? 3
                                                : 9;
    if (more == 9 || (c < 0x20 && c != '\n'))
      fail_msg("byte %zu is 0x%02x: %.40s", i, c, text + (i > 20 ? i - 20 : 0));
    for (size_t k = 1; k <= more; k++)
      if (((unsigned char)text[i + k] & 0xc0) != 0x80)
        fail_msg("byte %zu is 0x%02x", i + k, (unsigned char)text[i + k]);
    i += 1 + more;
  }
  prof_free(text);
  free(huge);
  assert_status(prof_thread_set_name("main"), PROF_OK);
  assert_status(prof_process_set_name("test"), PROF_OK);
}

/* ---- ends that no begin made ---- */

static void ends_without_a_begin_change_nothing_but_the_count_of_strays(void **state) {
  (void)state;
  static const uint64_t never[] = {
      12345, 1, 15, 16, UINT64_MAX, UINT64_MAX - 15, (uint64_t)1 << 63};
  prof_scope_end(12345);
  events_record(1);
  prof_health health = health_now();
  const uint64_t before = lost_in(&health), strays = health.stray_count;
  for (size_t i = 0; i < COUNT_OF(never); i++) prof_scope_end(never[i]);
  WITH_BASE_PROFILER(PROF_HOST, "around", "x", PROF_NO_ARGS, {
    for (size_t i = 0; i < COUNT_OF(never); i++) prof_scope_end(never[i]);
  });
  const uint64_t twice = prof_scope_begin(1, "twice", "x", NULL);
  prof_scope_end(twice);
  prof_scope_end(twice);
  const uint64_t outer = prof_scope_begin(1, "outer", "x", NULL);
  const uint64_t later = prof_scope_begin(1, "later", "x", NULL);
  prof_scope_end(outer); /* not nested: both stand */
  prof_scope_end(later);
  health = health_now();
  assert_int_equal(lost_in(&health), before);
  assert_int_equal(health.stray_count, strays + 2 * COUNT_OF(never) + 1);
  assert_int_equal(health.recorded_count, 4);
  events_stop_and_read();
  assert_int_equal(events.count, 4);
  only_event("later");
  only_event("around");
  only_event("twice");
  assert_int_equal(only_event("outer")->e.depth, 0);
  prof_scope_end(12345);
}

/* ---- the environment ---- */

static void wrong_variables_are_one_line_and_the_program_runs_on(void **state) {
  (void)state;
  char missing[PATH_ROOM], directory[PATH_ROOM];
  snprintf(missing, sizeof missing, "PROF_OUTPUT=%s/missing/trace.json", folder);
  snprintf(directory, sizeof directory, "PROF_OUTPUT=%s", folder);
  const struct {
    const char *variables[4];
    const char *named, *value;
  } wrong[] = {
      {{"PROF_LEVEL=7"}, "PROF_LEVEL", "7"},
      {{"PROF_LEVEL=x"}, "PROF_LEVEL", "x"},
      {{"PROF_LEVEL=-1"}, "PROF_LEVEL", "-1"},
      {{"PROF_LEVEL=1x"}, "PROF_LEVEL", "1x"},
      {{"PROF_LEVEL=99999999999999999999"}, "PROF_LEVEL", "99999999999999999999"},
      {{"PROF_MEMORY=2"}, "PROF_MEMORY", "2"},
      {{"PROF_MEMORY=1", "PROF_MEMORY_MIN=4k"}, "PROF_MEMORY_MIN", "4k"},
      {{"PROF_MEMORY=1", missing}, "PROF_OUTPUT", "missing"},
      {{"PROF_LEVEL=1", missing}, "PROF_OUTPUT", "missing"},
      {{"PROF_LEVEL=1", directory}, "PROF_OUTPUT", folder},
      {{"PROF_LEVEL=1", "PROF_POLICY=best"}, "PROF_POLICY", "best"},
      {{"PROF_LEVEL=1", "PROF_POLICY=stream"}, "PROF_POLICY", "stream"},
      {{"PROF_LEVEL=1", "PROF_CLOCK=sundial"}, "PROF_CLOCK", "sundial"},
      {{"PROF_LEVEL=1", "PROF_CAP_BYTES=12"}, "PROF_CAP_BYTES", "12"},
      {{"PROF_LEVEL=1", "PROF_HELPER_THREAD=yes"}, "PROF_HELPER_THREAD", "yes"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_PERMILLE=1001"}, "PROF_BUDGET_PERMILLE", "1001"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_EVENTS=many"}, "PROF_BUDGET_EVENTS", "many"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_ACTION=stop"}, "PROF_BUDGET_ACTION", "stop"},
      {{"PROF_LEVEL=1", "PROF_BUDGET_EVENTS=18446744073709551616"},
       "PROF_BUDGET_EVENTS",
       "18446744073709551616"},
      {{"PROF_LEVEL=1", "PROF_MUTE=a,,b"}, "PROF_MUTE", "a,,b"},
      {{"PROF_LEVEL=1", "PROF_MUTE=a, @"}, "PROF_MUTE", "'@' is empty"},
  };
  for (size_t i = 0; i < COUNT_OF(wrong); i++) {
    char said[4096];
    const int status = run_part("program", wrong[i].variables, said, sizeof said);
    const char *const end = strchr(said, '\n');
    if (status != 0 || strncmp(said, "prof: ", 6) != 0 || !end || end[1] != '\0' ||
        !strstr(said, wrong[i].named) || !strstr(said, wrong[i].value))
      fail_msg("%s %s: status %x, said '%s'; wanted is one line with %s and %s",
               wrong[i].variables[0], wrong[i].variables[1] ? wrong[i].variables[1] : "",
               (unsigned)status, said, wrong[i].named, wrong[i].value);
  }
  assert_int_equal(entries_in(folder), 0);
}

static int file_has(const char *path, const char *text) {
  static char bytes[65536];
  FILE *const file = fopen(path, "r");
  assert_non_null(file);
  bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
  fclose(file);
  return strstr(bytes, text) != NULL;
}

static void right_variables_record_without_a_word(void **state) {
  (void)state;
  char output[PATH_ROOM], said[4096];
  snprintf(output, sizeof output, "PROF_OUTPUT=%s/env.json", folder);
  const char *const variables[] = {"PROF_LEVEL=2", output, "PROF_POLICY=stream", NULL};
  assert_int_equal(run_part("program", variables, said, sizeof said), 0);
  assert_string_equal(said, "");
  const char *const path = strchr(output, '=') + 1;
  assert_true(size_of(path) > 1000);
  assert_int_equal(unlink(path), 0);
  const char *const muted[] = {"PROF_LEVEL=2",
                               output,
                               "PROF_MUTE=@nothing, sco*@x ,nobody,a\\,b@c,at\\@d\\\\,n\\e",
                               "PROF_BUDGET_PERMILLE=10",
                               "PROF_BUDGET_ACTION=mute",
                               NULL};
  assert_int_equal(run_part("program", muted, said, sizeof said), 0);
  assert_string_equal(
      said,
      "prof: PROF_MUTE: no scope was named 'n\\e', 'at@d\\', 'a,b@c', 'nobody', '@nothing'\n");
  assert_true(file_has(path, "\"muted\":100,"));
  assert_int_equal(unlink(path), 0);
  const char *const without_output[] = {"PROF_LEVEL=1", NULL},
                    *const off[] = {"PROF_LEVEL=0", output, NULL},
                    *const empty[] = {"PROF_LEVEL=", NULL};
  assert_int_equal(run_part("program", without_output, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_int_equal(run_part("program", off, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_int_equal(run_part("program", empty, said, sizeof said), 0);
  assert_string_equal(said, "");
  assert_int_equal(run_part("program_that_starts_otherwise", variables, said, sizeof said), 0);
  assert_string_equal(said, "");
}

static void a_cap_that_was_refused_is_said_where_the_environment_started(void **state) {
  (void)state;
  char said[4096];
  const char *const variables[] = {"PROF_LEVEL=2", "PROF_CAP_BYTES=8589934592", NULL};
  const int status = run_part("program_in_little_space", variables, said, sizeof said);
  if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) skip();
  assert_int_equal(status, 0);
  const char *const end = strchr(said, '\n');
  if (strncmp(said, "prof: PROF_LEVEL: the cap is ", 29) != 0 || !end || end[1] != '\0' ||
      !strstr(said, "not 8589934592: RLIMIT_AS is 1073741824 bytes"))
    fail_msg("said '%s'", said);
}

static void a_program_does_not_lower_the_level_of_the_environment(void **state) {
  (void)state;
  char said[4096];
  const char *const variables[] = {"PROF_LEVEL=2", NULL};
  assert_int_equal(run_part("program_that_asks_for_less", variables, said, sizeof said), 0);
  assert_string_equal(said, "");
}

static int make_folder(void **state) {
  (void)state;
  return mkdtemp(folder) ? 0 : -1;
}
static int remove_folder(void **state) {
  char command[PATH_ROOM + 16];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'", folder);
  return system(command);
}

/* A test that failed may have left files that the next ones would trip over. */
static int empty_folder(void **state) {
  char command[PATH_ROOM + 16];
  (void)state;
  snprintf(command, sizeof command, "rm -rf '%s'/*", folder);
  return system(command);
}

int main(int argc, char **argv) {
  if (argc == 4 && strcmp(argv[1], "--part") == 0) {
    snprintf(folder, sizeof folder, "%s", argv[3]);
    for (size_t i = 0; i < COUNT_OF(parts); i++)
      if (strcmp(parts[i].name, argv[2]) == 0) return parts[i].run();
    return 125;
  }
#define TEST(name) cmocka_unit_test_teardown(name, empty_folder)
  const struct CMUnitTest tests[] = {
      TEST(bad_paths_are_refused_with_their_name),
      TEST(the_longest_name_works),
      TEST(what_is_no_capture_is_not_opened),
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
      TEST(a_cap_that_was_refused_is_said_where_the_environment_started),
      TEST(test_descriptors_closed_by_the_host),
      TEST(test_a_million_distinct_names),
      TEST(hostile_names_are_kept_or_cut_and_the_json_stays_valid),
      TEST(ends_without_a_begin_change_nothing_but_the_count_of_strays),
      TEST(wrong_variables_are_one_line_and_the_program_runs_on),
      TEST(right_variables_record_without_a_word),
      TEST(a_program_does_not_lower_the_level_of_the_environment),
  };
  return cmocka_run_group_tests_name("bad input", tests, make_folder, remove_folder);
}
