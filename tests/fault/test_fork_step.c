/* A handler forks at every instruction of prof's slow paths: chunk changes, a thread's first scope,
   a new site, the search for ended threads, calls under the control lock. Also at those of switches
   of fibers, of a thread's end and of dumps. In the child the handler returns, and the interrupted
   code goes on. The child then records scopes of its own and ends. It must not crash, hang or
   change the parent's capture or dump. The parent goes on when its child has ended: all of its
   scopes are recorded, and each once.

   The ways are fork(), _Fork() and a raw clone(), which runs no handlers: by turns, with
   PROF_LONG=1 each at each place. A walk through loops is long, so each address is interrupted at
   its first and last passage. In CI one place of 24 is, and none of a dump: support/share.h. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <cmocka.h>

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>

#include <prof/fiber.h>
#include <prof/memory.h>
#include <prof/profiler.h>
#include <prof/trace.h>

#include "base/port.h"
#include "core/buffer/arena.h"
#include "core/buffer/thread.h"
#include "hang_guard.h"
#include "health.h"
#include "sink/sink.h"
#include "support/captures.h"
#define SHARES 24u /* a fork takes some 20 ms */
#include "support/share.h"
#include "support/skip.h"
#include "support/tracee.h"

enum {
  WALK_MAX = 1 << 20,
  OWN_SCOPES = 3,
  WAYS = 3,
  NO_RESULT = -1,
  LIMIT_SHARE = 25,
  LONG_WALK = 100000,
  THIN = 24
};

/* Exit statuses of the forked child. */
enum {
  CHILD_IS_FINE = 0,
  CHILD_HAS_NO_HEALTH = 40,
  CHILD_LOSES,
  CHILD_HAS_OTHER_COUNT,
  CHILD_HAS_NO_CHUNK /* see known_limit() */
};

typedef struct scene {
  const char *name;
  void (*ready)(void);
  void (*act)(void);
  uint64_t in_act; /* events that the act records */
  int call_result; /* of a public call that is the act, in the parent; NO_RESULT: none */
  bool drops;      /* the act or what comes before overwrites, clears or loses records */
  /* The act is the end of its thread. What follows runs in a destructor that is called after
     prof's. */
  bool is_end;
  const char *(*look)(uint64_t recorded); /* the fault of what the act wrote; NULL: none */
} scene;

/* What all of these processes share. Atomic. */
typedef struct stage {
  int way, phase; /* 1: the act; 2: it is over, in the parent or its child; 3: in the parent */
  int forks, child_status;
  int call_result;
  uint64_t attempted, recorded, lost; /* the parent's in the end */
  uint64_t used_bytes;                /* of its arena */
} stage;
static stage *shared;

static struct {
  pid_t forked; /* in the child: its parent */
  uint64_t attempted;
} own;

/* ---- the traced process and its child ---- */

static void record(uint64_t count) {
  record_scopes(count);
  own.attempted += count;
}

static pid_t fork_by(int way) {
  switch (way) {
    case 0:
      return fork();
    case 1:
#if defined(__GLIBC__) && (__GLIBC__ > 2 || __GLIBC_MINOR__ >= 34)
      return _Fork();
#endif
    default:
      return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
  }
}

/* The fast path claimed from a chunk at NULL: its cursor is the first word. */
static void exit_without_chunk(int signal, siginfo_t *about, void *unused) {
  (void)unused;
  if (own.forked && !about->si_addr) _exit(CHILD_HAS_NO_CHUNK);
  const struct sigaction action = {.sa_handler = SIG_DFL};
  sigaction(signal, &action, NULL);
}

static void handler(int signal) {
  const pid_t parent = getpid();
  (void)signal;
  const pid_t child = fork_by(shared->way);
  if (child == 0) {
    alarm(hang_seconds() / 4); /* before its parent's */
    own.forked = parent;
    return;
  }
  int status = -1;
  while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  shared->child_status = status;
  shared->forks++;
}

