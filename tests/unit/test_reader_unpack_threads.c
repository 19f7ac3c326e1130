/* Two threads unpack a packed capture, into memory and into a temporary file. The bytes are as by
   one thread, and the same damage is counted. If both threads fail, the error is that of the first
   part in the file.

   sched_getaffinity(), pthread_create(), pthread_join() and pwrite() here stand in front of those
   of libc. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/worker.h"
#include "format/packed.h"
#include "reader/capture.h"
#include "trace_checks.h"

/* Part 0 has the sites, the others are chunks. */
enum { CHUNKS = 40, PARTS = CHUNKS + 1, SCOPES = 900, ROOM = 1 << 20, NONE = -1 };

static capture plain;
static _Alignas(64) unsigned char file[ROOM];
static uint64_t file_bytes;
static uint64_t places[PARTS]; /* of parts in the plain capture */

/* ---- what happens while a capture is unpacked ---- */

typedef enum thread_limit { TWO_THREADS, NO_THREAD_TO_CREATE } thread_limit;

static struct {
  thread_limit limit;
  int zstd_from, zstd_to; /* these parts need zstd */
  bool has_no_zstd;       /* it cannot be opened */
  int damaged[2];         /* these parts are */
  int full_at;            /* the disk is, when this part is written */
  int waiting, awaited;   /* a part waits until another one has stopped its thread */
  bool meets;             /* two parts wait until both are being unpacked */
  bool forks;             /* and then the caller forks */
  pthread_barrier_t both; /* for meets */
} plan;

static struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  pthread_t caller;
  int created_count, joined_count; /* threads */
  int zstd_count, zstd_open_count;
  int met_count;
  int by_caller, by_other; /* parts */
  bool has_stopped[PARTS];
  pid_t child; /* 0: in the child */
} seen = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER, .child = NONE};

int sched_getaffinity(pid_t pid, size_t bytes, cpu_set_t *set) {
  (void)pid;
  memset(set, 0, bytes);
  CPU_SET(0, set);
  CPU_SET(1, set);
  return 0;
}

int pthread_create(pthread_t *thread, const pthread_attr_t *attributes, void *(*work)(void *),
                   void *argument) {
  int (*create)(pthread_t *, const pthread_attr_t *, void *(*)(void *), void *);
  if (plan.limit == NO_THREAD_TO_CREATE) return EAGAIN;
  seen.created_count++;
  *(void **)&create = dlsym(RTLD_NEXT, "pthread_create");
  return create(thread, attributes, work, argument);
}

int pthread_join(pthread_t thread, void **result_out) {
  int (*join)(pthread_t, void **);
  seen.joined_count++;
  *(void **)&join = dlsym(RTLD_NEXT, "pthread_join");
  return join(thread, result_out);
}

static bool has_two_threads(void) { return seen.created_count > 0; }

static int part_at(uint64_t plain_offset) {
  for (int i = 0; i < PARTS; i++)
    if (places[i] == plain_offset) return i;
  return NONE;
}

static void stop_at(int part) {
  pthread_mutex_lock(&seen.lock);
  seen.has_stopped[part] = true;
  pthread_cond_broadcast(&seen.changed);
  pthread_mutex_unlock(&seen.lock);
}

static void wait_for_stop_at(int part) {
  pthread_mutex_lock(&seen.lock);
  while (!seen.has_stopped[part]) pthread_cond_wait(&seen.changed, &seen.lock);
  pthread_mutex_unlock(&seen.lock);
}

ssize_t pwrite(int fd, const void *bytes, size_t count, off_t offset) {
  if (plan.full_at != NONE && (uint64_t)offset >= places[plan.full_at] &&
      (uint64_t)offset < places[plan.full_at] + PROF_I_UNIT_BYTES) {
    if (plan.waiting == plan.full_at && has_two_threads()) wait_for_stop_at(plan.awaited);
    stop_at(plan.full_at);
    errno = ENOSPC;
    return -1;
  }
  return syscall(SYS_pwrite64, fd, bytes, count, offset);
}

