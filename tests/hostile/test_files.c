/* Files that are no capture, or that this reader cannot take, or that change while they are read. A
   clear error within a second, or what can be read and a count of what cannot. By the library and
   by the prof command. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../src/format/merged.h"
#include "hang_guard.h"
#include "read_everything.h"
#include "unit/build_capture.h"

#define COUNT_OF(array) (sizeof(array) / sizeof *(array))

enum { PATH_ROOM = 512, SCOPES = 3000, LARGE_BYTES = 72 << 20, NOBODY = 65534 };

static struct {
  char folder[64], command[PATH_ROOM];
  char said[8192]; /* by the last command */
  capture c;       /* of one thread, SCOPES scopes, some in a second chunk */
} own;

static const char *path_of(const char *name) {
  static char paths[4][PATH_ROOM];
  static int next;
  char *const path = paths[next++ % 4];
  snprintf(path, PATH_ROOM, "%s/%s", own.folder, name);
  return path;
}

static void fill(capture *c, uint64_t chunk_bytes, uint64_t chunk_count, uint64_t scope_count) {
  capture_begin(c, 32768 + PROF_I_SLOT_BYTES + chunk_bytes * chunk_count);
  prof_i_head *const meta = capture_meta(c);
  capture_session(meta, CAPTURE_START, 2, 1);
  capture_clock(c, meta, 0, 0, 0);
  capture_site(meta, 1, "matmul", "operator", 1);
  prof_i_thread_slot *const slot = capture_slot(c, 1, "main");
  uint64_t made = 0;
  for (uint64_t i = 0; i < chunk_count; i++) {
    prof_i_head *const chunk = capture_chunk(c, chunk_bytes, 1);
    slot->chunk = (uint64_t)((unsigned char *)chunk - c->bytes);
    for (; made < scope_count * (i + 1) / chunk_count; made++)
      capture_plain(chunk, CAPTURE_START + 200 + made * 10, 5, 1);
  }
}

static int set_up(void **state) {
  const char *const build = getenv("PROF_TEST_BUILD_DIR");
  (void)state;
  snprintf(own.command, sizeof own.command, "%s/prof", build ? build : ".");
  snprintf(own.folder, sizeof own.folder, "/tmp/prof-files-XXXXXX");
  if (!mkdtemp(own.folder) || chmod(own.folder, 0755) != 0) return -1;
  fill(&own.c, 2 * PROF_I_UNIT_BYTES, 2, SCOPES);
  return 0;
}

static int tear_down(void **state) {
  char line[128];
  (void)state;
  capture_end(&own.c);
  snprintf(line, sizeof line, "rm -rf '%s'", own.folder);
  return system(line);
}

static void write_file(const char *path, const void *bytes, size_t count) {
  const int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  assert_true(fd >= 0);
  for (size_t done = 0; done < count;) {
    const ssize_t got = write(fd, (const char *)bytes + done, count - done);
    assert_true(got > 0);
    done += (size_t)got;
  }
  assert_int_equal(close(fd), 0);
}

