/* Every call that can fail, failing, one at a time. A host with two threads starts, records, reads,
   dumps, clears, stops, starts again and dumps. The nth malloc (mmap, open, write, ...) that prof
   makes is refused, for every n, in a fresh child each. Then also all calls from the nth on are, as
   on a disk that is full and stays full.

   Whatever failed, the host ends with its own results right and errno untouched by scopes, within
   10 s. Each refusal of prof has a status and a text, and recorded + lost = attempted. A file with
   a final name is a whole trace. No other file is left behind, no descriptor is left open. Once
   nothing fails any more, prof records and dumps again.

   The last tests refuse the calls of prof_trace_open() alone, on a finished capture that is read or
   mapped and on the one that the host records into.

   The plugin inject.so counts and fails; this program puts it in front by LD_PRELOAD and execs
   itself. With an argument it runs the longer half. PROF_FAILING_ONLY=function and
   PROF_FAILING_NTH=n run one case alone. */
#define _GNU_SOURCE
#include <pthread.h>
#ifdef PROF_HAVE_ZLIB
#include <zlib.h>
#endif

#include "failing/walk.h"

enum {
  /* each with a name, arguments and an inner scope: some of 64 bytes, so that chunks change */
  MAIN_SCOPES = 400,
  WORKER_SCOPES = 2600,
  ERRNO_OF_HOST = 12345
};

