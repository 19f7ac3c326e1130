/* Where output lands: what stands under the final name after success and after each kind of
   failure, and what the status says. */
#define _GNU_SOURCE
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef PROF_HAVE_ZLIB
#include <zlib.h>
#endif

#include <prof/status.h>

#include "sink/sink.h"
#include "sink_folder.h"

static int count_names(void) {
  DIR *const open = opendir(folder);
  int count = -2; /* . and .. */
  while (readdir(open) != NULL) count++;
  closedir(open);
  return count;
}

/* Opens, writes `bytes` bytes of a known pattern, commits; returns the first status that is not
   PROF_OK. */
static int write_file(const char *path, size_t bytes, bool is_gzip, bool must_be_new) {
  prof_i_sink sink;
  int status = prof_i_sink_open_file(&sink, path, is_gzip, must_be_new);
  if (status != PROF_OK) return status;
  for (size_t i = 0; i < bytes; i++) {
    char *const to = prof_i_sink_reserve(&sink, 1);
    *to = (char)(i % 251);
    prof_i_sink_advance(&sink, to + 1);
  }
  return prof_i_sink_commit(&sink);
}

static void check_file(const char *path, size_t bytes) {
  FILE *const file = fopen(path, "rb");
  assert_non_null(file);
  for (size_t i = 0; i < bytes; i++) {
    const int c = getc(file);
    if (c != (int)(i % 251)) fail_msg("byte %zu is %d, not %d", i, c, (int)(i % 251));
  }
  assert_int_equal(getc(file), EOF);
  fclose(file);
}

static void check_refused(const char *path, int status, const char *text) {
  assert_int_equal(write_file(path, 100, false, false), status);
  if (strstr(prof_last_error(), text) == NULL)
    fail_msg("'%s' is not in: %s", text, prof_last_error());
}

static void a_file_of_any_size_is_written_whole(void **state) {
  (void)state;
  static const size_t sizes[] = {
      0, 1, PROF_I_SINK_BYTES - 1, PROF_I_SINK_BYTES, PROF_I_SINK_BYTES + 1, 3000000};
  for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++) {
    const char *const path = in_folder("out.json");
    assert_int_equal(write_file(path, sizes[i], false, false), PROF_OK);
    check_file(path, sizes[i]);
    assert_int_equal(count_names(), 1);
  }
}

static void the_mode_follows_the_umask(void **state) {
  (void)state;
  struct stat status;
  const mode_t old = umask(027);
  assert_int_equal(write_file(in_folder("out"), 10, false, false), PROF_OK);
  umask(old);
  assert_int_equal(stat(in_folder("out"), &status), 0);
  assert_int_equal(status.st_mode & 07777, 0640);
}

static void no_name_is_seen_before_the_end(void **state) {
  (void)state;
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, in_folder("out"), false, false), PROF_OK);
  prof_i_sink_text(&sink, "half");
  prof_i_sink_make_room(&sink, 0);
  assert_int_equal(access(in_folder("out"), F_OK), -1);
  prof_i_sink_abandon(&sink);
  assert_int_equal(count_names(), 0);
}

static void an_existing_file_is_replaced_or_left_alone(void **state) {
  (void)state;
  const char *const path = in_folder("out");
  assert_int_equal(write_file(path, 1000, false, false), PROF_OK);
  assert_int_equal(write_file(path, 10, false, true), PROF_E_IO);
  assert_non_null(strstr(prof_last_error(), "exists"));
  check_file(path, 1000);
  assert_int_equal(write_file(path, 20, false, false), PROF_OK);
  check_file(path, 20);
  assert_int_equal(count_names(), 1);
}

static void a_file_that_appears_meanwhile_is_left_alone_too(void **state) {
  (void)state;
  prof_i_sink sink;
  const char *const path = in_folder("out");
  assert_int_equal(prof_i_sink_open_file(&sink, path, false, true), PROF_OK);
  prof_i_sink_text(&sink, "ours");
  close(open(path, O_CREAT | O_WRONLY, 0666));
  assert_int_equal(prof_i_sink_commit(&sink), PROF_E_IO);
  check_file(path, 0);
  assert_int_equal(count_names(), 1);
}

static void a_link_is_replaced_not_followed(void **state) {
  (void)state;
  char target[128];
  strcpy(target, in_folder("precious"));
  assert_int_equal(write_file(target, 50, false, false), PROF_OK);
  assert_int_equal(symlink(target, in_folder("out")), 0);
  assert_int_equal(write_file(in_folder("out"), 10, false, false), PROF_OK);
  check_file(target, 50);
  check_file(in_folder("out"), 10);
}