/* What it loses is what the interrupted call recorded, at most. */
static int judge_child(uint64_t in_act) {
  prof_health health = {.size = sizeof health};
  if (prof_health_get(&health) == PROF_E_NOT_RUNNING) prof_start(1);
  const bool is_on = prof_level() != 0;
  record_scopes(OWN_SCOPES);
  if (prof_health_get(&health) != PROF_OK) return CHILD_HAS_NO_HEALTH;
  if (health_lost(&health) > in_act) return CHILD_LOSES;
  if (health.recorded_count < (is_on ? OWN_SCOPES : 0) ||
      health.recorded_count > OWN_SCOPES + in_act)
    return CHILD_HAS_OTHER_COUNT;
  return CHILD_IS_FINE;
}

static void judge_parent(void) {
  prof_health health = {.size = sizeof health};
  shared->attempted = own.attempted;
  if (prof_health_get(&health) == PROF_OK) {
    shared->recorded = health.recorded_count;
    shared->lost = health_lost(&health);
  }
  shared->used_bytes = prof_i_the_arena.base ? prof_i_arena_header()->used_bytes : 0;
}

static void finish(void *context) {
  const scene *const what = context;
  __atomic_store_n(&shared->phase, 2, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&own.forked, __ATOMIC_SEQ_CST)) _exit(judge_child(what->in_act));
  shared->phase = 3;
  record(OWN_SCOPES);
  judge_parent();
  tracee_trap();
}

static void body(void *context) {
  const scene *const what = context;
  pthread_key_t key;
  const struct sigaction action = {.sa_handler = handler, .sa_flags = SA_RESTART};
  static const int crashes[] = {SIGBUS, SIGFPE, SIGILL};
  for (size_t i = 0; i < sizeof crashes / sizeof *crashes; i++)
    signal(crashes[i], SIG_DFL); /* cmocka has handlers, which would go on in the child */
  const struct sigaction on_fault = {.sa_sigaction = exit_without_chunk, .sa_flags = SA_SIGINFO};
  sigaction(SIGSEGV, &on_fault, NULL);
  sigaction(SIGUSR1, &action, NULL);
  what->ready();
  own.attempted += what->in_act;
  /* glibc calls destructors in the order in which the keys were made */
  if (what->is_end && (pthread_key_create(&key, finish) || pthread_setspecific(key, what)))
    _exit(1);
  shared->phase = 1;
  tracee_trap();
  what->act();
  if (!what->is_end) finish(context);
}

/* ---- scenes ---- */

static void start_with(uint32_t policy, uint64_t cap_bytes, bool is_file) {
  const prof_options options = {.size = sizeof options,
                                .level = 1,
                                .policy = policy,
                                .cap_bytes = cap_bytes,
                                .path = is_file ? captures_path("out.json") : NULL};
  if (prof_start_with(&options) != PROF_OK) _exit(1);
}
static void start_memory(void) { start_with(PROF_POLICY_KEEP, 32 << 20, false); }
static void start_stream(void) { start_with(PROF_POLICY_STREAM, 4 << 20, true); }
static void start_ring(void) { start_with(PROF_POLICY_RING, 1 << 20, false); }

static void fill_chunk(void) {
  const prof_i_head *const chunk = prof_i_this_thread->chunk;
  while (chunk->cursor + 16 <= chunk->bytes) record(1);
}
static void fill_chunks(int count) {
  for (record(1); count > 0; count--) {
    fill_chunk();
    if (count > 1) record(1);
  }
}
static void ready_memory(void) {
  start_memory();
  fill_chunks(1);
}
static void ready_block(void) { /* the next chunk is large enough for a block */
  start_memory();
  fill_chunks(3);
}
static void ready_stream(void) {
  start_stream();
  fill_chunks(2);
}
static void ready_ring(void) {
  start_ring();
  prof_health health;
  do {
    fill_chunks(1);
    record(1);
    health = health_now();
  } while (!health.lost_count[PROF_LOSS_OVERWRITTEN]);
  fill_chunk();
}
static void ready_known(void) {
  start_memory();
  record(1);
  PROF_INSTANT("known", "fork", PROF_NO_ARGS);
  own.attempted++;
}
static void act_scope(void) { record_scopes(1); }
static void act_new_site(void) {
  WITH_BASE_PROFILER(PROF_HOST, "new", "fork", PROF_ARGS("one", 1, "text", "two"), {});
}
static void act_instant(void) {
  for (int i = 0; i < 2; i++) PROF_INSTANT("instant", "fork", PROF_ARGS("one", 1));
}
static void act_counter(void) { PROF_COUNTER("counter", 1.0); }
static prof_pool *pool;
static void ready_memory_events(void) {
  const prof_pool_options options = {.size = sizeof options, .name = "forked"};
  ready_known();
  if (prof_memory_start() != PROF_OK || prof_pool_create(&options, &pool) != PROF_OK) _exit(1);
}
static void act_memory_events(void) { /* the first two go the slow way */
  int piece;
  for (int i = 0; i < 2; i++) {
    prof_memory_alloc_for(pool, &piece, 100, 128, 7, 9);
    prof_memory_free(pool, &piece, 128);
  }
}
static void act_new_pool(void) {
  const prof_pool_options options = {.size = sizeof options, .name = "another"};
  const int result = prof_pool_create(&options, &pool);
  if (!own.forked) shared->call_result = result;
}

