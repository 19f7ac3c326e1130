/* Live and dead captures from outside: the level of another process, and what processes that were
   killed left behind. The command is run as its users run it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "hang_guard.h"

enum { OPS = 1000 };
/* in the header: docs/reference/file-format.md */
enum { NAMESPACE_OFFSET = 288, HOST_OFFSET = 296, BOOT_OFFSET = 424 };

/* What a child and its parent tell each other. */
typedef struct page {
  uint64_t ones, twos; /* scopes whose begin saw level 1, or 2, on */
  uint32_t ready, leave;
  char capture[512];
} page;

static struct {
  char command[PATH_MAX];
  char folder[PATH_MAX];
  char output[1 << 16];
  volatile page *page;
} own;

#define assert_says(text)                                                               \
  do {                                                                                  \
    if (!strstr(own.output, text)) fail_msg("\"%s\" is not in:\n%s", text, own.output); \
  } while (0)
#define assert_silent_about(text)                                                  \
  do {                                                                             \
    if (strstr(own.output, text)) fail_msg("\"%s\" is in:\n%s", text, own.output); \
  } while (0)

/* Runs the command with these words by the shell, in the folder; returns its exit status. */
static int run(const char *words) {
  char line[3 * PATH_MAX];
  snprintf(line, sizeof line, "cd '%s' && '%s' %s 2>&1", own.folder, own.command, words);
  FILE *const pipe = popen(line, "r");
  assert_non_null(pipe);
  const size_t count = fread(own.output, 1, sizeof own.output - 1, pipe);
  own.output[count] = '\0';
  const int status = pclose(pipe);
  assert_true(WIFEXITED(status));
  return WEXITSTATUS(status);
}

/* ---- the child ---- */

static void nap(void) { nanosleep(&(const struct timespec){0, 200000}, NULL); }

static void start_in_folder(void) {
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/out.json", own.folder);
  const prof_options options = {.size = sizeof options, .level = 2, .path = path};
  prof_health health = {.size = sizeof health};
  if (prof_start_with(&options) != PROF_OK) _exit(3);
  prof_health(&health);
  snprintf((char *)(uintptr_t)own.page->capture, sizeof own.page->capture, "%s",
           health.capture_path);
}

static void work_until_told(void) {
  start_in_folder();
  own.page->ready = 1;
  while (!own.page->leave) {
    WITH_BASE_PROFILER((own.page->ones++, PROF_HOST), "operator", "kernel", PROF_NO_ARGS, {});
    WITH_BASE_PROFILER_LEVEL(2, (own.page->twos++, PROF_HOST), "instruction", "vm", PROF_NO_ARGS,
                             {});
    nap();
  }
  prof_stop();
  _exit(0);
}

static void wait_inside(void) {
  start_in_folder();
  for (int i = 0; i < OPS; i++)
    WITH_BASE_PROFILER(PROF_HOST, "operator", "kernel", PROF_ARGS("i", i), {});
  WITH_BASE_PROFILER(PROF_HOST, "forward\x1b[2J", "kernel", PROF_NO_ARGS, {
    WITH_BASE_PROFILER(PROF_HOST, "layer 3", "kernel", PROF_ARGS("a", 1), {
      own.page->ready = 1;
      for (;;) pause();
    });
  });
}

static void dump_copies(void) {
  char path[PATH_MAX + 16];
  start_in_folder();
  WITH_BASE_PROFILER(PROF_HOST, "operator", "kernel", PROF_NO_ARGS, {});
  WITH_BASE_PROFILER(PROF_HOST, "open", "kernel", PROF_NO_ARGS, {
    snprintf(path, sizeof path, "%s/while.prof", own.folder);
    if (prof_dump(path) != PROF_OK) _exit(4);
  });
  prof_stop();
  snprintf(path, sizeof path, "%s/after.prof", own.folder);
  if (prof_dump(path) != PROF_OK) _exit(5);
  own.page->ready = 1;
  for (;;) pause();
}

static pid_t begin_child(void (*body)(void)) {
  memset((void *)(uintptr_t)own.page, 0, sizeof *own.page);
  const pid_t child = fork();
  if (child == 0) {
    hang_guard();
    body();
    _exit(0);
  }
  assert_true(child > 0);
  WAIT_WHILE(!own.page->ready && waitpid(child, NULL, WNOHANG) == 0);
  if (!own.page->ready) fail_msg("the child did not begin");
  return child;
}

static void end_child(pid_t child) {
  kill(child, SIGKILL);
  waitpid(child, NULL, 0);
}