static void a_chdir_meanwhile_changes_nothing(void **state) {
  (void)state;
  prof_i_sink sink;
  char before[512];
  assert_non_null(getcwd(before, sizeof before));
  assert_int_equal(chdir(folder), 0);
  assert_int_equal(prof_i_sink_open_file(&sink, "out", false, false), PROF_OK);
  assert_int_equal(chdir("/"), 0);
  const int status = prof_i_sink_commit(&sink);
  assert_int_equal(chdir(before), 0);
  assert_int_equal(status, PROF_OK);
  check_file(in_folder("out"), 0);
}

static void places_that_cannot_be_written_are_refused_with_a_reason(void **state) {
  (void)state;
  check_refused("", PROF_E_INVALID, "empty");
  check_refused(folder, PROF_E_FILE_TYPE, "a directory");
  check_refused(in_folder(""), PROF_E_FILE_TYPE, "a directory");
  check_refused("/", PROF_E_FILE_TYPE, "a directory");
  check_refused("/dev/zero", PROF_E_FILE_TYPE, "a device");
  check_refused("/dev/.prof-test-sink", PROF_E_FILE_TYPE, "in /dev");
  check_refused("/dev/../dev/.prof-test-sink", PROF_E_FILE_TYPE, "in /dev");
  check_refused(in_folder("no/such/out.json"), PROF_E_NOT_FOUND, "no/such/out.json': No such file");
  assert_int_equal(write_file(in_folder("file"), 1, false, false), PROF_OK);
  check_refused(in_folder("file/out"), PROF_E_NOT_FOUND, "Not a directory");
  assert_int_equal(symlink("loop", in_folder("loop")), 0);
  check_refused(in_folder("loop"), PROF_E_FILE_TYPE, "symbolic links");
  char name[300];
  memset(name, 'n', sizeof name - 1);
  name[sizeof name - 1] = 0;
  check_refused(in_folder(name), PROF_E_INVALID, "too long");
  assert_int_equal(count_names(), 2);
}

/* Runs in a child, which may become another user or lower its limits. Returns what it exits
   with. */
static int in_child(int (*run)(void)) {
  fflush(NULL);
  const pid_t child = fork();
  if (child == 0) _exit(run());
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  if (WIFSIGNALED(status)) fail_msg("the child died of signal %d", WTERMSIG(status));
  return WEXITSTATUS(status);
}

/* Status in the child as its exit code; the text is checked there, for it is the child's. */
static int exit_code(int status, const char *text) {
  if (status != PROF_OK && strstr(prof_last_error(), text) == NULL) {
    fprintf(stderr, "'%s' is not in: %s\n", text, prof_last_error());
    return 255;
  }
  return -status;
}

static int write_as_nobody(void) {
  if (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)) return 254;
  return exit_code(write_file(in_folder("out"), 10, false, false), "Permission denied");
}

static void an_unwritable_directory_is_refused(void **state) {
  (void)state;
  assert_int_equal(chmod(folder, 0555), 0);
  assert_int_equal(in_child(write_as_nobody), -PROF_E_PERMISSION);
  assert_int_equal(count_names(), 0);
}

static int write_past_the_limit(void) {
  const struct rlimit limit = {100000, 100000};
  setrlimit(RLIMIT_FSIZE, &limit);
  return exit_code(write_file(in_folder("out"), 1000000, false, false),
                   "file size limit of 100000 bytes (RLIMIT_FSIZE)");
}

static void a_file_size_limit_is_an_error_and_no_signal(void **state) {
  (void)state;
  assert_int_equal(in_child(write_past_the_limit), -PROF_E_NO_SPACE);
  assert_int_equal(count_names(), 0);
}

static int write_within_the_limit(void) {
  const struct rlimit limit = {100000, 100000};
  setrlimit(RLIMIT_FSIZE, &limit);
  return exit_code(write_file(in_folder("out"), 100000, false, false), "");
}

static void a_file_as_large_as_the_limit_is_written(void **state) {
  (void)state;
  assert_int_equal(in_child(write_within_the_limit), PROF_OK);
  check_file(in_folder("out"), 100000);
}

enum { CANNOT_MOUNT = 253 };