static void act_deep(void) {
  uint64_t open[70];
  for (int i = 0; i < 70; i++) open[i] = prof_scope_begin(1, "deep", "fork", NULL);
  for (int i = 70; i-- > 0;) prof_scope_end(open[i]);
}
static void act_crossed(void) {
  const uint64_t one = prof_scope_begin(1, "one", "fork", NULL),
                 two = prof_scope_begin(1, "two", "fork", NULL);
  prof_scope_end(one);
  prof_scope_end(two);
}

static void *record_and_end(void *tid_out) {
  record_scopes(1);
  *(uint64_t *)tid_out = prof_i_port_tid();
  syscall(SYS_exit, 0); /* so that no destructor of prof is called */
  return NULL;
}
static void ready_ended(void) {
  start_memory();
  record(1);
  for (int i = 0; i < 2; i++) {
    pthread_t thread;
    uint64_t tid = 0;
    if (pthread_create(&thread, NULL, record_and_end, &tid) != 0) _exit(1);
    pthread_join(thread, NULL);
    WAIT_WHILE(!prof_i_port_has_thread_ended((uint64_t)getpid(), tid));
    own.attempted++;
  }
}
static void act_health(void) {
  prof_health health = {.size = sizeof health};
  shared->call_result = own.forked ? shared->call_result : prof_health(&health);
}
static void act_start(void) {
  const prof_options options = {.size = sizeof options, .level = 1, .cap_bytes = 2 << 20};
  const int result = prof_start_with(&options);
  if (!own.forked) shared->call_result = result;
}
static void act_stop_and_start(void) {
  prof_stop();
  const int result = prof_start(1);
  if (!own.forked) shared->call_result = result;
}
static void act_clear(void) {
  const int result = prof_clear();
  if (!own.forked) shared->call_result = result;
}
static void ready_nothing(void) {}
static void act_nothing(void) {}

/* The first fiber has recorded, the second one has not. */
static prof_fiber *fibers[2];
static void make_fibers(void) {
  for (int i = 0; i < 2; i++)
    if (prof_fiber_create("fiber", &fibers[i]) != PROF_OK) _exit(1);
  prof_fiber_enter(fibers[0]);
  record(1);
  prof_fiber_leave();
}
static void ready_fibers(void) {
  ready_known();
  make_fibers();
}
static void act_switch(void) {
  prof_fiber_enter(fibers[0]);
  record_scopes(1);
  prof_fiber_enter(fibers[1]);
  record_scopes(1);
  prof_fiber_leave();
  record_scopes(1);
}
static void ready_in_fiber(void) {
  ready_fibers();
  prof_fiber_enter(fibers[0]);
}
static void act_destroy(void) {
  prof_fiber_destroy(fibers[0]);
  prof_fiber_destroy(fibers[1]);
}

static void ready_open(void) {
  ready_known();
  prof_scope_begin(1, "open", "fork", NULL);
}
static void ready_open_in_fiber(void) {
  ready_in_fiber();
  prof_scope_begin(1, "open", "fork", NULL);
}

