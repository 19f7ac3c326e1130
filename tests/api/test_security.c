/* What docs/explanation/security.md says of the environment, of memory that has no file, of a
   capture that somebody cuts off, and of what is never recorded. This program defines dlopen() and
   getenv() in front of the C library's, so that it sees what prof asks for. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hang_guard.h"
#include "sanitizers.h"

enum { OPS = 50000, ASKED_MAX = 64, WORD_BYTES = 64, UNIT_BYTES = 16384 };

/* What a child tells its parent. */
typedef struct page {
  uint64_t ended;
  uint32_t ready, leave;
  char capture[512];
} page;

typedef char word[WORD_BYTES];

static struct {
  char folder[512];
  bool is_listening;
  word opened[ASKED_MAX], variables[ASKED_MAX];
  int opened_flags[ASKED_MAX];
  size_t opened_count, variable_count;
  volatile page *pages; /* two */
} own;

/* ---- in front of the C library ---- */

void *dlopen(const char *name, int flags) {
  void *(*next)(const char *, int);
  *(void **)&next = dlsym(RTLD_NEXT, "dlopen");
  if (own.is_listening && own.opened_count < ASKED_MAX) {
    own.opened_flags[own.opened_count] = flags;
    snprintf(own.opened[own.opened_count++], WORD_BYTES, "%s", name ? name : "(the program)");
  }
  return next(name, flags);
}

static char *find_variable(const char *name) {
  const size_t bytes = strlen(name);
  if (own.is_listening && own.variable_count < ASKED_MAX)
    snprintf(own.variables[own.variable_count++], WORD_BYTES, "%s", name);
  for (char **at = environ; at && *at; at++)
    if (strncmp(*at, name, bytes) == 0 && (*at)[bytes] == '=') return *at + bytes + 1;
  return NULL;
}
char *getenv(const char *name) { return find_variable(name); }
char *secure_getenv(const char *name) { return find_variable(name); }

/* ---- what the tests share ---- */

static void nap(void) { nanosleep(&(const struct timespec){0, 200000}, NULL); }

static const char *in_folder(const char *name) {
  static char paths[4][PATH_MAX];
  static int next;
  char *const path = paths[next++ % 4];
  snprintf(path, PATH_MAX, "%s/%s", own.folder, name);
  return path;
}

static void record_into(const char *path) {
  const prof_options options = {.size = sizeof options, .level = 2, .path = path};
  assert_int_equal(prof_start_with(&options), PROF_OK);
  for (int i = 0; i < 100; i++)
    WITH_BASE_PROFILER(PROF_HOST, "operator", "kernel", PROF_ARGS("i", i), {});
  assert_int_equal(prof_stop(), PROF_OK);
}

static void wait_for(volatile uint32_t *is_ready, const char *what) {
  WAIT_WHILE(!*is_ready);
  if (!*is_ready) fail_msg("%s did not begin", what);
}

/* ---- the environment ---- */

static bool is_one_of(const char *name, const char *const *words, size_t count) {
  for (size_t i = 0; i < count; i++)
    if (strcmp(name, words[i]) == 0) return true;
  return false;
}

/* First of all tests: prof reads some of them once in a process. */
static void the_environment_is_asked_for_these_names_alone(void **state) {
  static const char *const known[] = {"PROF_CAPTURE_DIR",
                                      "TMPDIR",
                                      "RANK",
                                      "WORLD_SIZE",
                                      "SLURM_PROCID",
                                      "SLURM_NTASKS",
                                      "OMPI_COMM_WORLD_RANK",
                                      "OMPI_COMM_WORLD_SIZE",
                                      "PMI_RANK",
                                      "PMI_SIZE"};
  (void)state;
  own.variable_count = 0;
  own.is_listening = true;
  record_into("/proc/%r-%h.json"); /* it must look for another place, and for its rank */
  const int status = prof_dump(in_folder("asked.json"));
  own.is_listening = false;
  assert_int_equal(status, PROF_OK);
  assert_true(own.variable_count > 0); /* else nobody listened */
  for (size_t i = 0; i < own.variable_count; i++)
    if (!is_one_of(own.variables[i], known, sizeof known / sizeof *known))
      fail_msg("%s is asked for", own.variables[i]);
}