/* A file system of its own, in a name space of its own, so that nothing stays. */
static int write_to_a_full_disk(void) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return CANNOT_MOUNT;
  mount("none", "/", "", MS_REC | MS_PRIVATE, NULL);
  if (mount("none", folder, "tmpfs", 0, "size=1m") != 0) return CANNOT_MOUNT;
  const int code = exit_code(write_file(in_folder("out"), 4000000, false, false),
                             "No space left on device after ");
  return count_names() == 0 ? code : 252;
}

static void a_full_disk_leaves_no_file(void **state) {
  (void)state;
  const int code = in_child(write_to_a_full_disk);
  if (code == CANNOT_MOUNT) {
    print_message("skip: this user may not mount a small file system\n");
    skip();
  }
  assert_int_equal(code, -PROF_E_NO_SPACE);
}

/* Without /proc a nameless file cannot be linked, so a temporary name is used: the other way to the
   same end. */
static int write_without_proc(void) {
  if (unshare(CLONE_NEWNS) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) != 0) return CANNOT_MOUNT;
  mount("none", "/", "", MS_REC | MS_PRIVATE, NULL);
  if (mount("none", "/proc", "tmpfs", 0, "size=1m") != 0) return CANNOT_MOUNT;
  prof_i_sink sink;
  if (prof_i_sink_open_file(&sink, in_folder("out"), false, false) != PROF_OK) return 200;
  if (count_names() != 1) return 201; /* the temporary one */
  prof_i_sink_abandon(&sink);
  if (count_names() != 0) return 202;
  if (write_file(in_folder("out"), 1000, false, false) != PROF_OK) return 203; /* new */
  if (write_file(in_folder("out"), 2000, false, false) != PROF_OK) return 204; /* over another */
  if (write_file(in_folder("out"), 3000, false, true) != PROF_E_IO) return 205;
  if (write_file(in_folder("new"), 4000, false, true) != PROF_OK) return 206;
  return count_names() == 2 ? 0 : 207;
}

static void a_temporary_name_serves_where_a_nameless_file_cannot(void **state) {
  (void)state;
  const int code = in_child(write_without_proc);
  if (code == CANNOT_MOUNT) {
    print_message("skip: this user may not mount over /proc\n");
    skip();
  }
  assert_int_equal(code, 0);
  check_file(in_folder("out"), 2000);
  check_file(in_folder("new"), 4000);
}

static void a_descriptor_that_the_program_took_is_not_written_to(void **state) {
  (void)state;
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, in_folder("out"), false, false), PROF_OK);
  prof_i_sink_text(&sink, "ours");
  const int fd = sink.target.file.fd;
  const int other = open(in_folder("theirs"), O_CREAT | O_RDWR, 0666);
  assert_int_equal(dup2(other, fd), fd);
  assert_int_equal(prof_i_sink_commit(&sink), PROF_E_IO);
  assert_non_null(strstr(prof_last_error(), "closed its descriptor"));
  check_file(in_folder("theirs"), 0);
  assert_int_equal(fcntl(fd, F_GETFD), 0); /* and it is still theirs */
  close(fd);
  close(other);
}

static void dev_null_takes_everything(void **state) {
  (void)state;
  assert_int_equal(write_file("/dev/null", 1000000, false, false), PROF_OK);
}

static int write_to_standard_output(void) {
  const int file = open(in_folder("stdout"), O_CREAT | O_WRONLY, 0666);
  if (write(file, "before ", 7) != 7 || dup2(file, STDOUT_FILENO) < 0) return 200;
  prof_i_sink sink;
  if (prof_i_sink_open_file(&sink, "/dev/stdout", false, false) != PROF_OK) return 201;
  prof_i_sink_text(&sink, "trace");
  if (prof_i_sink_commit(&sink) != PROF_OK) return 202;
  return write(STDOUT_FILENO, " after", 6) == 6 ? 0 : 203;
}

static void standard_output_is_written_where_it_stands(void **state) {
  (void)state;
  assert_int_equal(in_child(write_to_standard_output), 0);
  char text[64] = {0};
  FILE *const file = fopen(in_folder("stdout"), "r");
  assert_non_null(fgets(text, sizeof text, file));
  fclose(file);
  assert_string_equal(text, "before trace after");
}

static void *read_fifo(void *path) {
  FILE *const file = fopen(path, "rb");
  size_t count = 0;
  while (getc(file) != EOF) count++;
  fclose(file);
  return (void *)count;
}