static void ready_dump(void) {
  start_memory();
  record(2);
}
static void act_dump(void) {
  const int result = prof_dump(captures_path("dump.json"));
  if (!own.forked) shared->call_result = result;
}
static prof_trace *trace;
static void ready_trace_dump(void) {
  ready_dump();
  if (prof_get(&trace) != PROF_OK) _exit(1);
}
static void act_trace_dump(void) {
  const int result = prof_trace_dump(trace, captures_path("dump.json"), NULL);
  if (!own.forked) shared->call_result = result;
}
static void ready_stream_dump(void) {
  start_stream();
  record(2);
}
static void act_stream_dump(void) {
  const int result = prof_dump(NULL);
  if (!own.forked) shared->call_result = result;
}

/* An output is written for the most part: the rest, and its final name. */
enum { FILE_BYTES = PROF_I_SINK_BYTES + PROF_I_SINK_BYTES / 2 };
static prof_i_sink sink;
static char pattern_at(size_t i) { return (char)('a' + i % 23); }
static void ready_file(void) {
  ready_known();
  if (prof_i_sink_open_file(&sink, captures_path("dump.json"), false, false) != PROF_OK) _exit(1);
  for (size_t i = 0; i < FILE_BYTES; i++) {
    const char byte = pattern_at(i);
    prof_i_sink_bytes(&sink, &byte, 1);
  }
}
static void ready_replacing_file(void) {
  FILE *const old = fopen(captures_path("dump.json"), "w");
  if (!old || fputs("old", old) < 0 || fclose(old) != 0) _exit(1);
  ready_file();
}
static void act_commit(void) {
  const int result = prof_i_sink_commit(&sink);
  if (!own.forked) shared->call_result = result;
}

/* Without filters in the kernel these walks are as those of another file. */
static void install_filter(struct sock_filter *lines, unsigned short count) {
  const struct sock_fprog filter = {count, lines};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0)
    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter);
}
/* As on file systems without O_TMPFILE: an output has a temporary name. */
static void refuse_nameless_files(void) {
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_openat, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[2])),
      BPF_JUMP(BPF_JMP | BPF_JSET | BPF_K, O_TMPFILE & ~O_DIRECTORY, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install_filter(lines, sizeof lines / sizeof *lines);
}
/* As in some sandboxes: an output without a name is copied to one that has a name. */
static void refuse_links(void) {
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  install_filter(lines, sizeof lines / sizeof *lines);
}
static char pattern[FILE_BYTES];
static void ready_pattern(void) {
  ready_known();
  for (size_t i = 0; i < FILE_BYTES; i++) pattern[i] = pattern_at(i);
}
static void ready_named_file(void) {
  ready_pattern();
  refuse_nameless_files();
}
static void ready_copied_file(void) {
  ready_pattern();
  refuse_links();
}
static void act_file(void) {
  int result = prof_i_sink_open_file(&sink, captures_path("dump.json"), false, false);
  if (result == PROF_OK) {
    prof_i_sink_bytes(&sink, pattern, FILE_BYTES);
    result = prof_i_sink_commit(&sink);
  }
  if (!own.forked) shared->call_result = result;
}
static const char *look_at_file(uint64_t unused) {
  static char bytes[FILE_BYTES + 1];
  (void)unused;
  DIR *const folder = opendir(captures.folder);
  uint64_t files = 0;
  if (!folder) return "the folder cannot be read";
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;)
    files += entry->d_name[0] != '.' || strstr(entry->d_name, ".tmp");
  closedir(folder);
  if (files != 1) return "the output is not the folder's only file";
  FILE *const file = fopen(captures_path("dump.json"), "r");
  const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  for (size_t i = 0; i < count; i++)
    if (bytes[i] != pattern_at(i)) return "the output has other bytes";
  return count == FILE_BYTES ? NULL : "the output has another size";
}