/* Of the object only its address is used. */
int __wrap_prof_i_zstd_create(const char *what, prof_i_zstd **zstd_out);
int __wrap_prof_i_zstd_create(const char *what, prof_i_zstd **zstd_out) {
  (void)what;
  if (plan.has_no_zstd) return prof_i_fail(PROF_E_UNSUPPORTED, "no zstd");
  seen.zstd_count++;
  seen.zstd_open_count++;
  *zstd_out = (prof_i_zstd *)(void *)&seen;
  return PROF_OK;
}

void __wrap_prof_i_zstd_destroy(prof_i_zstd *zstd);
void __wrap_prof_i_zstd_destroy(prof_i_zstd *zstd) { seen.zstd_open_count -= zstd != NULL; }

/* The first two parts are unpacked at the same time. */
static void meet(bool is_caller) {
  pthread_mutex_lock(&seen.lock);
  const int number = seen.met_count++;
  pthread_mutex_unlock(&seen.lock);
  if (number >= 2) return;
  pthread_barrier_wait(&plan.both);
  if (!plan.forks) return;
  if (is_caller && (seen.child = fork()) == 0) return;
  pthread_barrier_wait(&plan.both);
}

prof_i_unpacked __real_prof_i_unpack(prof_i_unpacker *, prof_i_zstd *, const prof_i_packed_head *,
                                     const void *, void *);
prof_i_unpacked __wrap_prof_i_unpack(prof_i_unpacker *, prof_i_zstd *, const prof_i_packed_head *,
                                     const void *, void *);
prof_i_unpacked __wrap_prof_i_unpack(prof_i_unpacker *unpacker, prof_i_zstd *zstd,
                                     const prof_i_packed_head *head, const void *columns,
                                     void *to) {
  const int part = part_at(head->plain_offset);
  const bool is_caller = pthread_equal(pthread_self(), seen.caller);
  if (plan.meets && has_two_threads()) meet(is_caller);
  if (plan.zstd_from != NONE && part >= plan.zstd_from && part <= plan.zstd_to && !zstd) {
    if (plan.waiting == part && has_two_threads()) wait_for_stop_at(plan.awaited);
    stop_at(part);
    return PROF_I_UNPACK_NEEDS_ZSTD;
  }
  ++*(is_caller ? &seen.by_caller : &seen.by_other); /* each thread has one */
  const prof_i_unpacked result = __real_prof_i_unpack(unpacker, zstd, head, columns, to);
  return part == plan.damaged[0] || part == plan.damaged[1] ? PROF_I_UNPACK_DAMAGED : result;
}

/* ---- the capture ---- */

static void add_part(prof_i_packer *packer, int number, uint64_t offset) {
  const prof_i_head *const head = (const void *)(plain.bytes + offset);
  const prof_i_packed_part part = {head, offset, head->bytes, plain.count, 2};
  uint64_t bytes;
  prof_i_pack_columns(packer, &part);
  const void *const extent = prof_i_pack_extent(packer, &bytes);
  assert_true(file_bytes + bytes <= ROOM);
  memcpy(file + file_bytes, extent, bytes);
  file_bytes += bytes;
  places[number] = offset;
}

static int pack(void **state) {
  (void)state;
  begin_with_sites(&plain, 2 << 20, CHUNKS);
  for (uint32_t n = 0; n < CHUNKS; n++) {
    prof_i_head *const chunk = capture_chunk(&plain, PROF_I_UNIT_BYTES, 1);
    for (uint32_t i = 0; i < SCOPES; i++)
      capture_plain(chunk, CAPTURE_START + 100000 * n + 50 * i, 30 + i % (n + 2), n + 1);
  }
  prof_i_packer *const packer = prof_i_packer_create(NULL);
  assert_non_null(packer);
  memcpy(file, plain.bytes, PROF_I_HEADER_BYTES);
  ((prof_i_header *)(void *)file)->version = PROF_I_PACKED_VERSION;
  file_bytes = PROF_I_HEADER_BYTES;
  uint64_t at = PROF_I_FIRST_UNIT_OFFSET;
  for (int n = 0; n < PARTS; n++) {
    add_part(packer, n, at);
    at += ((const prof_i_head *)(const void *)(plain.bytes + at))->bytes;
  }
  assert_int_equal(at, plain.count);
  prof_i_packer_destroy(packer);
  return 0;
}

static int drop_capture(void **state) {
  (void)state;
  capture_end(&plain);
  return 0;
}

