/* The other ways to die: a bad address, a file that became shorter, abort(), a stack that is used
   up, no memory, _exit(), and exec() inside of a scope. Other threads record, start and stop,
   clear, dump, or change chunks without end. What had ended is there or counted, what the dying
   thread was inside of is shown, and no half-written file stands under a final name.

   PROF_DEATHS: how many of each way in each situation (20). PROF_DEATHS_SEED: of the instants. */
#define _GNU_SOURCE
#include <prof/profiler.h>
#include <prof/trace.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>

#include <cmocka.h>

#include "core/buffer/thread.h"
#include "fault/support/captures.h"
#include "fault/support/skip.h"
#include "hang_guard.h"

/* the one that dies counts, too */
enum { RECORDERS = 2, COUNTS = RECORDERS + 1, LONGEST_US = 4000 };

/* ---- how it dies ---- */

static void by_bad_address(void) { *(volatile int *)(uintptr_t)getpagesize() = 1; }

static void by_short_file(void) {
  const int fd = open(captures_path("short"), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  volatile char *const at = ftruncate(fd, 4096) == 0
                                ? mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0)
                                : MAP_FAILED;
  if (at == MAP_FAILED || ftruncate(fd, 0) != 0) _exit(9);
  *at = 1;
}

static int (*volatile deeper)(int);
static int go_deeper(int depth) {
  volatile char room[4096];
  room[0] = (char)depth;
  WITH_BASE_PROFILER(PROF_HOST, "deeper", "death", PROF_NO_ARGS, { depth = deeper(depth + 1); });
  return depth + room[0];
}
static void by_used_up_stack(void) {
  deeper = go_deeper;
  deeper(0);
}

static void by_no_memory(void) {
  const struct rlimit limit = {64 << 20, 64 << 20};
  setrlimit(RLIMIT_AS, &limit);
  for (;;) {
    char *const piece = malloc(1 << 20);
    if (!piece) abort(); /* what programs do */
    memset(piece, 1, 1 << 20);
  }
}

static void by_exit(void) { _exit(0); }

static void by_exec(void) {
  execl("/bin/true", "true", (char *)NULL);
  _exit(9);
}

static const struct {
  const char *name;
  void (*die)(void);
  int signal; /* 0: it exits */
} ways[] = {
    {"bad address", by_bad_address, SIGSEGV},
    {"short file", by_short_file, SIGBUS},
    {"abort", abort, SIGABRT},
    {"used-up stack", by_used_up_stack, SIGSEGV},
    {"no memory", by_no_memory, SIGABRT},
    {"_exit", by_exit, 0},
    {"exec", by_exec, 0},
};
enum { WAYS = sizeof ways / sizeof *ways };

/* ---- what goes on meanwhile ---- */

typedef enum situation {
  RECORDING,
  STARTING,
  CLEARING,
  DUMPING,
  CHANGING_CHUNKS,
  SITUATIONS
} situation;
static const char *const situation_names[] = {"recording", "start and stop", "clear", "dump",
                                              "chunk changes"};

static struct {
  volatile struct {
    uint64_t ended, pad[7]; /* of one recorder: scopes that saw the level on, and have ended */
  } * recorders;
  prof_options options;
  void (*die)(void);
  uint32_t wait_us;
  uint64_t random;
  uint64_t recovered, lost, early;
} own;

static uint64_t next_random(void) {
  own.random ^= own.random << 13;
  own.random ^= own.random >> 7;
  own.random ^= own.random << 17;
  return own.random;
}

static void *record(void *which) {
  volatile uint64_t *const ended = &own.recorders[(intptr_t)which].ended;
  for (uint64_t i = 0;; i++) {
    int was_on = 0;
    WITH_BASE_PROFILER((was_on = 1, PROF_HOST), "work", "death",
                       PROF_ARGS("i", i, "text", "some text"), {});
    if (was_on) ++*ended;
  }
  return NULL;
}

static void *record_wide(void *which) {
  static char text[6000];
  volatile uint64_t *const ended = &own.recorders[(intptr_t)which].ended;
  memset(text, 'w', sizeof text - 1);
  for (;;) {
    WITH_BASE_PROFILER(PROF_HOST, "work", "death", PROF_ARGS("text", text), {});
    ++*ended;
  }
  return NULL;
}