/* The dump has what was recorded before it, and the folder no other file. */
static const char *look_at_dump(uint64_t recorded) {
  static char text[1 << 20];
  static const char scope[] = "\"ph\":\"X\",\"cat\":\"x\",\"name\":\"scope\"";
  DIR *const folder = opendir(captures.folder);
  uint64_t files = 0, scopes = 0;
  size_t bytes = 0;
  if (!folder) return "the folder cannot be read";
  for (const struct dirent *entry; (entry = readdir(folder)) != NULL;) {
    const size_t length = strlen(entry->d_name);
    if (length < 5 || strcmp(entry->d_name + length - 5, ".json") != 0) {
      if (strstr(entry->d_name, ".tmp")) files = 2;
      continue;
    }
    files++;
    FILE *const file = fopen(captures_path(entry->d_name), "r");
    if (file) bytes = fread(text, 1, sizeof text - 1, file);
    if (file) fclose(file);
  }
  closedir(folder);
  text[bytes] = 0;
  for (const char *at = text; (at = strstr(at, scope)) != NULL; at++) scopes++;
  if (files != 1) return "the dump is not the folder's only file";
  if (strlen(text) != bytes || bytes < 2 || strcmp(text + bytes - 2, "}\n") != 0)
    return "the dump is cut or has foreign bytes";
  return scopes + OWN_SCOPES == recorded ? NULL : "the dump has other scopes";
}

/* ---- the walk, and one fork ---- */

typedef struct place {
  uint64_t at;
  uint32_t occurrence; /* from 1 */
} place;

static struct {
  place *places;
  size_t count;
  uint64_t forks, missed;
  uint64_t limits;     /* forks that met known_limit() */
  uint64_t used_bytes; /* without a fork */
} walk;

static int by_address(const void *a, const void *b) {
  const place *const x = a, *const y = b;
  return (x->at > y->at) - (x->at < y->at);
}

/* CI takes fewer places of a long walk. */
static void choose_places(void) {
  const uint32_t wanted = share(), thin = walk.count > LONG_WALK ? THIN : 1;
  size_t kept = 0, met = 0;
  uint32_t occurrence = 0;
  qsort(walk.places, walk.count, sizeof *walk.places, by_address);
  for (size_t i = 0; i < walk.count; i++) {
    const uint64_t at = walk.places[i].at;
    occurrence = i && walk.places[i - 1].at == at ? occurrence + 1 : 1;
    walk.places[i].occurrence = occurrence;
  }
  for (size_t i = 0; i < walk.count; i++) {
    const bool is_last = i + 1 == walk.count || walk.places[i + 1].at != walk.places[i].at;
    if (walk.places[i].occurrence != 1 && !is_last) continue;
    if (wanted == SHARES || met++ % (SHARES * thin) == wanted * thin)
      walk.places[kept++] = walk.places[i];
  }
  walk.count = kept;
}

static void begin(tracee *child, const scene *what, int way) {
  memset(shared, 0, sizeof *shared);
  shared->way = way;
  shared->call_result = NO_RESULT;
  if (!tracee_begin(child, body, (void *)(uintptr_t)what, what->is_end))
    fail_msg("%s: the process ended before the walk, status %x", what->name,
             (unsigned)child->status);
}

static void find_places(const scene *what) {
  tracee child = {0};
  begin(&child, what, 0);
  for (walk.count = 0; shared->phase == 1 && walk.count < WALK_MAX; walk.count++) {
    walk.places[walk.count].at = tracee_at(&child);
    tracee_step(&child);
    if (child.signal != SIGTRAP)
      fail_msg("%s: signal %d after %zu instructions", what->name, child.signal, walk.count);
  }
  tracee_continue(&child, 0);
  walk.used_bytes = shared->used_bytes;
  const char *const fault = what->look ? what->look(shared->recorded) : NULL;
  if (fault) fail_msg("%s: without a fork: %s", what->name, fault);
  tracee_end(&child);
  captures_clear();
}

extern char __executable_start;

/* Without handlers, the child has its parent's arena until prof sees that it is a child. If the
   handler came between two instructions before a claim, the child fails at that claim, or writes
   one record to the parent: see docs/limits.md. */
static bool known_limit(const scene *what, int way) {
  if (way == 0) return false;
  if (WIFEXITED(shared->child_status) && WEXITSTATUS(shared->child_status) == CHILD_HAS_NO_CHUNK)
    return true;
  return shared->child_status == CHILD_IS_FINE &&
         shared->recorded + shared->lost == shared->attempted + 1 && (!shared->lost || what->drops);
}