/* ---- the level ---- */

static bool grows(volatile uint64_t *count) {
  const uint64_t before = *count;
  WAIT_WHILE(*count == before);
  return *count != before;
}

/* It comes to rest: the child may just stand in a scope that began before the switch. */
static bool rests(volatile uint64_t *count) {
  for (int tries = 0; tries < 100; tries++) {
    const uint64_t before = *count;
    for (int i = 0; i < 400; i++) nap();
    if (*count == before) return true;
  }
  return false;
}

static void set_level(int level, int before_expected) {
  int before = -1;
  const int status =
      prof_trace_set_level((const char *)(uintptr_t)own.page->capture, level, &before);
  if (status != PROF_OK) fail_msg("%s: %s", prof_status_name(status), prof_last_error());
  assert_int_equal(before, before_expected);
}

static void a_running_process_is_switched_through_its_capture(void **state) {
  char words[64];
  (void)state;
  const pid_t child = begin_child(work_until_told);
  assert_true(grows(&own.page->ones) && grows(&own.page->twos));
  set_level(1, 2);
  assert_true(rests(&own.page->twos) && grows(&own.page->ones));
  set_level(0, 1);
  assert_true(rests(&own.page->ones) && rests(&own.page->twos));
  snprintf(words, sizeof words, "level %ld", (long)child);
  assert_int_equal(run(words), 0);
  assert_says("level 0: ");
  snprintf(words, sizeof words, "level %ld 2", (long)child);
  assert_int_equal(run(words), 0);
  assert_says("level 2, was 0");
  assert_true(grows(&own.page->ones) && grows(&own.page->twos));
  assert_int_equal(run("level out.json*.prof 1"), 0);
  assert_says("level 1, was 2");
  own.page->leave = 1;
  int status = -1;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_int_equal(status, 0);

  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_open((const char *)(uintptr_t)own.page->capture, &trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  assert_int_equal(info.scope_count, own.page->ones + own.page->twos);
  assert_int_equal(prof_trace_set_level((const char *)(uintptr_t)own.page->capture, 1, NULL),
                   PROF_E_NOT_RUNNING);
}

static void what_cannot_be_switched_is_refused(void **state) {
  char path[PATH_MAX + 16];
  (void)state;
  const pid_t child = begin_child(wait_inside);
  const char *const capture = (const char *)(uintptr_t)own.page->capture;
  assert_int_equal(prof_trace_set_level(NULL, 1, NULL), PROF_E_INVALID);
  assert_int_equal(prof_trace_set_level(capture, 3, NULL), PROF_E_LEVEL);
  assert_int_equal(prof_trace_set_level(capture, -1, NULL), PROF_E_LEVEL);
  assert_int_equal(prof_trace_set_level(own.folder, 1, NULL), PROF_E_FILE_TYPE);
  assert_int_equal(prof_trace_set_level(own.command, 1, NULL), PROF_E_NOT_CAPTURE);
  const ssize_t length = readlink("/proc/self/exe", path, PATH_MAX);
  assert_in_range(length, 1, PATH_MAX - 1);
  path[length] = '\0';
  assert_int_equal(prof_trace_set_level(path, 1, NULL), PROF_E_NOT_CAPTURE); /* it runs */
  snprintf(path, sizeof path, "%s/nothing", own.folder);
  assert_int_equal(prof_trace_set_level(path, 1, NULL), PROF_E_NOT_FOUND);
  snprintf(path, sizeof path, "%s/link", own.folder);
  assert_int_equal(symlink(capture, path), 0);
  assert_int_not_equal(prof_trace_set_level(path, 1, NULL), PROF_OK);
  snprintf(path, sizeof path, "%s/pipe", own.folder);
  assert_int_equal(mkfifo(path, 0600), 0);
  assert_int_equal(prof_trace_set_level(path, 1, NULL), PROF_E_FILE_TYPE);
  end_child(child);
  assert_int_equal(prof_trace_set_level(capture, 1, NULL), PROF_E_NOT_RUNNING);
  assert_int_equal(run("level out.json 7"), 2);
  assert_int_equal(run("level"), 2);
  assert_int_equal(run("level out.json 1 2"), 2);
  assert_int_equal(run("level nothing 1"), 1);
  assert_says("nothing");
}

static void another_user_may_not_switch_it(void **state) {
  (void)state;
  if (geteuid() != 0) {
    print_message("skip: not root: no other user to be\n");
    skip();
  }
  const pid_t child = begin_child(wait_inside);
  assert_int_equal(chmod(own.folder, 0777), 0);
  const pid_t other = fork();
  if (other == 0) {
    if (setgid(65534) != 0 || setuid(65534) != 0) _exit(77);
    _exit(prof_trace_set_level((const char *)(uintptr_t)own.page->capture, 1, NULL) ==
                  PROF_E_PERMISSION
              ? 0
              : 1);
  }
  int status = -1;
  waitpid(other, &status, 0);
  end_child(child);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("skip: this name space has no other user\n");
    skip();
  }
  assert_int_equal(status, 0);
}