static void *meddle(void *what) {
  char path[CAPTURE_PATH_MAX];
  snprintf(path, sizeof path, "%s", captures_path("dump.json"));
  for (;;) {
    switch ((situation)(intptr_t)what) {
      case STARTING:
        prof_stop();
        prof_start_with(&own.options);
        break;
      case CLEARING:
        prof_clear();
        nanosleep(&(const struct timespec){0, 100000}, NULL);
        break;
      case DUMPING:
        prof_dump(path);
        break;
      default:
        pause();
    }
  }
  return NULL;
}

/* A thread's, or a call site's, first scope may be turned away by a clear: so it tries again,
   unless the level may be off. */
static void *die_inside(void *what) {
  nanosleep(&(const struct timespec){0, own.wait_us * 1000L}, NULL);
  while (own.die) {
    int was_on = 0;
    WITH_BASE_PROFILER((was_on = 1, PROF_HOST), "where it dies", "death", PROF_NO_ARGS, {
      if (prof_i_this_thread->slot->open[1].ticks || (situation)(intptr_t)what == STARTING)
        own.die();
    });
    if (was_on) ++own.recorders[RECORDERS].ended;
    nanosleep(&(const struct timespec){0, 20000}, NULL);
  }
  return NULL;
}

static void live_and_die(situation what) {
  pthread_t thread;
  pthread_attr_t attr;
  setrlimit(RLIMIT_CORE, &(const struct rlimit){0, 0});
  for (int way = 0; way < WAYS; way++) /* cmocka has handlers for some */
    if (ways[way].signal) signal(ways[way].signal, SIG_DFL);
  pthread_attr_init(&attr);
  pthread_attr_setstacksize(&attr, 256 << 10);
  if (prof_start_with(&own.options) != PROF_OK) _exit(7);
  for (intptr_t i = 0; i < RECORDERS; i++)
    if (pthread_create(&thread, &attr, what == CHANGING_CHUNKS ? record_wide : record, (void *)i) !=
        0)
      _exit(6);
  if (pthread_create(&thread, &attr, die_inside, (void *)(intptr_t)what) != 0) _exit(6);
  meddle((void *)(intptr_t)what);
}

/* ---- what is left ---- */

static bool is_whole_json(const char *path) {
  char end[16] = "";
  FILE *const file = fopen(path, "r");
  if (!file) return true;
  if (fseek(file, -8, SEEK_END) != 0 || fread(end, 1, 8, file) != 8) end[0] = '\0';
  fclose(file);
  for (int i = 7; i >= 0; i--)
    if (end[i] != '\n' && end[i] != ' ') return end[i] == '}';
  return false;
}

/* Is the scope in which it died shown open? Not if the level was off when it began. */
static bool shows_where(const prof_trace *trace) {
  prof_cursor *cursor = NULL;
  prof_event *const event = calloc(1, sizeof *event);
  bool found = false;
  if (!event || prof_cursor_create(trace, &cursor) != PROF_OK) abort();
  while (!found && prof_cursor_next(cursor, event) == 1)
    found = event->kind == PROF_EVENT_OPEN && event->name_bytes == 13 &&
            memcmp(event->name, "where it dies", 13) == 0;
  prof_cursor_destroy(cursor);
  free(event);
  return found;
}

static void judge(const char *name, situation what) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  uint64_t ended = 0, lost = 0;
  captures_look();
  for (int i = 0; i < COUNTS; i++) ended += own.recorders[i].ended;
  if (!is_whole_json(captures_path("dump.json")))
    fail_msg("%s, %s: dump.json is cut off", name, situation_names[what]);
  if (captures.count != 1) {
    own.early++;
    if (ended)
      fail_msg("%s, %s: %llu scopes had ended, and %zu captures are there", name,
               situation_names[what], (unsigned long long)ended, captures.count);
    return;
  }
  const int status = prof_trace_open(captures_path(captures.names[0]), &trace);
  if (status != PROF_OK)
    fail_msg("%s, %s: %s (%s)", name, situation_names[what], prof_status_name(status),
             prof_last_error());
  prof_trace_info_get(trace, &info);
  const bool is_shown = shows_where(trace);
  prof_trace_destroy(trace);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    lost += i == PROF_LOSS_UNFINISHED ? 0 : info.lost_count[i];
  if (info.bad_count)
    fail_msg("%s, %s: %llu bad", name, situation_names[what], (unsigned long long)info.bad_count);
  if (info.is_live) fail_msg("%s, %s: it is called alive", name, situation_names[what]);
  if (what != STARTING && !is_shown)
    fail_msg("%s, %s: where it died is not shown", name, situation_names[what]);
  /* One more of each recorder may have ended and not been counted; and a clear may turn away what a
     stack overflows with. */
  const uint64_t seen = info.scope_count + lost;
  if (seen < ended || (seen > ended + COUNTS && own.die != by_used_up_stack))
    fail_msg("%s, %s: %llu recovered + %llu lost, %llu had ended", name, situation_names[what],
             (unsigned long long)info.scope_count, (unsigned long long)lost,
             (unsigned long long)ended);
  own.recovered += info.scope_count;
  own.lost += lost;
}

