/* Outputs where a call is refused: in a forked child, which must not change its parent's file, and
   by a sandbox, where another call does the same. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include <prof/status.h>

#include "sink/sink.h"
#include "sink_folder.h"

enum { PIECE_BYTES = PROF_I_SINK_BYTES, PIECES = 4, COPIED_BYTES = 100000, NO_FILTER = 250 };

static unsigned char pattern[PIECE_BYTES * PIECES];

static int make_pattern(void **state) {
  for (size_t i = 0; i < sizeof pattern; i++) pattern[i] = (unsigned char)(i * 7 + i / 251);
  return make_folder(state);
}

/* The file holds the pattern's first bytes, and no others. */
static void check_file(const char *path, size_t bytes) {
  static unsigned char found[sizeof pattern + 1];
  FILE *const file = fopen(path, "rb");
  assert_non_null(file);
  assert_int_equal(fread(found, 1, sizeof found, file), bytes);
  fclose(file);
  assert_memory_equal(found, pattern, bytes);
}

static int exit_of(pid_t child) {
  int status = 0;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("the child died of signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

/* ---- a child ---- */

static int source_file(void) {
  const int fd = open(in_folder("in"), O_RDWR | O_CREAT, 0600);
  assert_true(fd >= 0);
  assert_int_equal(pwrite(fd, pattern, COPIED_BYTES, 0), COPIED_BYTES);
  return fd;
}

/* The number of the first call that is not refused; 0: all are. */
static int try_all_calls(prof_i_target *target, int source) {
  uint64_t copied = 0;
  if (prof_i_target_write(target, "foreign", 7) != PROF_E_IO) return 1;
  if (prof_i_target_write_at(target, "foreign", 7, 0) != PROF_E_IO) return 2;
  if (prof_i_target_copy(target, source, 0, 7, &copied) != PROF_E_IO || copied) return 3;
  if (prof_i_target_shorten(target, 1) != PROF_E_IO) return 4;
  if (prof_i_target_commit(target) != PROF_E_IO) return 5;
  return strstr(prof_last_error(), "forked") ? 0 : 6;
}

static void a_child_changes_nothing_of_its_parents_file(void **state) {
  (void)state;
  prof_i_target target;
  const int source = source_file();
  assert_int_equal(prof_i_target_open(&target, in_folder("out"), false), PROF_OK);
  assert_int_equal(prof_i_target_write(&target, pattern, 1000), PROF_OK);
  const pid_t child = fork();
  if (child == 0) _exit(try_all_calls(&target, source));
  assert_int_equal(exit_of(child), 0);
  assert_int_equal(prof_i_target_write(&target, pattern + 1000, 1000), PROF_OK);
  assert_int_equal(prof_i_target_commit(&target), PROF_OK);
  check_file(in_folder("out"), 2000);
  close(source);
}

/* ---- a sandbox ---- */

static bool install(struct sock_filter *lines, unsigned short count) {
  const struct sock_fprog filter = {count, lines};
  return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
         prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter) == 0;
}

/* Refuses pwrite() at one offset, or at each. */
static bool refuse_pwrite(int error, const uint32_t *at) {
  const unsigned refused = SECCOMP_RET_ERRNO | (unsigned)error;
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pwrite64, 0, 3),
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, args[3])),
      BPF_JUMP(BPF_JMP | (at ? BPF_JEQ : BPF_JGE) | BPF_K, at ? *at : 0, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, refused),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return install(lines, sizeof lines / sizeof *lines);
}

static const int errors[] = {EPERM, EACCES, ENOSYS};

static void check_exit(pid_t child) {
  const int code = exit_of(child);
  if (code == NO_FILTER) {
    print_message("skip: the kernel takes no filter, or the file system no nameless file\n");
    skip();
  }
  assert_int_equal(code, 0);
}

static int write_in_pieces(int error, uint32_t at) {
  prof_i_sink sink;
  if (!refuse_pwrite(error, &at)) return NO_FILTER;
  if (prof_i_sink_open_file(&sink, in_folder("out"), false, false) != PROF_OK) return 1;
  for (int i = 0; i < PIECES; i++)
    prof_i_sink_bytes(&sink, pattern + (size_t)i * PIECE_BYTES, PIECE_BYTES);
  return prof_i_sink_commit(&sink) == PROF_OK ? 0 : 2;
}