/* ---- opening it ---- */

static void begin_plan(void) {
  memset(&plan, 0, sizeof plan);
  plan.zstd_from = plan.full_at = plan.waiting = plan.awaited = NONE;
  plan.zstd_to = PARTS;
  plan.damaged[0] = plan.damaged[1] = NONE;
}

/* Opens the capture as planned, by one thread or two. No thread is left over. */
static int open_with(thread_limit limit, prof_trace **trace_out) {
  plan.limit = limit;
  seen.caller = pthread_self();
  seen.created_count = seen.joined_count = seen.zstd_count = seen.by_caller = seen.by_other =
      seen.met_count = 0;
  memset(seen.has_stopped, 0, sizeof seen.has_stopped);
  *trace_out = NULL;
  const int status = prof_trace_open_bytes(file, file_bytes, trace_out);
  if (seen.child == 0) _exit(status == PROF_E_BUSY ? 0 : 1);
  assert_int_equal(seen.created_count, limit == TWO_THREADS);
  assert_int_equal(seen.joined_count, seen.created_count);
  assert_int_equal(seen.zstd_open_count, 0);
  return status;
}

static prof_trace *open_whole(thread_limit limit) {
  prof_trace *trace;
  if (open_with(limit, &trace) != PROF_OK) fail_msg("%s", prof_last_error());
  return trace;
}

static void assert_same_as_by_one_thread(uint64_t bad_count) {
  prof_trace *const two = open_whole(TWO_THREADS);
  assert_int_equal(seen.by_caller + seen.by_other, PARTS);
  prof_trace *const one = open_whole(NO_THREAD_TO_CREATE);
  assert_int_equal(seen.by_caller, PARTS);
  assert_int_equal(two->source.count, plain.count);
  assert_int_equal(one->source.count, plain.count);
  assert_memory_equal(two->source.bytes, one->source.bytes, plain.count);
  assert_int_equal(info_of(two).bad_count, bad_count);
  assert_int_equal(info_of(one).bad_count, bad_count);
  prof_trace_destroy(two);
  prof_trace_destroy(one);
}

/* While others hold so many bytes, a temporary file takes the place of memory. */
static void hold_all_memory(void) {
  for (int i = 0; i < PROF_I_OPEN_SOURCES_BYTES / PROF_I_LARGE_CAPTURE_BYTES; i++)
    assert_true(prof_i_source_hold(PROF_I_LARGE_CAPTURE_BYTES));
}

static void let_memory_go(void) { prof_i_source_let_go(PROF_I_OPEN_SOURCES_BYTES); }

static int into_memory(void **state) {
  (void)state;
  begin_plan();
  return 0;
}

static int into_file(void **state) {
  (void)state;
  begin_plan();
  hold_all_memory();
  return 0;
}

static int leave_file(void **state) {
  (void)state;
  let_memory_go();
  return 0;
}

/* ---- the tests ---- */

/* The first test: threads cannot be forbidden again. */
static void a_host_has_no_thread_for_it(void **state) {
  (void)state;
  prof_trace *trace;
  assert_int_equal(prof_trace_open_bytes(file, file_bytes, &trace), PROF_OK);
  assert_int_equal(seen.created_count, 0);
  assert_memory_equal(trace->source.bytes + PROF_I_HEADER_BYTES, plain.bytes + PROF_I_HEADER_BYTES,
                      plain.count - PROF_I_HEADER_BYTES);
  prof_trace_destroy(trace);
  prof_i_worker_allow_threads();
}

static void two_parts_are_unpacked_at_once(void **state) {
  (void)state;
  plan.meets = true;
  pthread_barrier_init(&plan.both, NULL, 2);
  prof_trace *const trace = open_whole(TWO_THREADS);
  assert_true(seen.by_caller > 0 && seen.by_other > 0);
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  assert_memory_equal(trace->source.bytes + PROF_I_HEADER_BYTES, plain.bytes + PROF_I_HEADER_BYTES,
                      plain.count - PROF_I_HEADER_BYTES);
  prof_trace_destroy(trace);
  pthread_barrier_destroy(&plan.both);
}

static void the_bytes_are_those_of_one_thread(void **state) {
  (void)state;
  assert_same_as_by_one_thread(0);
}

