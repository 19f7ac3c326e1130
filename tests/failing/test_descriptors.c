/* A host that closes every descriptor above 2, as daemons do, and opens files of its own under the
   numbers that prof had. It does so before the start, while recording, before the stop, before the
   dump, and at each of these. Its files are never written to, closed or moved; everything is
   recorded and can be read. Another host has removed the capture besides: what could not be
   recorded is counted. */
#define _GNU_SOURCE
#include "failing/host.h"

#include <sys/syscall.h>

enum { FILES_MAX = 24, MORE_FILES = 6, FILE_BYTES = 500, FEW = 1000, MANY = 300000 };

typedef enum closing_stage {
  BEFORE_START,
  WHILE_RECORDING,
  BEFORE_STOP,
  BEFORE_DUMP,
  STAGES
} closing_stage;

typedef struct closing {
  const char *name;
  unsigned stages; /* bits */
  prof_policy policy;
  bool with_helper, in_memory, removes_capture;
} closing;

/* ---- the host's files ---- */

static struct {
  int fds[STAGES * FILES_MAX];
  int count;
} host_files;

static void make_host_file(int number) {
  char name[64], text[FILE_BYTES];
  snprintf(name, sizeof name, "host-%d", host_files.count);
  memset(text, 'a' + host_files.count % 26, sizeof text);
  int fd = open(host_path(name), O_RDWR | O_CREAT | O_EXCL, 0600);
  check(fd >= 0, "%s: %s", name, strerror(errno));
  check(write(fd, text, sizeof text) == FILE_BYTES, "%s: %s", name, strerror(errno));
  /* prof's helper thread may have it again already */
  if (number >= 0 && number != fd && fcntl(number, F_GETFD) < 0) {
    check(dup2(fd, number) == number, "%s", strerror(errno));
    close(fd);
    fd = number;
  }
  host_files.fds[host_files.count++] = fd;
}

/* Closes all above 2, and opens files of the host's under each of their numbers, and the lowest
   that are free. Those of the time before are closed too, as by a host that does not know what it
   has open. */
static void close_all_and_open_own(void) {
  int numbers[FILES_MAX], count = 0;
  DIR *const entries = opendir("/proc/self/fd");
  for (const struct dirent *e; (e = readdir(entries)) != NULL;)
    if (atoi(e->d_name) > 2 && atoi(e->d_name) != dirfd(entries) && count < FILES_MAX - MORE_FILES)
      numbers[count++] = atoi(e->d_name);
  closedir(entries);
  if (syscall(SYS_close_range, 3u, ~0u, 0u) != 0)
    for (int fd = 3; fd < 1024; fd++) close(fd);
  for (int i = 0; i < host_files.count; i++) host_files.fds[i] = -1;
  for (int i = 0; i < count; i++) make_host_file(numbers[i]);
  for (int i = 0; i < MORE_FILES; i++) make_host_file(-1);
}

static void check_host_files(void) {
  for (int i = 0; i < host_files.count; i++) {
    char name[64], text[FILE_BYTES], back[FILE_BYTES + 1];
    const int fd = host_files.fds[i];
    snprintf(name, sizeof name, "host-%d", i);
    memset(text, 'a' + i % 26, sizeof text);
    check(host_size(host_path(name)) == FILE_BYTES, "%s has %lld bytes", name,
          host_size(host_path(name)));
    const int again = open(host_path(name), O_RDONLY);
    check(again >= 0 && read(again, back, sizeof back) == FILE_BYTES &&
              memcmp(back, text, FILE_BYTES) == 0,
          "%s was written to", name);
    close(again);
    unlink(host_path(name));
    if (fd < 0) continue;
    check(fcntl(fd, F_GETFD) >= 0, "descriptor %d of %s is closed", fd, name);
    check(lseek(fd, 0, SEEK_CUR) == FILE_BYTES, "%s was moved to %lld", name,
          (long long)lseek(fd, 0, SEEK_CUR));
  }
}

/* ---- the host ---- */

static void at_stage(const closing *what, closing_stage stage) {
  if (what->stages >> stage & 1) close_all_and_open_own();
}

static int run_closing(const void *context) {
  const closing *const what = context;
  const prof_options options = {.size = sizeof options,
                                .path = what->in_memory ? NULL : host_path("closed.json"),
                                .policy = what->policy,
                                .cap_bytes = what->policy == PROF_POLICY_RING ? 1 << 20 : 64 << 20,
                                .helper_thread = what->with_helper,
                                .keep_capture = !what->removes_capture};
  char capture[sizeof((prof_health *)0)->capture_path];
  at_stage(what, BEFORE_START);
  check_status(prof_start_with(&options), PROF_OK);
  check(health_now().survives_kill == !what->in_memory, "%s", health_now().reason);
  snprintf(capture, sizeof capture, "%s", health_now().capture_path);
  record_scopes(FEW);
  if (what->removes_capture) check(unlink(capture) == 0, "%s: %s", capture, strerror(errno));
  at_stage(what, WHILE_RECORDING);
  record_scopes(MANY);
  at_stage(what, BEFORE_STOP);
  check_status(prof_stop(), PROF_OK);
  host_check_sum(FEW + MANY);
  const prof_health health = health_now();
  if (what->removes_capture)
    check(health.is_full && health.lost_count[PROF_LOSS_DISK] > 0, "nothing is said to be lost");
  else if (what->policy != PROF_POLICY_RING)
    check(health.recorded_count == FEW + MANY, "%" PRIu64 " are recorded", health.recorded_count);
  at_stage(what, BEFORE_DUMP);
  check_status(prof_dump(host_path("closed.json")), PROF_OK);
  check(host_size(host_path("closed.json")) > 1000, "the trace is empty");
  if (!what->in_memory && !what->removes_capture) {
    const uint64_t read = host_scopes_in(capture);
    check(read == health.recorded_count, "%" PRIu64 " of %" PRIu64 " stand in the capture", read,
          health.recorded_count);
    check(unlink(capture) == 0, "%s: %s", capture, strerror(errno));
  }
  /* gives the arena up: of the host's nothing may be closed */
  const prof_options other = {.size = sizeof other, .cap_bytes = 1 << 20};
  check_status(prof_start_with(&other), PROF_OK);
  check_status(prof_stop(), PROF_OK);
  check_host_files();
  char names[512];
  check(unlink(host_path("closed.json")) == 0 &&
            host_entries(host_folder, "", names, sizeof names) == 0,
        "files are left: %s", names);
  return 0;
}