static void a_refusal_of_one_write_moves_no_bytes(void **state) {
  (void)state;
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
    for (uint32_t piece = 0; piece < PIECES; piece++) {
      const pid_t child = fork();
      if (child == 0) _exit(write_in_pieces(errors[i], piece * PIECE_BYTES));
      check_exit(child);
      check_file(in_folder("out"), sizeof pattern);
    }
}

static int write_and_copy(int error, int source) {
  prof_i_sink sink;
  if (!refuse_pwrite(error, NULL)) return NO_FILTER;
  if (prof_i_sink_open_file(&sink, in_folder("out"), false, false) != PROF_OK) return 1;
  if (prof_i_sink_copy(&sink, source, 0, COPIED_BYTES) != COPIED_BYTES) return 2;
  prof_i_sink_bytes(&sink, pattern + COPIED_BYTES, 1000);
  return prof_i_sink_commit(&sink) == PROF_OK ? 0 : 3;
}

static void a_write_behind_what_the_kernel_copied_may_be_refused(void **state) {
  (void)state;
  const int source = source_file();
  for (size_t i = 0; i < sizeof errors / sizeof *errors; i++) {
    const pid_t child = fork();
    if (child == 0) _exit(write_and_copy(errors[i], source));
    check_exit(child);
    check_file(in_folder("out"), COPIED_BYTES + 1000);
  }
  close(source);
}

#if defined(__x86_64__)
#define REGISTER(context, number) \
  ((context)->uc_mcontext.gregs[(const int[]){REG_RDI, REG_RSI, REG_RDX, REG_R10, REG_RAX}[number]])
#define RESULT(context) REGISTER(context, 4)
#elif defined(__aarch64__)
#define REGISTER(context, number) ((context)->uc_mcontext.regs[number])
#define RESULT(context) REGISTER(context, 0)
#endif

#ifdef RESULT
static unsigned reads, reads_with_signals_held;

/* Instead of pread(), which the filter turned into this signal. */
static void read_and_look_at_mask(int number, siginfo_t *about, void *interrupted) {
  ucontext_t *const context = interrupted;
  const struct iovec to = {(void *)(uintptr_t)REGISTER(context, 1), (size_t)REGISTER(context, 2)};
  (void)number;
  (void)about;
  reads++;
  reads_with_signals_held += sigismember(&context->uc_sigmask, SIGUSR1) == 1;
  const ssize_t bytes = preadv((int)REGISTER(context, 0), &to, 1, (off_t)REGISTER(context, 3));
  __typeof__(RESULT(context)) result = bytes;
  if (bytes < 0) result = -errno;
  RESULT(context) = result;
}

/* No links, and each pread() is seen. */
static bool refuse_links(void) {
  const struct sigaction action = {.sa_sigaction = read_and_look_at_mask, .sa_flags = SA_SIGINFO};
  struct sock_filter lines[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_linkat, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pread64, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  return sigaction(SIGSYS, &action, NULL) == 0 && install(lines, sizeof lines / sizeof *lines);
}

static int write_without_links(void) {
  prof_i_sink sink;
  if (!refuse_links()) return NO_FILTER;
  if (prof_i_sink_open_file(&sink, in_folder("out"), false, false) != PROF_OK) return 1;
  if (sink.target.temporary[0]) return NO_FILTER; /* this file system has no nameless files */
  prof_i_sink_bytes(&sink, pattern, sizeof pattern);
  if (prof_i_sink_commit(&sink) != PROF_OK) return 2;
  if (!reads) return 3;
  return reads_with_signals_held ? 4 : 0;
}

static void signals_come_while_a_file_without_a_name_is_copied(void **state) {
  (void)state;
  const pid_t child = fork();
  if (child == 0) _exit(write_without_links());
  check_exit(child);
  check_file(in_folder("out"), sizeof pattern);
}
#endif

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_pattern, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_child_changes_nothing_of_its_parents_file),
      IN_FOLDER(a_refusal_of_one_write_moves_no_bytes),
      IN_FOLDER(a_write_behind_what_the_kernel_copied_may_be_refused),
#ifdef RESULT
      IN_FOLDER(signals_come_while_a_file_without_a_name_is_copied),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