static void no_library_is_loaded_but_zlib_by_its_plain_name(void **state) {
  (void)state;
  own.opened_count = 0;
  own.is_listening = true;
  record_into(in_folder("out.json"));
  const int plain = prof_dump(in_folder("plain.json"));
  const size_t before = own.opened_count;
  const int packed = prof_dump(in_folder("packed.json.gz"));
  own.is_listening = false;
  assert_int_equal(plain, PROF_OK);
  if (before != 0) fail_msg("%s is loaded without need", own.opened[0]);
  if (packed == PROF_E_UNSUPPORTED) {
    print_message("skip: %s\n", prof_last_error());
    skip();
  }
  assert_int_equal(packed, PROF_OK);
  assert_int_equal(own.opened_count, 1);
  assert_string_equal(own.opened[0], "libz.so.1");
  assert_int_equal(own.opened_flags[0], RTLD_NOW | RTLD_LOCAL);
}

/* ---- memory that has no file ---- */

/* A descriptor of this process behind which there is memory of prof's; -1: none. */
static int memory_descriptor(void) {
  int found = -1;
  DIR *const entries = opendir("/proc/self/fd");
  for (const struct dirent *e; entries && found < 0 && (e = readdir(entries)) != NULL;) {
    char target[PATH_MAX];
    const ssize_t bytes = readlinkat(dirfd(entries), e->d_name, target, sizeof target - 1);
    target[bytes > 0 ? bytes : 0] = '\0';
    if (strstr(target, "memfd:prof-capture")) found = (int)strtol(e->d_name, NULL, 10);
  }
  if (entries) closedir(entries);
  return found;
}

/* Whether a program that this process starts has one. */
static bool is_inherited(void) {
  int status = -1;
  const pid_t child = fork();
  if (child == 0) {
    execl("/proc/self/exe", "security", "has-memory", (char *)NULL);
    _exit(9);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) <= 1);
  return WEXITSTATUS(status) == 1;
}

static bool has_memory_mapped(void) {
  char line[PATH_MAX + 128];
  bool found = false;
  FILE *const maps = fopen("/proc/self/maps", "r");
  while (maps && !found && fgets(line, sizeof line, maps))
    found = strstr(line, "memfd:prof-capture") != NULL;
  if (maps) fclose(maps);
  return found;
}

/* unit/test_buffer_memory.c has what it is until it is mapped. */
static void memory_is_given_to_no_other_program(void **state) {
  (void)state;
  assert_int_equal(prof_start_with(&(const prof_options){.size = sizeof(prof_options), .level = 1}),
                   PROF_OK);
  assert_true(has_memory_mapped());
  assert_int_equal(memory_descriptor(), -1);
  assert_false(is_inherited());
  /* without close-on-exec: to see that it would be seen */
  const int another = memfd_create("prof-capture", 0);
  assert_true(another >= 0);
  assert_int_equal(memory_descriptor(), another);
  assert_true(is_inherited());
  close(another);
  assert_int_equal(prof_stop(), PROF_OK);
}

/* ---- a capture that is cut off while it is written ---- */

static void record_until_told(int number) {
  char path[PATH_MAX];
  volatile page *const p = &own.pages[number];
  snprintf(path, sizeof path, "%s/of-%d.json", own.folder, number);
  const prof_options options = {.size = sizeof options, .level = 1, .path = path};
  prof_health health = {.size = sizeof health};
  signal(SIGBUS, SIG_DFL); /* a sanitizer has a handler */
  hang_guard();
  if (prof_start_with(&options) != PROF_OK || prof_health(&health) != PROF_OK ||
      !health.capture_path[0])
    _exit(3);
  snprintf((char *)(uintptr_t)p->capture, sizeof p->capture, "%s", health.capture_path);
  while (!p->leave) {
    WITH_BASE_PROFILER(PROF_HOST, "operator", "kernel", PROF_NO_ARGS, {});
    if (++p->ended == OPS) p->ready = 1;
    if (p->ended >= OPS) nap();
  }
  _exit(prof_stop() == PROF_OK ? 0 : 4);
}