/* NULL: all is well. */
static const char *fault_of(const scene *what, int way, const tracee *child) {
  if (child->signal != SIGTRAP || shared->phase != 3) return "the parent did not come to its end";
  if (shared->forks != 1) return "the handler did not run once";
  if (known_limit(what, way)) {
    walk.limits++;
    return NULL;
  }
  if (shared->child_status != CHILD_IS_FINE) return "the child failed";
  if (shared->call_result != what->call_result) return "the parent's call has another result";
  if (shared->recorded + shared->lost != shared->attempted || (shared->lost && !what->drops))
    return "the parent's ledger is wrong";
  if (shared->used_bytes != walk.used_bytes) return "the parent's arena has another size";
  return what->look ? what->look(shared->recorded) : NULL;
}

/* False: this time it took another way, and never came to the place. */
static bool fork_at(const scene *what, const place *where, int way) {
  tracee child = {0};
  begin(&child, what, way);
  const bool is_there = tracee_run_to(&child, where->at, where->occurrence) && shared->phase == 1;
  const char *fault = NULL;
  if (is_there) {
    tracee_continue(&child, SIGUSR1);
    while (child.signal == SIGCHLD) tracee_continue(&child, 0);
    fault = fault_of(what, way, &child);
    walk.forks++;
  }
  const stage seen = *shared;
  tracee_end(&child);
  captures_clear();
  if (!fault) return is_there;
  print_error(
      "%s, way %d, fork at %+lld in the executable, passage %u: %s: signal %d, phase %d, child's "
      "status %x, result %d, %llu attempted, %llu recorded, %llu lost, %llu bytes used\n",
      what->name, way, (long long)(where->at - (uint64_t)(uintptr_t)&__executable_start),
      where->occurrence, fault, child.signal, seen.phase, (unsigned)seen.child_status,
      seen.call_result, (unsigned long long)seen.attempted, (unsigned long long)seen.recorded,
      (unsigned long long)seen.lost, (unsigned long long)seen.used_bytes);
  if (!getenv("PROF_TEST_GO_ON")) fail();
  return true;
}

static void fork_everywhere(const scene *what) {
  const bool is_long = share() == SHARES;
  const uint64_t forks = walk.forks, missed = walk.missed, limits = walk.limits;
  hang_guard();
  find_places(what);
  const size_t walked = walk.count;
  choose_places();
  for (size_t i = 0; i < walk.count; i++)
    for (int way = 0; way < WAYS; way++)
      if (is_long || (int)(i % WAYS) == way) walk.missed += !fork_at(what, &walk.places[i], way);
  print_message(
      "  %-36s %7zu instructions, %llu forks, %llu met a known limit, %llu not reached again\n",
      what->name, walked, (unsigned long long)(walk.forks - forks),
      (unsigned long long)(walk.limits - limits), (unsigned long long)(walk.missed - missed));
}