/* ---- what is left behind ---- */

static int count_files(const char *ending) {
  int count = 0;
  DIR *const entries = opendir(own.folder);
  for (const struct dirent *e; (e = readdir(entries)) != NULL;) {
    const size_t bytes = strlen(e->d_name), wanted = strlen(ending);
    count += bytes >= wanted && strcmp(e->d_name + bytes - wanted, ending) == 0;
  }
  closedir(entries);
  return count;
}

static void what_a_killed_process_was_inside_of_is_told(void **state) {
  (void)state;
  const pid_t child = begin_child(wait_inside);
  assert_int_equal(run("recover ."), 0);
  assert_says("0 of processes that died"); /* it runs */
  assert_int_equal(run("recover --all ."), 0);
  assert_says("runs ");
  end_child(child);
  assert_int_equal(run("recover ."), 0);
  assert_says("died ");
  assert_says("was inside of forward\\x1b[2J > layer 3");
  assert_silent_about("\x1b");
}

static prof_trace_info info_of(const char *path) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  prof_trace_info_get(trace, &info);
  prof_trace_destroy(trace);
  return info;
}

/* A copy of a copy is the same. */
static prof_trace_info copy_again(const char *name) {
  char path[PATH_MAX + 16];
  prof_trace *trace = NULL;
  snprintf(path, sizeof path, "%s/%s", own.folder, name);
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  assert_int_equal(prof_trace_dump(trace, path, NULL), PROF_OK);
  prof_trace_destroy(trace);
  return info_of(path);
}

/* Else prof recover would take it for what a process has left that died, and remove it with
   those. */
static void a_copy_of_what_is_recorded_says_so(void **state) {
  (void)state;
  const pid_t child = begin_child(dump_copies);
  for (int round = 0; round < 3; round++) { /* the process lives, copied again, and dies */
    if (round == 2) end_child(child);
    const prof_trace_info before = copy_again("while.prof"), after = copy_again("after.prof");
    assert_true(before.is_copy && !before.is_live && !before.was_clean && before.level_now == 0);
    assert_true(before.scope_count == 1 && before.open_count == 1 && before.bad_count == 0);
    assert_true(!after.is_copy && after.was_clean && after.scope_count == 2 &&
                after.open_count == 0);
  }
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/while.prof", own.folder);
  assert_int_equal(prof_trace_set_level(path, 1, NULL), PROF_E_NOT_RUNNING);
  assert_int_equal(run("info while.prof"), 0);
  assert_says("a copy, made while it was being recorded");
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_silent_about("while.prof");
  assert_int_equal(count_files("while.prof"), 1);
}

static void what_died_is_converted_beside_a_capture_that_is_not(void **state) {
  (void)state;
  for (int i = 0; i < 2; i++) end_child(begin_child(wait_inside));
  const pid_t child = begin_child(wait_inside);
  assert_int_equal(run("recover -o . ."), 0);
  assert_says("written to ./");
  assert_int_equal(count_files(".json"), 2);
  assert_int_equal(run("recover -o . ."), 1); /* nothing is written over */
  assert_int_equal(count_files(".json"), 2);
  assert_int_equal(run("recover -o /nowhere/at/all ."), 1);
  end_child(child);
}

static void the_folder_for_what_died_is_made(void **state) {
  (void)state;
  char path[PATH_MAX + 16];
  end_child(begin_child(wait_inside));
  assert_int_equal(run("recover . -o made/below"), 1);
  assert_says("cannot make the directory 'made/below': the directory that it would be in");
  assert_silent_about("died "); /* nothing is done */
  assert_int_equal(run("recover . -o made/"), 0);
  assert_says("written to made//");
  snprintf(path, sizeof path, "%s/made", own.folder);
  assert_int_equal(rmdir(path), -1);
  assert_int_equal(errno, ENOTEMPTY);
  assert_int_equal(run("recover --format capture . -o made"), 0); /* it exists */
  snprintf(path, sizeof path, "%s/file", own.folder);
  assert_int_equal(symlink("nothing", path), 0);
  assert_int_equal(run("recover . -o file"), 1);
  assert_says("cannot make the directory 'file': there is a file or a dangling link");
  assert_int_equal(run("recover . -o ''"), 2);
}