static pid_t begin_recorder(int number) {
  const pid_t child = fork();
  if (child == 0) record_until_told(number);
  assert_true(child > 0);
  wait_for(&own.pages[number].ready, "the recorder");
  return child;
}

/* How many scopes the trace has, all of which are whole. */
static uint64_t count_scopes(const prof_trace *trace) {
  static prof_event event;
  prof_cursor *cursor = NULL;
  uint64_t count = 0;
  assert_int_equal(prof_cursor_create(trace, &cursor), PROF_OK);
  while (prof_cursor_next(cursor, &event) == 1) {
    if (event.kind != PROF_EVENT_SCOPE) continue;
    assert_int_equal(event.name_bytes, strlen("operator"));
    assert_memory_equal(event.name, "operator", strlen("operator"));
    count++;
  }
  prof_cursor_destroy(cursor);
  return count;
}

static prof_trace_info open_with_info(const char *path, prof_trace **trace_out) {
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_open(path, trace_out) != PROF_OK) fail_msg("%s: %s", path, prof_last_error());
  assert_int_equal(prof_trace_info_get(*trace_out, &info), PROF_OK);
  return info;
}

static void a_capture_cut_off_kills_its_process_by_sigbus_and_nobody_else(void **state) {
  (void)state;
  memset((void *)(uintptr_t)own.pages, 0, 2 * sizeof *own.pages);
  const pid_t victim = begin_recorder(0), other = begin_recorder(1);
  const char *const path = (const char *)(uintptr_t)own.pages[0].capture;
  prof_trace *before = NULL, *after = NULL, *of_other = NULL;
  struct stat about;
  int status = -1;
  open_with_info(path, &before);
  assert_int_equal(stat(path, &about), 0);
  const off_t cut = about.st_size / 2 / UNIT_BYTES * UNIT_BYTES;
  assert_int_equal(truncate(path, cut), 0);
  assert_int_equal(waitpid(victim, &status, 0), victim);
  if (!WIFSIGNALED(status) || WTERMSIG(status) != SIGBUS)
    fail_msg("it ended with status 0x%x, not by SIGBUS", (unsigned)status);

  assert_true(count_scopes(before) >= OPS); /* was read before */
  prof_trace_destroy(before);
  const prof_trace_info left = open_with_info(path, &after);
  assert_true(left.bad_count > 0);
  assert_false(left.was_clean);
  /* 16 bytes each; half of what is left is theirs at least */
  assert_true(count_scopes(after) >= (uint64_t)cut / 32 / 2);
  prof_trace_destroy(after);

  const uint64_t seen = own.pages[1].ended;
  WAIT_WHILE(own.pages[1].ended == seen);
  assert_true(own.pages[1].ended > seen);
  own.pages[1].leave = 1;
  assert_int_equal(waitpid(other, &status, 0), other);
  assert_int_equal(status, 0);
  const prof_trace_info whole =
      open_with_info((const char *)(uintptr_t)own.pages[1].capture, &of_other);
  assert_int_equal(whole.bad_count, 0);
  assert_int_equal(count_scopes(of_other), own.pages[1].ended);
  prof_trace_destroy(of_other);
}

/* ---- what is never recorded ---- */

/* Whoever reads these tests' captures finds no word that begins so. In two parts, so that this line
   is not found either. */
#define SECRET \
  "hush"       \
  "-"
#define SPOKEN "spoken aloud"