#define SCENES(X)                                                                                \
  X(a_chunk_change, ready_memory, act_scope, 1, NO_RESULT, false, false, NULL)                   \
  X(a_chunk_change_that_opens_a_block, ready_block, act_scope, 1, NO_RESULT, false, false, NULL) \
  X(a_chunk_change_of_a_stream, ready_stream, act_scope, 1, NO_RESULT, false, false, NULL)       \
  X(a_chunk_change_of_a_ring, ready_ring, act_scope, 1, NO_RESULT, true, false, NULL)            \
  X(the_first_scope, start_memory, act_scope, 1, NO_RESULT, false, false, NULL)                  \
  X(a_new_site, ready_known, act_new_site, 1, NO_RESULT, false, false, NULL)                     \
  X(instants, ready_known, act_instant, 2, NO_RESULT, false, false, NULL)                        \
  X(a_counter, ready_known, act_counter, 1, NO_RESULT, false, false, NULL)                       \
  X(memory_events, ready_memory_events, act_memory_events, 4, NO_RESULT, false, false, NULL)     \
  X(a_new_pool, ready_memory_events, act_new_pool, 0, PROF_OK, false, false, NULL)               \
  X(deep_scopes, ready_known, act_deep, 70, NO_RESULT, false, false, NULL)                       \
  X(crossed_scopes, ready_known, act_crossed, 2, NO_RESULT, false, false, NULL)                  \
  X(a_search_for_ended_threads, ready_ended, act_health, 0, PROF_OK, false, false, NULL)         \
  X(a_start, ready_nothing, act_start, 0, PROF_OK, false, false, NULL)                           \
  X(a_stop_and_a_start, ready_known, act_stop_and_start, 0, PROF_OK, false, false, NULL)         \
  X(a_clear, ready_known, act_clear, 0, PROF_OK, true, false, NULL)                              \
  X(a_switch_of_fibers, ready_fibers, act_switch, 3, NO_RESULT, false, false, NULL)              \
  X(an_end_of_fibers, ready_in_fiber, act_destroy, 0, NO_RESULT, false, false, NULL)             \
  X(a_thread_end, ready_known, act_nothing, 0, NO_RESULT, false, true, NULL)                     \
  X(a_thread_end_with_an_open_scope, ready_open, act_nothing, 1, NO_RESULT, true, true, NULL)    \
  X(a_thread_end_in_a_fiber, ready_open_in_fiber, act_nothing, 0, NO_RESULT, false, true, NULL)  \
  X(a_commit, ready_file, act_commit, 0, PROF_OK, false, false, look_at_file)                    \
  X(a_commit_over_a_file, ready_replacing_file, act_commit, 0, PROF_OK, false, false,            \
    look_at_file)                                                                                \
  X(a_file_with_a_temporary_name, ready_named_file, act_file, 0, PROF_OK, false, false,          \
    look_at_file)                                                                                \
  X(a_file_that_is_copied, ready_copied_file, act_file, 0, PROF_OK, false, false, look_at_file)  \
  X(a_dump, ready_dump, act_dump, 0, PROF_OK, false, false, look_at_dump)                        \
  X(a_dump_of_a_trace, ready_trace_dump, act_trace_dump, 0, PROF_OK, false, false, look_at_dump) \
  X(a_dump_of_a_stream, ready_stream_dump, act_stream_dump, 0, PROF_OK, false, false, look_at_dump)

#define TEST(name_, ready_, act_, in_act_, result_, drops_, is_end_, look_)                     \
  static void name_##_survives_a_fork_anywhere(void **state) {                                  \
    static const scene what = {#name_, ready_, act_, in_act_, result_, drops_, is_end_, look_}; \
    (void)state;                                                                                \
    fork_everywhere(&what);                                                                     \
  }
SCENES(TEST)

static void few_forks_meet_a_known_limit(void **state) {
  (void)state;
  assert_in_range(walk.limits, 0, walk.forks / LIMIT_SHARE);
}

static int clean(void **state) {
  (void)state;
  captures_clear();
  return 0;
}

int main(int argc, char **argv) {
#define ENTRY(name_, ready_, act_, in_act_, result_, drops_, is_end_, look_) \
  cmocka_unit_test_teardown(name_##_survives_a_fork_anywhere, clean),
  const struct CMUnitTest tests[] = {SCENES(ENTRY) cmocka_unit_test(few_forks_meet_a_known_limit)};
  skip_unless_steppable();
  if (argc > 1)
    cmocka_set_test_filter(argv[1]);
  else if (!getenv("PROF_LONG")) /* half a million instructions each */
    cmocka_set_skip_filter("a_dump_*");
  const int flags = MAP_SHARED | MAP_ANONYMOUS;
  shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, flags, -1, 0);
  walk.places = malloc(WALK_MAX * sizeof *walk.places);
  if (shared == MAP_FAILED || !walk.places || !captures_make_folder(true)) return 1;
  const int failed = cmocka_run_group_tests(tests, NULL, NULL);
  say_share();
  print_message("%llu forks, %llu places not reached again\n", (unsigned long long)walk.forks,
                (unsigned long long)walk.missed);
  captures_remove_folder();
  return failed;
}