static void a_fifo_is_written_straight(void **state) {
  (void)state;
  pthread_t reader;
  void *count;
  char path[128];
  strcpy(path, in_folder("fifo"));
  assert_int_equal(mkfifo(path, 0600), 0);
  check_refused(path, PROF_E_IO, "nobody reads");
  assert_int_equal(pthread_create(&reader, NULL, read_fifo, path), 0);
  int status = PROF_E_IO;
  for (int i = 0; i < 1000 && status != PROF_OK; i++) { /* until the reader has come */
    status = write_file(path, 3000000, false, false);
    if (status != PROF_OK) usleep(1000);
  }
  assert_int_equal(status, PROF_OK);
  pthread_join(reader, &count);
  assert_int_equal((size_t)count, 3000000);
}

static void a_reader_that_goes_away_is_an_error_and_no_signal(void **state) {
  (void)state;
  char path[128];
  strcpy(path, in_folder("fifo"));
  assert_int_equal(mkfifo(path, 0600), 0);
  const int reader = open(path, O_RDONLY | O_NONBLOCK);
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, path, false, false), PROF_OK);
  close(reader);
  prof_i_sink_text(&sink, "into the void");
  assert_int_equal(prof_i_sink_commit(&sink), PROF_E_IO);
  assert_non_null(strstr(prof_last_error(), "Broken pipe after 0 bytes"));
  sigset_t pending, mask;
  sigpending(&pending);
  pthread_sigmask(SIG_SETMASK, NULL, &mask);
  assert_int_equal(sigismember(&pending, SIGPIPE), 0);
  assert_int_equal(sigismember(&mask, SIGPIPE), 0);
}

static int both_ends; /* of a fifo: so that the sink finds a reader at once */

/* Closes while a write of more than the fifo's capacity is in progress. */
static void *leave_a_full_fifo(void *path) {
  const int fd = open(path, O_RDONLY);
  int waiting = 0;
  close(both_ends);
  while (waiting < fcntl(fd, F_GETPIPE_SZ)) ioctl(fd, FIONREAD, &waiting);
  close(fd);
  return NULL;
}

static void a_reader_that_goes_away_within_a_write_is_no_signal_either(void **state) {
  (void)state;
  pthread_t reader;
  char path[128];
  strcpy(path, in_folder("fifo"));
  assert_int_equal(mkfifo(path, 0600), 0);
  both_ends = open(path, O_RDWR);
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, path, false, false), PROF_OK);
  assert_int_equal(pthread_create(&reader, NULL, leave_a_full_fifo, path), 0);
  for (int i = 0; i < 300000; i++) prof_i_sink_text(&sink, "0123456789");
  assert_int_equal(prof_i_sink_commit(&sink), PROF_E_IO);
  pthread_join(reader, NULL);
  assert_non_null(strstr(prof_last_error(), "Broken pipe after"));
  sigset_t pending;
  sigpending(&pending);
  assert_int_equal(sigismember(&pending, SIGPIPE), 0);
}

static void the_first_failure_sticks_and_later_writing_is_harmless(void **state) {
  (void)state;
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_file(&sink, in_folder("out"), false, false), PROF_OK);
  sink.status = PROF_E_NO_MEMORY;
  for (int i = 0; i < 100000; i++) prof_i_sink_text(&sink, "0123456789");
  assert_int_equal(prof_i_sink_commit(&sink), PROF_E_NO_MEMORY);
  assert_int_equal(count_names(), 0);
}

static void memory_grows_up_to_its_bound(void **state) {
  (void)state;
  prof_i_sink sink;
  char *text;
  size_t bytes;
  assert_int_equal(prof_i_sink_open_memory(&sink, 4000000), PROF_OK);
  for (int i = 0; i < 390000; i++) prof_i_sink_text(&sink, "0123456789");
  assert_int_equal(prof_i_sink_take(&sink, &text, &bytes), PROF_OK);
  assert_int_equal(bytes, 3900000);
  assert_int_equal(strlen(text), bytes);
  assert_memory_equal(text + bytes - 10, "0123456789", 10);
  free(text);

  assert_int_equal(prof_i_sink_open_memory(&sink, 4000000), PROF_OK);
  for (int i = 0; i < 500000; i++) prof_i_sink_text(&sink, "0123456789");
  assert_int_equal(prof_i_sink_take(&sink, &text, &bytes), PROF_E_TOO_LARGE);
  assert_non_null(strstr(prof_last_error(), "4000000 bytes"));
}

static void expect_text(prof_i_sink *sink, const char *expected) {
  char *text;
  size_t bytes;
  assert_int_equal(prof_i_sink_take(sink, &text, &bytes), PROF_OK);
  assert_string_equal(text, expected);
  assert_int_equal(bytes, strlen(expected));
  free(text);
}