static const walk_way ways[] = {
#define WAY WALK_WAY
    WAY(malloc, ENOMEM),
    WAY(calloc, ENOMEM),
    WAY(realloc, ENOMEM),
    WAY(aligned_alloc, ENOMEM),
    WAY(mmap, ENOMEM),
    WAY(mremap, ENOMEM),
    WAY(mprotect, ENOMEM),
    WAY(madvise, ENOMEM),
    WAY(madvise, EIO),
    WAY(madvise, EINVAL),
    WAY(madvise, EINTR),
    WAY(mincore, EAGAIN),
    WAY(open, EMFILE),
    WAY(open, EACCES),
    WAY(open, ENOSPC),
    WAY(openat, EMFILE),
    WAY(openat, EACCES),
    WAY(openat, EOPNOTSUPP),
    WAY(opendir, EMFILE),
    WAY(access, EACCES),
    WAY(stat, EACCES),
    WAY(lstat, EACCES),
    WAY(fstat, EIO),
    WAY(fstatat, EACCES),
    WAY(fstatfs, EIO),
    WAY(statfs, EIO),
    WAY(fallocate, ENOSPC),
    WAY(fallocate, EOPNOTSUPP),
    WAY(fallocate, EINTR),
    WAY(fallocate, EIO),
    WAY(ftruncate, ENOMEM),
    WAY(fcntl, EMFILE),
    WAY(flock, ENOLCK),
    WAY(flock, EINTR),
    WAY(lseek, ESPIPE),
    WAY(read, EIO),
    WAY(read, EINTR),
    WAY(pread, EIO),
    WAY(write, ENOSPC),
    WAY(write, EIO),
    WAY(write, EINTR),
    WAY(write, INJECT_SHORT),
    WAY(pwrite, ENOSPC),
    WAY(pwrite, EIO),
    WAY(pwrite, EINTR),
    WAY(pwrite, INJECT_SHORT),
    WAY(pwritev, ENOSPC),
    WAY(pwritev, EIO),
    WAY(pwritev, EINTR),
    WAY(pwritev, INJECT_SHORT),
    WAY(sync_file_range, EIO),
    WAY(close, EIO),
    WAY(close, EINTR),
    WAY(linkat, EACCES),
    WAY(linkat, ENOENT),
    WAY(renameat, EACCES),
    WAY(pthread_create, EAGAIN),
    WAY(pthread_key_create, EAGAIN),
    WAY(dlopen, ENOENT),
    WAY(getrlimit, EPERM),
    WAY(sysinfo, EFAULT),
    WAY(register_atfork, ENOMEM),
    WAY(memfd_create, EMFILE),
    WAY(memfd_create, ENOSYS),
#undef WAY
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- the child: a host ---- */

typedef struct failing_case {
  bool with_helper;
} failing_case;

static struct {
  uint64_t attempted; /* in the capture in force */
  bool in_file;
} host;

static uint64_t host_work(int count, bool is_worker) {
  uint64_t sum = 0;
  walk.arm(1);
  for (int i = 0; i < count; i++) {
    errno = ERRNO_OF_HOST;
    if (is_worker) {
      WITH_BASE_PROFILER(PROF_HOST, "plain", "work", PROF_NO_ARGS, { sum += (uint64_t)i; });
    } else {
      WITH_BASE_PROFILER(PROF_HOST, "outer", "work", PROF_ARGS("number", i, "text", "some text"), {
        WITH_BASE_PROFILER(PROF_HOST, "inner", "work", PROF_ARGS("half", i / 2),
                           { sum += (uint64_t)i; });
      });
    }
    const int after = errno;
    check(after == ERRNO_OF_HOST, "scope %d changed errno to %d", i, after);
  }
  walk.arm(0);
  return sum;
}

static void *worker(void *sum) {
  *(uint64_t *)sum = host_work(WORKER_SCOPES, true);
  walk.arm(1); /* also what it does when the thread goes */
  return NULL;
}

/* Both threads; then the sums must hold. */
static void record(void) {
  pthread_t thread;
  uint64_t worked = 0;
  const bool is_on = prof_level() != 0;
  check(pthread_create(&thread, NULL, worker, &worked) == 0, "the host's own thread");
  const uint64_t sum = host_work(MAIN_SCOPES, false);
  check(pthread_join(thread, NULL) == 0, "join");
  check(sum == (uint64_t)MAIN_SCOPES * (MAIN_SCOPES - 1) / 2, "the host's sum is %" PRIu64, sum);
  check(worked == (uint64_t)WORKER_SCOPES * (WORKER_SCOPES - 1) / 2, "the host's sum is %" PRIu64,
        worked);
  if (is_on) host.attempted += 2 * MAIN_SCOPES + WORKER_SCOPES;
  host_check_sum(host.attempted);
}

static prof_options stream_options(const failing_case *what) {
  return (prof_options){.size = sizeof(prof_options),
                        .path = host_path("run/walk.json"),
                        .cap_bytes = 2 << 20,
                        .helper_thread = what->with_helper};
}

/* The same path each time, so the same capture goes on. A capture that is not where it was asked to
   be says why. */
static int start(const failing_case *what) {
  const prof_options options = stream_options(what);
  const int status = WALK_ARMED(prof_start_with(&options));
  walk_check_said(status);
  check((prof_level() == 1) == (status == PROF_OK), "%s, and the level is %d",
        prof_status_name(status), prof_level());
  host_check_sum(host.attempted);
  if (status != PROF_OK) return status;
  const prof_health health = health_now();
  check(health.survives_kill || health.reason[0], "in memory, and no reason");
  return status;
}

/* What the trace holds is what health says that was recorded. */
static void get(void) {
  prof_trace *trace = NULL;
  const int status = WALK_ARMED(prof_get(&trace));
  walk_check_said(status);
  check((status == PROF_OK) == (trace != NULL), "%s with trace %p", prof_status_name(status),
        (void *)trace);
  if (!trace) return;
  prof_trace_info info = {.size = sizeof info};
  check_status(prof_trace_info_get(trace, &info), PROF_OK);
  const prof_health health = health_now();
  const uint64_t recorded = health.recorded_count;
  check(info.scope_count == recorded && info.bad_count == 0,
        "%" PRIu64 " scopes and %" PRIu64 " bad ones are read, %" PRIu64 " recorded",
        info.scope_count, info.bad_count, recorded);
  prof_trace_destroy(trace);
}

/* ---- what was dumped ---- */

static char *read_whole(const char *path, size_t *bytes_out) {
  enum { ROOM = 8 << 20 };
  static char text[ROOM + 1];
  long count = -1;
#ifdef PROF_HAVE_ZLIB
  const gzFile file = gzopen(path, "rb"); /* reads what is not compressed as it is */
  check(file, "%s is not there", path);
  count = gzread(file, text, ROOM);
  int error = 0;
  const char *const why = gzerror(file, &error);
  check(count > 0 && (error == Z_OK || error == Z_STREAM_END), "%s: %s", path, why);
  check(gzclose(file) == Z_OK, "%s is cut", path);
#else
  const int fd = open(path, O_RDONLY);
  check(fd >= 0, "%s is not there", path);
  count = (long)read(fd, text, ROOM);
  close(fd);
#endif
  check(count > 0 && count < ROOM, "%s has %ld bytes", path, count);
  text[count] = '\0';
  *bytes_out = (size_t)count;
  return text;
}

static uint64_t count_of(const char *text, const char *wanted) {
  uint64_t count = 0;
  for (const char *at = text; (at = strstr(at, wanted)) != NULL; at += strlen(wanted)) count++;
  return count;
}

/* Whole, and with all that was recorded. */
static void check_dumped(const char *path) {
  size_t bytes = 0;
  const char *const text = read_whole(path, &bytes);
  size_t end = bytes;
  while (end > 0 && (text[end - 1] == '\n' || text[end - 1] == ' ')) end--;
  check(text[0] == '{' && end > 0 && text[end - 1] == '}', "%s is cut after %zu bytes: ...%s", path,
        bytes, text + (bytes > 40 ? bytes - 40 : 0));
  const uint64_t shown = count_of(text, "\"ph\":\"X\""), recorded = health_now().recorded_count;
  check(shown == recorded, "%s shows %" PRIu64 " scopes, %" PRIu64 " are recorded", path, shown,
        recorded);
}

/* NULL: where the options say. A path that had nothing has nothing or all; one that had a trace has
   the old one or the new one. */
static int dump(const char *path) {
  const char *const at = path ? path : host_path("run/walk.json");
  const long long before = host_size(at);
  const int status = WALK_ARMED(prof_dump(path));
  walk_check_said(status);
  if (status == PROF_OK)
    check_dumped(at);
  else
    check(host_size(at) == before, "%s, and %s had %lld bytes and has %lld",
          prof_status_name(status), at, before, host_size(at));
  return status;
}

static void get_json(void) {
  char *text = NULL;
  size_t bytes = 0;
  const int status = WALK_ARMED(prof_get_json(&text, &bytes));
  walk_check_said(status);
  if (status == PROF_OK)
    check(strlen(text) == bytes && text[bytes - 1] != '\0', "%zu bytes", bytes);
  if (status == PROF_OK) prof_free(text);
}

static void stop(void) {
  const int status = WALK_ARMED(prof_stop());
  walk_check_said(status);
  check(status == PROF_OK || status == PROF_E_NOT_RUNNING, "%s", prof_status_name(status));
  check(prof_level() == 0, "the level is %d", prof_level());
  host_check_sum(host.attempted);
}

/* ---- the scenario ---- */

/* Another cap is another capture. */
static void run_in_memory(uint64_t cap_bytes) {
  const prof_options options = {
      .size = sizeof options, .policy = PROF_POLICY_RING, .cap_bytes = cap_bytes};
  const int status = WALK_ARMED(prof_start_with(&options));
  walk_check_said(status);
  if (status == PROF_OK) host.attempted = 0; /* another capture; else the previous one remains */
  record();
  get_json();
  stop();
}

static void run_with_failures(const failing_case *what) {
  char gz[HOST_PATH_ROOM];
  snprintf(gz, sizeof gz, "%s", host_path("run/other.json.gz"));
  start(what);
  record();
  get();
  dump(NULL);
  dump(gz);
  walk_check_said(WALK_ARMED(prof_clear()));
  host_check_sum(host.attempted);
  record();
  stop();
  dump(NULL);
  start(what);
  record();
  stop();
  dump(NULL); /* over the previous one */
  walk_check_said(WALK_ARMED(prof_get_duration("plain", NULL, NULL, NULL)));
}

/* From now on nothing fails: all must work, and nothing may be left. */
static void run_without_failures(const failing_case *what) {
  walk.plan->nth = 0;
  run_in_memory(3 << 19);
  const prof_options options = stream_options(what);
  check_status(prof_start_with(&options), PROF_OK);
  const prof_health health = health_now();
  check(health.survives_kill, "recorded in memory: %s", health.reason);
  host.attempted = health_lost(&health);
  check(health.recorded_count == 0, "a new capture has %" PRIu64 " records", health.recorded_count);
  record();
  check_status(prof_stop(), PROF_OK);
  check_status(prof_dump(NULL), PROF_OK);
  check_dumped(host_path("run/walk.json"));
}

static void check_files(void) {
  char names[1024];
  const int other = host_size(host_path("run/other.json.gz")) >= 0;
  const int there = host_entries(host_path("run"), "", names, sizeof names);
  check(there == 1 + other, "%d files are left: %s", there, names);
  const int elsewhere = host_entries(host_path("elsewhere"), "", names, sizeof names);
  check(elsewhere == 0, "files are left in $TMPDIR: %s", names);
  const int in_memory =
      host_entries("/dev/shm", host_folder + strlen("/tmp/"), names, sizeof names);
  check(in_memory == 0, "files are left in /dev/shm: %s", names);
}

static int run_case(const void *context) {
  const failing_case *const what = context;
  const int before = host_descriptors();
  setenv("TMPDIR", host_path("elsewhere"), 1);
  walk.begin(walk.plan);
  run_with_failures(what);
  /* not armed: whatever went wrong, all can still be had */
  if (health_now().cap_bytes) check_status(prof_dump(NULL), PROF_OK);
  run_in_memory(1 << 20);
  run_without_failures(what);
  const prof_options options = {.size = sizeof options};
  check_status(prof_start_with(&options), PROF_OK); /* gives the file up */
  check_status(prof_stop(), PROF_OK);
  check_files();
  /* A descriptor that fstat() cannot tell from one of the host's is left open, never closed by
     guess. */
  const uint64_t unknown = walk.plan->function == INJECT_fstat ? walk.plan->failed_count : 0;
  const int after = host_descriptors();
  check(after >= before && (uint64_t)(after - before) <= unknown,
        "%d descriptors were open, %d are", before, after);
  return 0;
}

/* ---- the child: a reader ---- */

typedef enum capture_kind {
  CAPTURE_READ,
  CAPTURE_MAPPED, /* zeros after its end make it larger than PROF_I_LARGE_CAPTURE_BYTES */
  CAPTURE_LIVE
} capture_kind;

enum { CAPTURE_SCOPES = 100, CAPTURE_MAPPED_BYTES = (64 << 20) + 4096 };

/* This process records into a file from now on. */
static prof_health begin_capture(void) {
  const prof_options options = {
      .size = sizeof options, .path = host_path("run/capture.json"), .cap_bytes = 1 << 20};
  check_status(prof_start_with(&options), PROF_OK);
  record_scopes(CAPTURE_SCOPES);
  return health_now();
}

/* Another process records it and ends without a stop. */
static void record_finished_capture(char path[HOST_PATH_ROOM]) {
  int ends[2], status = -1;
  check(pipe(ends) == 0, "pipe");
  const pid_t recorder = fork();
  check(recorder >= 0, "fork");
  if (recorder == 0) {
    const prof_health health = begin_capture();
    _exit(write(ends[1], health.capture_path, HOST_PATH_ROOM) != HOST_PATH_ROOM);
  }
  check(waitpid(recorder, &status, 0) == recorder && status == 0, "the recorder ended with %d",
        status);
  check(read(ends[0], path, HOST_PATH_ROOM) == HOST_PATH_ROOM, "no path");
  close(ends[0]);
  close(ends[1]);
}

static uint64_t scopes_of(prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  check_status(prof_trace_info_get(trace, &info), PROF_OK);
  check(info.bad_count == 0, "%" PRIu64 " bad records", info.bad_count);
  prof_trace_destroy(trace);
  return info.scope_count;
}

static bool capture_is_mapped(const char *path) {
  char line[2 * HOST_PATH_ROOM];
  bool found = false;
  FILE *const maps = fopen("/proc/self/maps", "r");
  check(maps, "no /proc/self/maps");
  while (!found && fgets(line, sizeof line, maps)) found = strstr(line, path) != NULL;
  fclose(maps);
  return found;
}

/* The path is a regular file, whatever fails. */
static int run_open(const void *context) {
  const capture_kind kind = *(const capture_kind *)context;
  char path[HOST_PATH_ROOM];
  if (kind == CAPTURE_LIVE)
    snprintf(path, sizeof path, "%s", begin_capture().capture_path);
  else
    record_finished_capture(path);
  if (kind == CAPTURE_MAPPED) check(truncate(path, CAPTURE_MAPPED_BYTES) == 0, "%s", path);
  const int before = host_descriptors();
  prof_trace *trace = NULL;
  walk.begin(walk.plan);
  const int status = WALK_ARMED(prof_trace_open(path, &trace));
  walk_check_said(status);
  check(status != PROF_E_FILE_TYPE, "%s is a regular file", path);
  check((status == PROF_OK) == (trace != NULL), "%s with trace %p", prof_status_name(status),
        (void *)trace);
  if (kind == CAPTURE_MAPPED && walk.plan->failed_count == 0)
    check(capture_is_mapped(path), "%s is not mapped", path);
  const uint64_t scopes = trace ? scopes_of(trace) : CAPTURE_SCOPES;
  check(scopes == CAPTURE_SCOPES, "%" PRIu64 " scopes of %d", scopes, CAPTURE_SCOPES);
  const int after = host_descriptors();
  check(after == before, "%d descriptors were open, %d are", before, after);
  const uint64_t again = host_scopes_in(path); /* not armed */
  check(again == CAPTURE_SCOPES, "%" PRIu64 " scopes of %d", again, CAPTURE_SCOPES);
  return 0;
}

/* ---- the walk over all n ---- */

/* False: the nth call is never made. */
static void the_host_survives_without_a_failure(void **state) {
  (void)state;
  const failing_case what = {false};
  assert_false(walk_nth(run_case, &what, &ways[0], 0, false));
  assert_int_equal(walk.failures, 0);
  /* the plugin stands in front */
  assert_true(walk.plan->counts[INJECT_malloc] > 0 && walk.plan->counts[INJECT_open] > 0);
}

static void the_host_survives_each_call_failing_once(void **state) {
  (void)state;
  const failing_case what = {false};
  walk_all(run_case, &what, ways, WAYS, false);
}

static void the_host_survives_each_call_failing_from_then_on(void **state) {
  (void)state;
  const failing_case what = {false};
  walk_all(run_case, &what, ways, WAYS, true);
}

static void the_host_survives_each_call_failing_with_a_helper_thread(void **state) {
  (void)state;
  const failing_case what = {true};
  walk_all(run_case, &what, ways, WAYS, false);
}

static void a_capture_opens_or_has_an_error_with_each_call_failing_once(void **state) {
  walk_all(run_open, *state, ways, WAYS, false);
}

static void a_capture_opens_or_has_an_error_with_each_call_failing_from_then_on(void **state) {
  walk_all(run_open, *state, ways, WAYS, true);
}

static capture_kind capture_kinds[] = {CAPTURE_READ, CAPTURE_MAPPED, CAPTURE_LIVE};
#define OPEN_TEST(test, kind) \
  { #test ": " #kind, test, NULL, NULL, &capture_kinds[kind] }
#define OPEN_TESTS(test) \
  OPEN_TEST(test, CAPTURE_READ), OPEN_TEST(test, CAPTURE_MAPPED), OPEN_TEST(test, CAPTURE_LIVE)

int main(int argc, char **argv) {
  const int ended = walk_begin(argv);
  if (ended) return ended;
  if (argc > 1) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_host_survives_each_call_failing_from_then_on),
        cmocka_unit_test(the_host_survives_each_call_failing_with_a_helper_thread),
        OPEN_TESTS(a_capture_opens_or_has_an_error_with_each_call_failing_from_then_on),
    };
    return cmocka_run_group_tests_name("every call failing, the rest", tests, host_make_folder,
                                       host_remove_folder);
  }
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_host_survives_without_a_failure),
      cmocka_unit_test(the_host_survives_each_call_failing_once),
      OPEN_TESTS(a_capture_opens_or_has_an_error_with_each_call_failing_once),
  };
  return cmocka_run_group_tests_name("every call failing", tests, host_make_folder,
                                     host_remove_folder);
}