static void damaged_parts_become_zeros_and_are_counted(void **state) {
  (void)state;
  plan.damaged[0] = 3;
  plan.damaged[1] = PARTS - 2;
  assert_same_as_by_one_thread(2);
}

static void zstd_is_opened_for_each_thread_when_a_part_needs_it(void **state) {
  (void)state;
  plan.zstd_from = 5;
  assert_same_as_by_one_thread(0);
  prof_trace_destroy(open_whole(TWO_THREADS));
  assert_int_equal(seen.zstd_count, 2);
  prof_trace_destroy(open_whole(NO_THREAD_TO_CREATE));
  assert_int_equal(seen.zstd_count, 1);
}

static void assert_error(int expected, const char *words) {
  for (thread_limit limit = TWO_THREADS; limit <= NO_THREAD_TO_CREATE; limit++) {
    prof_trace *trace;
    assert_int_equal(open_with(limit, &trace), expected);
    assert_null(trace);
    assert_non_null(strstr(prof_last_error(), words));
  }
}

static void without_zstd_the_capture_is_refused(void **state) {
  (void)state;
  plan.zstd_from = 5;
  plan.has_no_zstd = true;
  assert_error(PROF_E_UNSUPPORTED, "no zstd");
}

static void a_full_disk_refuses_the_capture(void **state) {
  (void)state;
  for (plan.full_at = 0; plan.full_at < PARTS; plan.full_at++)
    assert_error(PROF_E_NO_SPACE, strerror(ENOSPC));
}

/* One thread stops at the later part before the other one stops at the part before it. */
static void the_first_error_in_the_file_is_reported(void **state) {
  (void)state;
  plan.has_no_zstd = true;
  plan.full_at = plan.waiting = 8;
  plan.zstd_from = plan.zstd_to = plan.awaited = 9;
  assert_error(PROF_E_NO_SPACE, strerror(ENOSPC));
  plan.zstd_from = plan.zstd_to = plan.waiting = 8;
  plan.full_at = plan.awaited = 9;
  assert_error(PROF_E_UNSUPPORTED, "no zstd");
  plan.has_no_zstd = false;
  assert_error(PROF_E_NO_SPACE, strerror(ENOSPC));
}

static void a_child_that_was_forked_meanwhile_does_not_go_on(void **state) {
  (void)state;
  int status;
  plan.meets = plan.forks = true;
  pthread_barrier_init(&plan.both, NULL, 2);
  prof_trace *const trace = open_whole(TWO_THREADS);
  assert_true(seen.child > 0);
  assert_int_equal(waitpid(seen.child, &status, 0), seen.child);
  assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  assert_int_equal(info_of(trace).event_count, CHUNKS * SCOPES);
  prof_trace_destroy(trace);
  pthread_barrier_destroy(&plan.both);
  seen.child = NONE;
}

#define IN_MEMORY(test) cmocka_unit_test_setup(test, into_memory)
#define IN_FILE(test) \
  { "file: " #test, test, into_file, leave_file, NULL }

int main(void) {
  const struct CMUnitTest tests[] = {IN_MEMORY(a_host_has_no_thread_for_it),
                                     IN_MEMORY(two_parts_are_unpacked_at_once),
                                     IN_FILE(two_parts_are_unpacked_at_once),
                                     IN_MEMORY(the_bytes_are_those_of_one_thread),
                                     IN_FILE(the_bytes_are_those_of_one_thread),
                                     IN_MEMORY(damaged_parts_become_zeros_and_are_counted),
                                     IN_FILE(damaged_parts_become_zeros_and_are_counted),
                                     IN_MEMORY(zstd_is_opened_for_each_thread_when_a_part_needs_it),
                                     IN_FILE(zstd_is_opened_for_each_thread_when_a_part_needs_it),
                                     IN_MEMORY(without_zstd_the_capture_is_refused),
                                     IN_FILE(a_full_disk_refuses_the_capture),
                                     IN_FILE(the_first_error_in_the_file_is_reported),
                                     IN_MEMORY(a_child_that_was_forked_meanwhile_does_not_go_on),
                                     IN_FILE(a_child_that_was_forked_meanwhile_does_not_go_on)};
  return cmocka_run_group_tests(tests, pack, drop_capture);
}