/* Runs the command; its exit status, or -1 when it was killed. What it says on stderr is kept. */
static int run(const char *words, const char *path) {
  char line[2 * PATH_ROOM];
  snprintf(line, sizeof line, "timeout %u '%s' %s '%s' 2>&1 >/dev/null", hang_seconds(),
           own.command, words, path);
  FILE *const pipe = popen(line, "r");
  assert_non_null(pipe);
  own.said[fread(own.said, 1, sizeof own.said - 1, pipe)] = '\0';
  const int status = pclose(pipe);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/* The library refuses it, with that text in its error; so does the command. A guard ends a process
   that waits. */
static void assert_refused(const char *path, int wanted, const char *text) {
  prof_trace *trace = NULL;
  hang_guard();
  const int status = prof_trace_open(path, &trace);
  alarm(0);
  if (status != wanted || trace || !strstr(prof_last_error(), text))
    fail_msg("%s: %s, '%s'; wanted is %s with '%s'", path, prof_status_name(status),
             prof_last_error(), prof_status_name(wanted), text);
  if (access(own.command, X_OK) != 0) return;
  const int said = run("info", path);
  if (said != 1 || !strstr(own.said, text) ||
      strchr(own.said, '\n') != own.said + strlen(own.said) - 1)
    fail_msg("prof info %s: exit status %d, said '%s'; wanted is one line with '%s'", path, said,
             own.said, text);
}

/* ---- what is no capture, or not one for this reader ---- */

static void the_capture_itself_reads_clean(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  write_file(path_of("good.prof"), own.c.bytes, own.c.count);
  assert_int_equal(prof_trace_open(path_of("good.prof"), &trace), PROF_OK);
  assert_int_equal(info_of(trace).event_count, SCOPES);
  assert_int_equal(info_of(trace).bad_count, 0);
  read_events(trace);
  prof_trace_destroy(trace);
}

static void what_is_no_regular_file_is_refused_at_once(void **state) {
  (void)state;
  struct sockaddr_un address = {.sun_family = AF_UNIX};
  assert_int_equal(mkfifo(path_of("fifo"), 0600), 0);
  snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", own.folder);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
  assert_int_equal(bind(fd, (const struct sockaddr *)&address, sizeof address), 0);
  assert_int_equal(symlink("loop", path_of("loop")), 0);
  assert_int_equal(symlink("nowhere", path_of("dangling")), 0);
  assert_int_equal(symlink("/dev/zero", path_of("zero")), 0);
  assert_refused(path_of("fifo"), PROF_E_FILE_TYPE, "a pipe");
  assert_refused(path_of("socket"), PROF_E_FILE_TYPE, "a socket");
  prof_trace *trace = NULL; /* the command reads the captures in it */
  assert_int_equal(prof_trace_open(own.folder, &trace), PROF_E_FILE_TYPE);
  assert_non_null(strstr(prof_last_error(), "a directory"));
  assert_refused("/dev/zero", PROF_E_FILE_TYPE, "a device");
  assert_refused("/dev/null", PROF_E_FILE_TYPE, "a device");
  assert_refused(path_of("zero"), PROF_E_FILE_TYPE, "a device");
  assert_refused(path_of("loop"), PROF_E_FILE_TYPE, "loop");
  assert_refused(path_of("dangling"), PROF_E_NOT_FOUND, "dangling");
  assert_refused(path_of("missing"), PROF_E_NOT_FOUND, "missing");
  close(fd);
}

static void what_is_no_capture_says_what_it_is_instead(void **state) {
  (void)state;
  const char *const path = path_of("file.prof");
  unsigned char zeros[8192] = {0};
  write_file(path, "", 0);
  assert_refused(path, PROF_E_TRUNCATED, "0 bytes");
  write_file(path, own.c.bytes, 7);
  assert_refused(path, PROF_E_TRUNCATED, "7 bytes");
  write_file(path, own.c.bytes, 4095);
  assert_refused(path, PROF_E_TRUNCATED, "4095 bytes");
  write_file(path, zeros, sizeof zeros); /* its process died before the magic was stored */
  assert_refused(path, PROF_E_NOT_CAPTURE, "it ended while it started");
  write_file(path, "{\"traceEvents\":[]}", 18);
  assert_refused(path, PROF_E_NOT_CAPTURE, "not a capture's");
  write_file(path, "prof\n\n\x1a\n", 8);
  assert_refused(path, PROF_E_NOT_CAPTURE, "copied as text");
}

/* Every number of the header as the other kind of machine stores it; the magic as a text or as a
   number. */
static void the_other_byte_order_is_named(void **state) {
  (void)state;
  unsigned char header[16384];
  for (int with_magic = 0; with_magic < 2; with_magic++) {
    memcpy(header, own.c.bytes, sizeof header);
    for (size_t at = with_magic ? 0 : 8, bytes; at < offsetof(prof_i_header, host); at += bytes) {
      const int is_half = (at >= 8 && at < 24) || (at >= 40 && at < 48) || (at >= 56 && at < 64) ||
                          (at >= 136 && at < 144);
      bytes = is_half ? 4 : 8;
      for (size_t i = 0; i < bytes; i++) header[at + i] = own.c.bytes[at + bytes - 1 - i];
    }
    write_file(path_of("file"), header, sizeof header);
    assert_refused(path_of("file"), PROF_E_NOT_CAPTURE, "byte order");
  }
}

static void a_newer_version_is_named(void **state) {
  (void)state;
  static const uint32_t versions[] = {PROF_I_MERGED_VERSION + 1, 77, UINT32_MAX};
  unsigned char header[16384];
  memcpy(header, own.c.bytes, sizeof header);
  for (size_t i = 0; i < COUNT_OF(versions); i++) {
    char number[16];
    snprintf(number, sizeof number, "%u", versions[i]);
    ((prof_i_header *)(void *)header)->version = versions[i];
    write_file(path_of("file"), header, sizeof header);
    assert_refused(path_of("file"), PROF_E_VERSION, number);
  }
}

/* Root may read all, so a child becomes nobody. */
static void another_users_file_is_refused(void **state) {
  (void)state;
  const char *const path = path_of("private");
  write_file(path, own.c.bytes, own.c.count);
  assert_int_equal(chmod(path, geteuid() == 0 ? 0600 : 0), 0);
  const pid_t child = fork();
  assert_true(child >= 0);
  if (child == 0) {
    prof_trace *trace = NULL;
    if (geteuid() == 0 && (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)) _exit(77);
    const int status = prof_trace_open(path, &trace);
    _exit(status != PROF_E_PERMISSION ? 1 : !strstr(prof_last_error(), path) ? 2 : 0);
  }
  int status;
  assert_int_equal(waitpid(child, &status, 0), child);
  assert_true(WIFEXITED(status));
  if (WEXITSTATUS(status) == 77) {
    print_message("skip: this root may not become another user\n");
    skip();
  }
  assert_int_equal(WEXITSTATUS(status), 0);
}

/* What a writer of the same version has added since: a longer header is no damage. Records of an
   unknown kind are counted while the rest is read. */
static void what_a_newer_writer_added_is_counted_and_the_rest_read(void **state) {
  (void)state;
  const char *const path = path_of("newer");
  capture c;
  prof_trace *trace = NULL;
  fill(&c, 2 * PROF_I_UNIT_BYTES, 1, 100);
  capture_header(&c)->header_bytes = PROF_I_HEADER_BYTES;
  memset(c.bytes + sizeof(prof_i_header), 0x5a, PROF_I_HEADER_BYTES - sizeof(prof_i_header));
  write_file(path, c.bytes, c.count);
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  assert_int_equal(info_of(trace).bad_count, 0);
  assert_int_equal(info_of(trace).event_count, 100);
  prof_trace_destroy(trace);

  prof_i_head *const chunk = (prof_i_head *)(void *)(c.bytes + c.count - 2 * PROF_I_UNIT_BYTES);
  static long_record r;
  long_begin(&r, (prof_i_kind)200, CAPTURE_START + 5000, 5, 1);
  long_word(&r, 42);
  long_end(&r, chunk);
  for (uint64_t i = 0; i < 50; i++) capture_plain(chunk, CAPTURE_START + 6000 + i * 10, 5, 1);
  write_file(path, c.bytes, c.count);
  assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
  assert_int_equal(info_of(trace).bad_count, 1);
  assert_int_equal(info_of(trace).event_count, 150);
  read_events(trace);
  prof_trace_destroy(trace);
  capture_end(&c);
}

/* ---- the same by each command ---- */

/* What is given, what the error must say besides the name: what is wrong, what to do. */
static const struct {
  const char *name, *wrong, *what_to_do;
} unfit[] = {
    {"other-order.prof", "the other byte order", "read it on a machine of that order"},
    {"newer.prof", "format version 5", "use the prof that comes with the program that wrote it"},
    {"cut.prof", "has 200 bytes", "nothing in it can be read"},
    {"trace.prof", "begins as JSON does", "give the .prof file"},
    {"trace-list.prof", "begins as JSON does", "give the .prof file"},
    {"packed.prof", "is compressed (gzip)", "unpack it"},
    {"zstd.prof", "is compressed (zstd)", "unpack it"},
    {"xz.prof", "is compressed (xz)", "unpack it"},
    {"zip.prof", "is compressed (zip)", "unpack it"},
    {"words.prof", "not a capture's", "give the .prof file"},
};

static void make_unfit(void) {
  static const struct {
    const char *name, *bytes;
    size_t count;
  } small[] = {{"trace.prof", "{\"traceEvents\":[]}", 18},
               {"trace-list.prof", "[{\"ph\":\"X\"}]", 12},
               {"packed.prof", "\x1f\x8b\x08\0\0\0\0\0\0\x03", 10},
               {"zstd.prof", "\x28\xb5\x2f\xfd\x04\0\0\0", 8},
               {"xz.prof",
                "\xfd"
                "7zXZ\0\0\4",
                8},
               {"zip.prof", "PK\x03\x04\x14\0\0\0", 8},
               {"words.prof", "these are somebody's notes", 26}};
  unsigned char header[16384];
  for (size_t i = 0; i < COUNT_OF(small); i++)
    write_file(path_of(small[i].name), small[i].bytes, small[i].count);
  write_file(path_of("cut.prof"), own.c.bytes, 200);
  memcpy(header, own.c.bytes, sizeof header);
  ((prof_i_header *)(void *)header)->version = PROF_I_MERGED_VERSION + 1;
  write_file(path_of("newer.prof"), header, sizeof header);
  memcpy(header, own.c.bytes, sizeof header);
  for (size_t i = 0; i < 8; i++) header[i] = own.c.bytes[7 - i];
  write_file(path_of("other-order.prof"), header, sizeof header);
}

static const char *const commands[] = {"info", "table", "dump -o /dev/null", "level"};

/* That command with the file; prof level also takes a level. */
static int run_with(const char *command, const char *path) {
  char words[2 * PATH_ROOM];
  if (strcmp(command, "level") != 0) return run(command, path);
  snprintf(words, sizeof words, "level '%s'", path);
  return run(words, "1");
}

static void assert_explained(const char *command, size_t i, int status) {
  const char *const line = strstr(own.said, unfit[i].name);
  if (status == 1 && line && strstr(line, unfit[i].wrong) && strstr(line, unfit[i].what_to_do))
    return;
  fail_msg("prof %s: %s: exit status %d, wanted are '%s' and '%s' in: %s", command, unfit[i].name,
           status, unfit[i].wrong, unfit[i].what_to_do, own.said);
}

static void each_command_names_the_file_what_is_wrong_and_what_to_do(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  if (access(own.command, X_OK) != 0) {
    print_message("skip: %s is not built (PROF_TOOLS is off)\n", own.command);
    skip();
  }
  make_unfit();
  for (size_t i = 0; i < COUNT_OF(unfit); i++) {
    const char *const path = path_of(unfit[i].name);
    assert_true(prof_trace_open(path, &trace) < 0);
    snprintf(own.said, sizeof own.said, "%s", prof_last_error());
    assert_explained("(the library)", i, 1);
    for (size_t k = 0; k < COUNT_OF(commands); k++)
      assert_explained(commands[k], i, run_with(commands[k], path));
  }
  const int status = run("recover", own.folder); /* all of them, and what can be read */
  for (size_t i = 0; i < COUNT_OF(unfit); i++) assert_explained("recover", i, status);
  for (size_t i = 0; i < COUNT_OF(unfit); i++) unlink(path_of(unfit[i].name));
}

/* A pipe, a link, a directory without captures: by each command, at once. */
static void each_command_refuses_what_is_no_file(void **state) {
  (void)state;
  if (access(own.command, X_OK) != 0) {
    print_message("skip: %s is not built (PROF_TOOLS is off)\n", own.command);
    skip();
  }
  mkfifo(path_of("fifo"), 0600); /* another test may have */
  assert_int_equal(mkdir(path_of("empty"), 0700), 0);
  const char *const paths[] = {path_of("empty"), path_of("fifo"), "/dev/zero"};
  for (size_t i = 0; i < COUNT_OF(paths); i++)
    for (size_t k = 0; k < COUNT_OF(commands); k++) {
      const int status = run_with(commands[k], paths[i]);
      const char *const wrong =
          i == 0 && strcmp(commands[k], "level") != 0 ? "no capture" : "regular file";
      if (status != 1 || !strstr(own.said, paths[i]) || !strstr(own.said, wrong))
        fail_msg("prof %s %s: exit status %d, said '%s'", commands[k], paths[i], status, own.said);
    }
  assert_int_equal(run("recover", path_of("fifo")), 1);
  assert_non_null(strstr(own.said, "give the directory"));
}

/* ---- files that change ---- */

typedef struct changing {
  const char *path;
  int is_growing;
  atomic_int is_done;
} changing;

/* One length after another, forth or back. */
static void *change(void *of) {
  changing *const file = of;
  const int fd = open(file->path, O_WRONLY | O_CLOEXEC);
  for (size_t at = 0; at < own.c.count; at += 61) {
    const size_t bytes = own.c.count - at < 61 ? own.c.count - at : 61;
    if (file->is_growing ? pwrite(fd, own.c.bytes + at, bytes, (off_t)at) != (ssize_t)bytes
                         : ftruncate(fd, (off_t)(own.c.count - at - bytes)) != 0)
      break;
  }
  close(fd);
  atomic_store(&file->is_done, 1);
  return NULL;
}

/* Opens it again and again meanwhile: all there is, or damage counted, or a refusal with a text. */
static void read_while_it_changes(int is_growing) {
  changing file = {.path = path_of(is_growing ? "growing" : "shrinking"), .is_growing = is_growing};
  pthread_t thread;
  uint64_t opened = 0, refused = 0, parts = 0;
  write_file(file.path, own.c.bytes, is_growing ? 0 : own.c.count);
  assert_int_equal(pthread_create(&thread, NULL, change, &file), 0);
  for (int is_last = 0; !is_last;) {
    is_last = atomic_load(&file.is_done);
    prof_trace *trace = NULL;
    const int status = prof_trace_open(file.path, &trace);
    if (status != PROF_OK) {
      assert_int_equal(status, PROF_E_TRUNCATED);
      assert_non_null(strstr(prof_last_error(), "bytes"));
      refused++;
      continue;
    }
    const prof_trace_info info = info_of(trace);
    read_events(trace);
    prof_trace_destroy(trace);
    assert_in_range(info.event_count, 0, SCOPES);
    if (info.event_count < SCOPES && info.bad_count == 0)
      fail_msg("%llu events and no damage", (unsigned long long)info.event_count);
    parts += info.event_count > 0 && info.event_count < SCOPES;
    opened++;
  }
  assert_int_equal(pthread_join(thread, NULL), 0);
  print_message("%llu opened, %llu of them in part, %llu refused\n", (unsigned long long)opened,
                (unsigned long long)parts, (unsigned long long)refused);
  prof_trace *trace = NULL;
  const int status = prof_trace_open(file.path, &trace);
  assert_int_equal(status, is_growing ? PROF_OK : PROF_E_TRUNCATED);
  if (status == PROF_OK) assert_int_equal(info_of(trace).event_count, SCOPES);
  prof_trace_destroy(trace);
  assert_true(opened > 0);
}

static void a_file_that_grows_is_read_as_far_as_it_goes(void **state) {
  (void)state;
  read_while_it_changes(1);
}

static void a_file_that_shrinks_is_read_as_far_as_it_goes(void **state) {
  (void)state;
  read_while_it_changes(0);
}

/* Cut off between extents, where no head and no record shows it. */
static void a_cut_between_extents_is_damage(void **state) {
  (void)state;
  const char *const path = path_of("cut");
  const uint64_t last_chunk = own.c.count - 2 * PROF_I_UNIT_BYTES;
  for (uint32_t died = 0; died < 2; died++) {
    prof_trace *trace = NULL;
    capture_header(&own.c)->state = died;
    write_file(path, own.c.bytes, last_chunk);
    assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
    assert_int_equal(info_of(trace).event_count, SCOPES / 2);
    /* the thread's chunk is missing; what was made is not there */
    assert_int_equal(info_of(trace).bad_count, 2);
    char *said = NULL;
    assert_int_equal(prof_trace_loss_text(trace, &said), PROF_OK);
    assert_non_null(strstr(said, "the capture is damaged, or cut off: 2 places could not be read"));
    assert_null(strstr(said, "no loss;"));
    free(said);
    prof_trace_destroy(trace);
  }
  capture_header(&own.c)->state = 0;
}

/* A kill may come between the taking of room and the file's growth, also where another thread has
   stopped in the meantime. A full disk leaves the file short. Nothing is missing then. But what has
   been made has to be there. */
static void room_that_was_taken_and_never_made_is_no_damage(void **state) {
  (void)state;
  const char *const path = path_of("taken");
  prof_i_header *const header = capture_header(&own.c), before = *header;
  header->cap_bytes = 1ull << 32;
  for (uint32_t i = 0; i < 4; i++) {
    const uint32_t died = i & 1, was_made = i >> 1;
    prof_trace *trace = NULL;
    header->state = died;
    header->used_bytes = own.c.count + 4 * PROF_I_UNIT_BYTES;
    header->made_bytes = own.c.count + was_made * PROF_I_UNIT_BYTES;
    write_file(path, own.c.bytes, own.c.count);
    assert_int_equal(prof_trace_open(path, &trace), PROF_OK);
    assert_int_equal(info_of(trace).bad_count, was_made);
    prof_trace_destroy(trace);
  }
  *header = before;
}

/* A trace of up to 64 MiB is its own: cut off, or gone, behind an open trace, the file is not
   missed. */
static void an_open_trace_does_not_need_its_file(void **state) {
  (void)state;
  prof_trace *trace = NULL;
  write_file(path_of("gone"), own.c.bytes, own.c.count);
  assert_int_equal(prof_trace_open(path_of("gone"), &trace), PROF_OK);
  assert_int_equal(truncate(path_of("gone"), 0), 0);
  assert_int_equal(unlink(path_of("gone")), 0);
  read_events(trace);
  write_exports(trace);
  assert_int_equal(info_of(trace).event_count, SCOPES);
  prof_trace_destroy(trace);
}

/* A larger one is mapped, and its pages go with the file's end. The command says so, and leaves no
   half output. */
static void the_command_says_when_a_large_file_shrinks_under_it(void **state) {
  (void)state;
  capture large;
  char line[3 * PATH_ROOM];
  if (access(own.command, X_OK) != 0) {
    print_message("skip: %s is not built (PROF_TOOLS is off)\n", own.command);
    skip();
  }
  char *const piece = malloc(1 << 20);
  fill(&large, LARGE_BYTES, 1, LARGE_BYTES / 16 - 64);
  const char *const path = path_of("large.prof"), *const errors = path_of("errors");
  write_file(path, large.bytes, large.count);
  capture_end(&large);
  snprintf(line, sizeof line, "timeout %u '%s' dump '%s' -o /dev/stdout 2>'%s'", hang_seconds(),
           own.command, path, errors);
  FILE *const pipe = popen(line, "r");
  assert_non_null(pipe);
  /* it has opened the capture, and waits for us to read on */
  assert_true(fread(piece, 1, 4096, pipe) == 4096);
  assert_int_equal(truncate(path, PROF_I_FIRST_UNIT_OFFSET), 0);
  uint64_t more = 0;
  for (size_t got; (got = fread(piece, 1, 1 << 20, pipe)) > 0;) more += got;
  const int status = pclose(pipe);
  FILE *const file = fopen(errors, "r");
  assert_non_null(file);
  own.said[fread(own.said, 1, sizeof own.said - 1, file)] = '\0';
  fclose(file);
  unlink(path);
  free(piece);
  if (!WIFEXITED(status) || WEXITSTATUS(status) != 1 || !strstr(own.said, "became shorter"))
    fail_msg("status 0x%x after %llu bytes, said '%s'", (unsigned)status, (unsigned long long)more,
             own.said);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(the_capture_itself_reads_clean),
      cmocka_unit_test(what_is_no_regular_file_is_refused_at_once),
      cmocka_unit_test(what_is_no_capture_says_what_it_is_instead),
      cmocka_unit_test(the_other_byte_order_is_named),
      cmocka_unit_test(a_newer_version_is_named),
      cmocka_unit_test(another_users_file_is_refused),
      cmocka_unit_test(what_a_newer_writer_added_is_counted_and_the_rest_read),
      cmocka_unit_test(each_command_names_the_file_what_is_wrong_and_what_to_do),
      cmocka_unit_test(each_command_refuses_what_is_no_file),
      cmocka_unit_test(a_file_that_grows_is_read_as_far_as_it_goes),
      cmocka_unit_test(a_file_that_shrinks_is_read_as_far_as_it_goes),
      cmocka_unit_test(a_cut_between_extents_is_damage),
      cmocka_unit_test(room_that_was_taken_and_never_made_is_no_damage),
      cmocka_unit_test(an_open_trace_does_not_need_its_file),
      cmocka_unit_test(the_command_says_when_a_large_file_shrinks_under_it),
  };
  return cmocka_run_group_tests_name("files", tests, set_up, tear_down);
}