/* Texts of every length, with a secret right behind. */
static void record_beside_secrets(void) {
  char stack[4096], name[256];
  for (size_t at = 0; at + 16 < sizeof stack; at += 16) memcpy(stack + at, SECRET "stack ....", 16);
  char *const heap = malloc(1 << 20);
  assert_non_null(heap);
  for (size_t at = 0; at < 1 << 20; at += 16) memcpy(heap + at, SECRET "heap .....", 16);
  for (uint32_t bytes = 0; bytes < 200; bytes++) {
    memset(name, 'n', bytes);
    snprintf(name + bytes, sizeof name - bytes, "%sbehind", SECRET);
    const prof_arg items[] = {{"text", PROF_ARG_STRING, bytes, {.text = name}},
                              {"number", PROF_ARG_I64, 0, {.i64 = 7}}};
    const prof_args args = {items, 2, PROF_ARGS_PAIRS, NULL};
    const uint64_t outer = prof_scope_begin(1, SPOKEN, "kernel", &args);
    const uint64_t inner = prof_scope_begin(2, bytes % 2 ? "odd" : "even", "vm", &args);
    /* the others stay open: their texts stand in the thread's slot */
    if (bytes % 5 != 0 || bytes > 100) prof_scope_end(inner);
    prof_scope_end(outer);
  }
  ((volatile char *)stack)[0] = 0;
  free(heap);
}

static void *record_on_a_thread(void *unused) {
  (void)unused;
  record_beside_secrets();
  return NULL;
}

/* The bytes of a packed capture cannot be searched, so this unpacks it. */
static int unpack_in_place(const char *path) {
  const prof_dump_options plain = {.size = sizeof plain, .format = PROF_FORMAT_CAPTURE};
  char other[PATH_MAX + 8];
  prof_trace *trace = NULL;
  snprintf(other, sizeof other, "%s.plain", path);
  int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) status = prof_trace_dump(trace, other, &plain);
  prof_trace_destroy(trace);
  return status == PROF_OK && rename(other, path) != 0 ? PROF_E_IO : status;
}

/* In the program that is started with secrets all around it. */
static int be_secretive(char **argv) {
  const prof_options options = {
      .size = sizeof options, .level = 2, .path = argv[2], .keep_capture = 1};
  pthread_t thread;
  char path[PATH_MAX];
  static const uint32_t formats[] = {PROF_FORMAT_CHROME,     PROF_FORMAT_RAF,   PROF_FORMAT_CAPTURE,
                                     PROF_FORMAT_PERFETTO,   PROF_FORMAT_CSV,   PROF_FORMAT_FOLDED,
                                     PROF_FORMAT_SPEEDSCOPE, PROF_FORMAT_PPROF, PROF_FORMAT_PACKED,
                                     PROF_FORMAT_SQLITE,     PROF_FORMAT_RPD};
  FILE *const file = fopen(SECRET "file", "w");
  if (!file || prof_start_with(&options) != PROF_OK) return 3;
  record_beside_secrets();
  if (pthread_create(&thread, NULL, record_on_a_thread, NULL) != 0 ||
      pthread_join(thread, NULL) != 0)
    return 4;
  PROF_INSTANT(SPOKEN, "mark", PROF_ARGS("n", 1));
  PROF_COUNTER("count", 1.0);
  fclose(file);
  if (prof_stop() != PROF_OK) return 5;
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
    const prof_dump_options dump = {.size = sizeof dump, .format = formats[i]};
    snprintf(path, sizeof path, "%s.%zu", argv[2], i);
    int status = prof_dump_with(path, &dump);
    const bool has_no_library =
        dump.format >= PROF_FORMAT_PACKED && status == PROF_E_UNSUPPORTED; /* zstd, SQLite */
    if (status == PROF_OK && dump.format == PROF_FORMAT_PACKED) status = unpack_in_place(path);
    if (status != PROF_OK && !has_no_library) return 6;
  }
  return 0;
}

static void start_among_secrets(const char *output) {
  char sanitizer[2][512];
  snprintf(sanitizer[0], sizeof sanitizer[0], "ASAN_OPTIONS=%s",
           getenv("ASAN_OPTIONS") ? getenv("ASAN_OPTIONS") : "");
  snprintf(sanitizer[1], sizeof sanitizer[1], "TSAN_OPTIONS=%s",
           getenv("TSAN_OPTIONS") ? getenv("TSAN_OPTIONS") : "");
  char *const argv[] = {"/" SECRET "argv0", "be-secretive", (char *)(uintptr_t)output,
                        SECRET "argument", NULL};
  char *const variables[] = {SECRET "variable=" SECRET "value",
                             "USER=" SECRET "user",
                             "LOGNAME=" SECRET "user",
                             "HOME=/" SECRET "home",
                             "PATH=/" SECRET "path:/bin",
                             sanitizer[0],
                             sanitizer[1],
                             NULL};
  if (mkdir(in_folder(SECRET "folder"), 0700) != 0 || chdir(in_folder(SECRET "folder")) != 0)
    _exit(7);
  execve("/proc/self/exe", argv, variables);
  _exit(8);
}