static void what_could_not_be_converted_is_not_removed(void **state) {
  (void)state;
  end_child(begin_child(wait_inside));
  assert_int_equal(run("recover . -o saved"), 0);
  assert_int_equal(run("recover . -o saved --keep 0"), 1); /* nothing is written over */
  assert_int_equal(count_files(".prof"), 1);
  assert_int_equal(run("recover . -o nowhere/at/all --keep 0"), 1);
  assert_int_equal(count_files(".prof"), 1);
  assert_int_equal(run("recover . -o other --keep 0"), 0);
  assert_int_equal(count_files(".prof"), 0);
}

static void the_newest_are_kept_and_none_that_is_written_to_goes(void **state) {
  (void)state;
  for (int i = 0; i < 3; i++) end_child(begin_child(wait_inside));
  const pid_t child = begin_child(wait_inside);
  char live[512];
  snprintf(live, sizeof live, "%s", (const char *)(uintptr_t)own.page->capture);
  assert_int_equal(count_files(".prof"), 4);
  assert_int_equal(run("recover --keep 1 ."), 0);
  assert_says("removed ");
  assert_int_equal(count_files(".prof"), 2);
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_int_equal(count_files(".prof"), 1);
  assert_int_equal(access(live, F_OK), 0);
  end_child(child);
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_int_equal(count_files(".prof"), 0);
}

/* One byte more or less in the file: as another container's, or another host's, would have it. */
static void change_byte(const char *path, long offset) {
  FILE *const file = fopen(path, "r+b");
  assert_non_null(file);
  assert_int_equal(fseek(file, offset, SEEK_SET), 0);
  const int byte = fgetc(file);
  assert_int_equal(fseek(file, offset, SEEK_SET), 0);
  assert_int_not_equal(fputc(byte ^ 1, file), EOF);
  assert_int_equal(fclose(file), 0);
}

/* Whether its process runs cannot be told from here, so it is neither called dead nor removed; on
   the same host an earlier boot's is dead. */
static void a_capture_of_another_container_or_host_is_not_taken_for_a_dead_ones(void **state) {
  const char *const capture = (const char *)(uintptr_t)own.page->capture;
  (void)state;
  end_child(begin_child(wait_inside));
  change_byte(capture, NAMESPACE_OFFSET);
  prof_trace_info info = info_of(capture);
  assert_true(info.is_elsewhere && !info.is_live && !info.was_clean && info.open_count == 2 &&
              info.scope_count == OPS);
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_says("unknown ");
  assert_says("1 of which cannot be told");
  assert_int_equal(count_files(".prof"), 1);
  change_byte(capture, NAMESPACE_OFFSET);
  change_byte(capture, BOOT_OFFSET);
  assert_true(!info_of(capture).is_elsewhere);
  char words[600];
  snprintf(words, sizeof words, "info '%s'", capture);
  assert_int_equal(run(words), 0);
  assert_says("ended without a stop");
  change_byte(capture, HOST_OFFSET);
  assert_true(info_of(capture).is_elsewhere);
  change_byte(capture, HOST_OFFSET);
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_int_equal(count_files(".prof"), 0);
}

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

/* Its clocks show other times than ours. If the system refuses to make such a process, it says
   so and ends. */
static void wait_inside_with_other_clocks(void) {
  static const char offset[] = "boottime 100000 0";
  if (unshare(CLONE_NEWTIME) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWTIME) != 0) _exit(77);
  const int fd = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
  if (fd < 0 || write(fd, offset, strlen(offset)) != (ssize_t)strlen(offset)) _exit(77);
  close(fd);
  const pid_t child = fork();
  if (child == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    wait_inside();
  }
  waitpid(child, NULL, 0);
}

static void a_process_in_another_time_namespace_is_not_taken_for_dead(void **state) {
  (void)state;
  memset((void *)(uintptr_t)own.page, 0, sizeof *own.page);
  const pid_t child = fork();
  int status = 0;
  if (child == 0) {
    hang_guard();
    wait_inside_with_other_clocks();
    _exit(0);
  }
  WAIT_WHILE(!own.page->ready && waitpid(child, &status, WNOHANG) == 0);
  if (WIFEXITED(status) && WEXITSTATUS(status) == 77) {
    print_message("skip: no time namespace can be made here\n");
    skip();
  }
  assert_true(own.page->ready);
  assert_true(info_of((const char *)(uintptr_t)own.page->capture).is_elsewhere);
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_says("unknown ");
  assert_int_equal(count_files(".prof"), 1);
  end_child(child);
}