static void expect_closing(closing what) {
  /* each, and all */
  for (unsigned stages = 1; stages < 1u << STAGES; stages = stages == 8 ? 15 : stages * 2) {
    what.stages = stages;
    host_empty(host_folder);
    print_message("  stages %x\n", stages);
    host_expect("a host that closes descriptors", run_closing, &what);
  }
}

static void a_stream_survives_a_host_that_closes_its_descriptors(void **state) {
  (void)state;
  expect_closing((closing){.policy = PROF_POLICY_STREAM});
}

static void a_stream_with_a_helper_survives_a_host_that_closes_its_descriptors(void **state) {
  (void)state;
  expect_closing((closing){.policy = PROF_POLICY_STREAM, .with_helper = true});
}

static void a_ring_survives_a_host_that_closes_its_descriptors(void **state) {
  (void)state;
  expect_closing((closing){.policy = PROF_POLICY_RING});
}

static void memory_survives_a_host_that_closes_its_descriptors(void **state) {
  (void)state;
  expect_closing((closing){.policy = PROF_POLICY_KEEP, .in_memory = true});
}

static void what_cannot_be_recorded_into_a_removed_capture_is_counted(void **state) {
  (void)state;
  const closing what = {
      .stages = 1u << WHILE_RECORDING, .policy = PROF_POLICY_STREAM, .removes_capture = true};
  host_expect("a host that removes the capture", run_closing, &what);
}

/* ---- a daemon ---- */

/* Forks twice, closes its terminal and 0 to 2 as well, and opens files of its own under these
   numbers. Scopes are open over it. */
static int run_daemon(const void *context) {
  (void)context;
  const prof_options options = {
      .size = sizeof options, .path = host_path("daemon-%p.json"), .cap_bytes = 16 << 20};
  char said[HOST_PATH_ROOM];
  snprintf(said, sizeof said, "%s", host_path("said"));
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(FEW);
  const pid_t first = fork();
  check(first >= 0, "fork");
  if (first > 0) { /* in the host proper the parent would be gone */
    int status = -1;
    check(waitpid(first, &status, 0) == first, "%s", strerror(errno));
    FILE *const file = fopen(said, "r");
    char word[512] = "nothing";
    check(file && fgets(word, sizeof word, file) && strcmp(word, "well") == 0,
          "the daemon's parent ended with %x, and it said %s", (unsigned)status, word);
    fclose(file);
    host_check_sum(FEW);
    check_status(prof_stop(), PROF_OK);
    check_status(prof_dump(NULL), PROF_OK);
    char names[512];
    check(host_entries(host_folder, "daemon-", names, sizeof names) == 2, "%s", names);
    return 0;
  }
  setsid();
  const pid_t second = fork();
  if (second > 0) {
    int status = -1;
    waitpid(second, &status, 0);
    _exit(status != 0);
  }
  record_scopes(FEW);
  freopen(said, "w", stderr);
  const int log = dup(fileno(stderr)); /* so that check() can be read */
  for (int fd = 0; fd < 1024; fd++)
    if (fd != log) close(fd);
  for (int fd = 0; fd < 3; fd++) make_host_file(-1);
  stderr = fdopen(log, "w");
  setvbuf(stderr, NULL, _IONBF, 0);
  record_scopes(MANY);
  host_check_sum(FEW + MANY);
  check(health_now().recorded_count == FEW + MANY, "%" PRIu64 " are recorded",
        health_now().recorded_count);
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(NULL), PROF_OK);
  check_host_files();
  fprintf(stderr, "well");
  fflush(stderr);
  _exit(0);
}

static void a_daemon_without_descriptors_records_for_itself(void **state) {
  (void)state;
  host_expect("a daemon", run_daemon, NULL);
}

int main(void) {
#define TEST(name) cmocka_unit_test_teardown(name, host_empty_folder)
  const struct CMUnitTest tests[] = {
      TEST(a_stream_survives_a_host_that_closes_its_descriptors),
      TEST(a_stream_with_a_helper_survives_a_host_that_closes_its_descriptors),
      TEST(a_ring_survives_a_host_that_closes_its_descriptors),
      TEST(memory_survives_a_host_that_closes_its_descriptors),
      TEST(what_cannot_be_recorded_into_a_removed_capture_is_counted),
      TEST(a_daemon_without_descriptors_records_for_itself),
  };
  return cmocka_run_group_tests_name("descriptors", tests, host_make_folder, host_remove_folder);
}