/* The whole file; the caller frees it. */
static char *read_whole(const char *path, size_t *bytes_out) {
  struct stat about;
  FILE *const file = fopen(path, "rb");
  if (!file || fstat(fileno(file), &about) != 0) {
    fail_msg("%s: %s", path, strerror(errno));
    return NULL;
  }
  char *const text = malloc((size_t)about.st_size + 1);
  assert_non_null(text);
  const size_t bytes = fread(text, 1, (size_t)about.st_size, file);
  fclose(file);
  *bytes_out = bytes;
  return text;
}

static void assert_keeps_secrets(const char *path) {
  size_t bytes = 0;
  char *const text = read_whole(path, &bytes);
  const char *const found = memmem(text, bytes, SECRET, strlen(SECRET));
  if (found) fail_msg("%s, byte %td: %.24s", path, found - text, found);
  if (!memmem(text, bytes, SPOKEN, strlen(SPOKEN)))
    fail_msg("%s has not even what was given", path);
  free(text);
}

static void nothing_is_recorded_but_what_is_given(void **state) {
  char output[PATH_MAX];
  int status = -1, seen = 0;
  (void)state;
  snprintf(output, sizeof output, "%s", in_folder(SECRET "output"));
  const pid_t child = fork();
  if (child == 0) start_among_secrets(output);
  assert_int_equal(waitpid(child, &status, 0), child);
  if (status != 0) fail_msg("the child ended with status 0x%x", (unsigned)status);
  DIR *const entries = opendir(own.folder);
  assert_non_null(entries);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;) {
    if (!strstr(e->d_name, SECRET "output")) continue;
    assert_keeps_secrets(in_folder(e->d_name));
    seen++;
  }
  closedir(entries);
  void *const zstd = dlopen("libzstd.so.1", RTLD_NOW | RTLD_LOCAL);
  void *const sqlite = dlopen("libsqlite3.so.0", RTLD_NOW | RTLD_LOCAL);
  const int databases = sqlite && PROF_TEST_HAS_SQLITE ? 2 : 0;
  /* the capture, and one of each format */
  assert_int_equal(seen, 9 + (zstd != NULL) + databases);
  if (zstd) dlclose(zstd);
  if (sqlite) dlclose(sqlite);
}

/* ---- around each ---- */

static int fresh_folder(void **state) {
  const char *const base = getenv("TMPDIR");
  (void)state;
  snprintf(own.folder, sizeof own.folder, "%s/prof-security-XXXXXX", base ? base : "/tmp");
  return mkdtemp(own.folder) ? 0 : -1;
}

static int remove_folder(void **state) {
  char line[PATH_MAX];
  (void)state;
  snprintf(line, sizeof line, "rm -rf '%s'", own.folder);
  return system(line);
}

int main(int argc, char **argv) {
#define ENTRY(name) cmocka_unit_test_setup_teardown(name, fresh_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      ENTRY(the_environment_is_asked_for_these_names_alone),
      ENTRY(no_library_is_loaded_but_zlib_by_its_plain_name),
      ENTRY(memory_is_given_to_no_other_program),
      ENTRY(a_capture_cut_off_kills_its_process_by_sigbus_and_nobody_else),
      ENTRY(nothing_is_recorded_but_what_is_given),
  };
  if (argc == 2 && strcmp(argv[1], "has-memory") == 0) return memory_descriptor() >= 0;
  if (argc == 4 && strcmp(argv[1], "be-secretive") == 0) return be_secretive(argv);
  own.pages =
      mmap(NULL, 2 * sizeof *own.pages, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (own.pages == MAP_FAILED) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