static void run_once(int way, situation what) {
  char path[CAPTURE_PATH_MAX];
  int status = 0;
  snprintf(path, sizeof path, "%s", captures_path("out.json"));
  own.options =
      (prof_options){.size = sizeof own.options,
                     .policy = what == CHANGING_CHUNKS ? PROF_POLICY_RING : PROF_POLICY_STREAM,
                     .cap_bytes = what == CHANGING_CHUNKS ? 1 << 20 : 256 << 20,
                     .path = path,
                     .keep_capture = 1};
  own.die = ways[way].die;
  own.wait_us = (uint32_t)(next_random() % LONGEST_US);
  memset((void *)(uintptr_t)own.recorders, 0, COUNTS * sizeof *own.recorders);
  fflush(NULL);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    hang_guard();
    live_and_die(what);
  }
  assert_int_equal(waitpid(child, &status, 0), child);
  if (ways[way].signal ? !WIFSIGNALED(status) || WTERMSIG(status) != ways[way].signal : status != 0)
    fail_msg("%s, %s: status %x", ways[way].name, situation_names[what], (unsigned)status);
  judge(ways[way].name, what);
  captures_clear();
}

static void die_often(situation what) {
  const char *const set = getenv("PROF_DEATHS");
  const int times = set ? atoi(set) : SKIP_SANITIZED ? 4 : 10;
  own.recovered = own.lost = own.early = 0;
  for (int way = 0; way < WAYS; way++)
    for (int i = 0; i < times; i++) run_once(way, what);
  print_message(
      "  %-14s %4d deaths: %llu scopes recovered, %llu counted as lost, %llu before the capture "
      "was there\n",
      situation_names[what], times * WAYS, (unsigned long long)own.recovered,
      (unsigned long long)own.lost, (unsigned long long)own.early);
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

static void deaths_while_recording(void **state) {
  (void)state;
  die_often(RECORDING);
}
static void deaths_during_start_and_stop(void **state) {
  (void)state;
  die_often(STARTING);
}
static void deaths_during_clear(void **state) {
  (void)state;
  die_often(CLEARING);
}
static void deaths_during_a_dump(void **state) {
  (void)state;
  die_often(DUMPING);
}
static void deaths_during_chunk_changes(void **state) {
  (void)state;
  die_often(CHANGING_CHUNKS);
}

int main(int argc, char **argv) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test_teardown(deaths_while_recording, clean),
      cmocka_unit_test_teardown(deaths_during_start_and_stop, clean),
      cmocka_unit_test_teardown(deaths_during_clear, clean),
      cmocka_unit_test_teardown(deaths_during_a_dump, clean),
      cmocka_unit_test_teardown(deaths_during_chunk_changes, clean),
  };
  const char *const seed = getenv("PROF_DEATHS_SEED");
  if (SKIP_SANITIZED) skip_because("the sanitizers catch the signals, and the stack's end");
  if (argc > 1) cmocka_set_test_filter(argv[1]);
  own.random = seed ? strtoull(seed, NULL, 0) : (uint64_t)time(NULL) * 0x9e3779b97f4a7c15ull | 1;
  own.recorders = mmap(NULL, COUNTS * sizeof *own.recorders, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (own.recorders == MAP_FAILED || !captures_make_folder(false)) return 1;
  print_message("PROF_DEATHS_SEED=%#llx\n", (unsigned long long)own.random);
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  captures_clear();
  captures_remove_folder();
  return failed;
}