static void a_field_of_csv_is_quoted_and_repaired(void **state) {
  (void)state;
  static const char text[] = "a\"b\0\xff\xe2\x80,\xc3\xa9";
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_memory(&sink, 4000), PROF_OK);
  prof_i_sink_csv(&sink, text, sizeof text - 1);
  expect_text(&sink, "\"a\"\"b\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd,\xc3\xa9\"");
}

static void a_bare_field_of_csv_has_quotes_where_it_must(void **state) {
  (void)state;
  static const char *const fields[] = {"", "two words", "a,b", "a\"b", "a\rb", "a\nb", "\xff"};
  prof_i_sink sink;
  assert_int_equal(prof_i_sink_open_memory(&sink, 4000), PROF_OK);
  for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
    prof_i_sink_csv_bare(&sink, fields[i]);
    prof_i_sink_text(&sink, ";");
  }
  expect_text(&sink, ";two words;\"a,b\";\"a\"\"b\";\"a\rb\";\"a\nb\";\xef\xbf\xbd;");
}

#ifdef PROF_HAVE_ZLIB
static void gzip_is_one_member_of_the_same_bytes(void **state) {
  (void)state;
  enum { BYTES = 3000000 };
  assert_int_equal(write_file(in_folder("out.gz"), BYTES, true, false), PROF_OK);
  FILE *const file = fopen(in_folder("out.gz"), "rb");
  static unsigned char packed[BYTES], plain[BYTES + 1];
  const size_t count = fread(packed, 1, sizeof packed, file);
  fclose(file);
  z_stream stream = {
      .next_in = packed, .avail_in = (uInt)count, .next_out = plain, .avail_out = sizeof plain};
  assert_int_equal(inflateInit2(&stream, 15 + 16), Z_OK);
  assert_int_equal(inflate(&stream, Z_FINISH), Z_STREAM_END);
  assert_int_equal(stream.avail_in, 0); /* nothing behind the first member */
  assert_int_equal(stream.total_out, BYTES);
  inflateEnd(&stream);
  for (size_t i = 0; i < BYTES; i++) assert_int_equal(plain[i], i % 251);
}
#else
static void gzip_without_zlib_is_refused(void **state) {
  (void)state;
  assert_int_equal(write_file(in_folder("out.gz"), 10, true, false), PROF_E_UNSUPPORTED);
  assert_non_null(strstr(prof_last_error(), "no zlib"));
  assert_int_equal(count_names(), 0);
}
#endif

#define IN_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void) {
  const struct CMUnitTest tests[] = {
      IN_FOLDER(a_file_of_any_size_is_written_whole),
      IN_FOLDER(the_mode_follows_the_umask),
      IN_FOLDER(no_name_is_seen_before_the_end),
      IN_FOLDER(an_existing_file_is_replaced_or_left_alone),
      IN_FOLDER(a_file_that_appears_meanwhile_is_left_alone_too),
      IN_FOLDER(a_link_is_replaced_not_followed),
      IN_FOLDER(a_chdir_meanwhile_changes_nothing),
      IN_FOLDER(places_that_cannot_be_written_are_refused_with_a_reason),
      IN_FOLDER(an_unwritable_directory_is_refused),
      IN_FOLDER(a_file_size_limit_is_an_error_and_no_signal),
      IN_FOLDER(a_file_as_large_as_the_limit_is_written),
      IN_FOLDER(a_full_disk_leaves_no_file),
      IN_FOLDER(a_temporary_name_serves_where_a_nameless_file_cannot),
      IN_FOLDER(a_descriptor_that_the_program_took_is_not_written_to),
      IN_FOLDER(dev_null_takes_everything),
      IN_FOLDER(standard_output_is_written_where_it_stands),
      IN_FOLDER(a_fifo_is_written_straight),
      IN_FOLDER(a_reader_that_goes_away_is_an_error_and_no_signal),
      IN_FOLDER(a_reader_that_goes_away_within_a_write_is_no_signal_either),
      IN_FOLDER(the_first_failure_sticks_and_later_writing_is_harmless),
      cmocka_unit_test(memory_grows_up_to_its_bound),
      cmocka_unit_test(a_field_of_csv_is_quoted_and_repaired),
      cmocka_unit_test(a_bare_field_of_csv_has_quotes_where_it_must),
#ifdef PROF_HAVE_ZLIB
      IN_FOLDER(gzip_is_one_member_of_the_same_bytes),
#else
      IN_FOLDER(gzip_without_zlib_is_refused),
#endif
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