/* Somebody may have meant to keep a capture that was stopped; and who names no directory has none
   in mind. */
static void what_was_stopped_goes_only_when_it_was_listed(void **state) {
  (void)state;
  char path[PATH_MAX + 16];
  snprintf(path, sizeof path, "%s/kept.prof", own.folder);
  end_child(begin_child(wait_inside));
  const pid_t child = fork();
  if (child == 0) {
    const prof_options options = {.size = sizeof options, .cap_bytes = 5 << 20};
    int status = prof_start_with(&options);
    WITH_BASE_PROFILER(PROF_HOST, "kept", "operator", PROF_NO_ARGS, {});
    if (status == PROF_OK) status = prof_stop();
    _exit(status == PROF_OK && prof_dump(path) == PROF_OK ? 0 : 1);
  }
  int how = -1;
  assert_int_equal(waitpid(child, &how, 0), child);
  assert_int_equal(how, 0);
  assert_int_equal(count_files(".prof"), 2);
  assert_int_equal(run("recover --keep 0"), 2);
  assert_says("name the directories");
  assert_int_equal(run("recover --keep 0 ."), 0);
  assert_int_equal(count_files(".prof"), 1);
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(run("recover --all --keep 0 ."), 0);
  assert_int_equal(count_files(".prof"), 0);
}

static void wrong_words_and_other_files_do_no_harm(void **state) {
  char path[PATH_MAX + 16];
  (void)state;
  snprintf(path, sizeof path, "%s/notes.prof", own.folder);
  FILE *const file = fopen(path, "w");
  assert_non_null(file);
  fputs("these are somebody's notes", file);
  fclose(file);
  assert_int_equal(run("recover --keep 0 ."), 1);
  assert_says("notes.prof");
  assert_int_equal(access(path, F_OK), 0);
  assert_int_equal(run("recover --keep -1 ."), 2);
  assert_int_equal(run("recover --keep some ."), 2);
  assert_int_equal(run("recover --format pdf ."), 2);
  assert_int_equal(run("recover no-such-folder"), 1);
  assert_says("no-such-folder");
}

/* ---- around each ---- */

static int fresh_folder(void **state) {
  const char *const base = getenv("TMPDIR");
  (void)state;
  snprintf(own.folder, sizeof own.folder, "%s/prof-outside-XXXXXX", base ? base : "/tmp");
  return mkdtemp(own.folder) ? 0 : -1;
}

static int remove_with_files(const char *folder) {
  DIR *const entries = opendir(folder);
  for (const struct dirent *e; entries && (e = readdir(entries)) != NULL;) {
    char path[2 * PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
    if (unlink(path) != 0 && errno == EISDIR) remove_with_files(path);
  }
  if (entries) closedir(entries);
  return rmdir(folder);
}

static int remove_folder(void **state) {
  (void)state;
  return remove_with_files(own.folder);
}

int main(void) {
#define ENTRY(name) cmocka_unit_test_setup_teardown(name, fresh_folder, remove_folder)
  const struct CMUnitTest tests[] = {
      ENTRY(a_running_process_is_switched_through_its_capture),
      ENTRY(what_cannot_be_switched_is_refused),
      ENTRY(another_user_may_not_switch_it),
      ENTRY(what_a_killed_process_was_inside_of_is_told),
      ENTRY(a_copy_of_what_is_recorded_says_so),
      ENTRY(what_died_is_converted_beside_a_capture_that_is_not),
      ENTRY(the_folder_for_what_died_is_made),
      ENTRY(what_could_not_be_converted_is_not_removed),
      ENTRY(the_newest_are_kept_and_none_that_is_written_to_goes),
      ENTRY(what_was_stopped_goes_only_when_it_was_listed),
      ENTRY(a_capture_of_another_container_or_host_is_not_taken_for_a_dead_ones),
      ENTRY(a_process_in_another_time_namespace_is_not_taken_for_dead),
      ENTRY(wrong_words_and_other_files_do_no_harm),
  };
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  char here[PATH_MAX - 16];
  if (!build && !getcwd(here, sizeof here)) return 1;
  snprintf(own.command, sizeof own.command, "%s/prof", build ? build : here);
  own.page =
      mmap(NULL, sizeof *own.page, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (own.page == MAP_FAILED) return 1;
  return cmocka_run_group_tests(tests, NULL, NULL);
}
