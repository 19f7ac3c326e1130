/* A host program that must survive: children that say why they end, a folder of their own, what
   health tells. A header only, since each test is one file. */
#ifndef PROF_TEST_FAILING_HOST_H
#define PROF_TEST_FAILING_HOST_H

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "child_check.h"
#include "hang_guard.h"
#include "health.h"

enum { HOST_SKIPPED = 77, HOST_PATH_ROOM = 512, HOST_SAID_ROOM = 2048 };

static char host_folder[64]; /* of this test program; made by host_make_folder() */

static inline int skip_child(const char *why) {
  fprintf(stderr, "skip: %s\n", why);
  return HOST_SKIPPED;
}

/* ---- children ---- */

typedef struct host_child {
  pid_t pid;
  int said; /* the read end of its stderr */
} host_child;

typedef int host_body(const void *context);

/* Runs body(context) in a child, which SIGALRM ends if it hangs. */
static inline host_child host_begin(host_body *body, const void *context) {
  int ends[2];
  if (pipe2(ends, O_CLOEXEC) != 0) fail_msg("pipe: %s", strerror(errno));
  fflush(NULL);
  const host_child child = {fork(), ends[0]};
  if (child.pid == 0) {
    dup2(ends[1], STDERR_FILENO);
    close(ends[0]); /* the child begins with 0, 1 and 2 alone, and counts from there */
    close(ends[1]);
    hang_guard();
    const int result = body(context);
    fflush(NULL);
    _exit(result);
  }
  close(ends[1]);
  if (child.pid < 0) fail_msg("fork: %s", strerror(errno));
  return child;
}

/* Its wait status; what it said goes to said. */
static inline int host_end(host_child child, char said[HOST_SAID_ROOM]) {
  size_t used = 0;
  for (ssize_t more; used + 1 < HOST_SAID_ROOM &&
                     (more = read(child.said, said + used, HOST_SAID_ROOM - 1 - used)) > 0;)
    used += (size_t)more;
  said[used] = '\0';
  close(child.said);
  int status = -1;
  while (waitpid(child.pid, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

/* "" when the child did as it should, else what went wrong. */
static inline const char *host_complaint(int status, const char *said, char *to, size_t room) {
  to[0] = '\0';
  if (WIFSIGNALED(status))
    snprintf(to, room, "%s (signal %d): %s", WTERMSIG(status) == 14 ? "it hung" : "it was killed",
             WTERMSIG(status), said);
  else if (status != 0)
    snprintf(to, room, "%s", said[0] ? said : "it failed without a word");
  return to;
}

/* Runs it, and fails or skips this test as it did. */
static inline void host_expect(const char *name, host_body *body, const void *context) {
  char said[HOST_SAID_ROOM], complaint[HOST_SAID_ROOM + 64];
  const int status = host_end(host_begin(body, context), said);
  if (WIFEXITED(status) && WEXITSTATUS(status) == HOST_SKIPPED) {
    print_message("%s", said);
    skip();
  }
  if (*host_complaint(status, said, complaint, sizeof complaint))
    fail_msg("%s: %s", name, complaint);
}

/* ---- what is recorded ---- */

static inline void host_check_sum(uint64_t attempted) {
  const prof_health health = health_now();
  const uint64_t lost = health_lost(&health);
  check(health.recorded_count + lost == attempted,
        "%" PRIu64 " recorded + %" PRIu64 " lost != %" PRIu64 " attempted", health.recorded_count,
        lost, attempted);
}

/* How many scopes a capture in a file holds. */
static inline uint64_t host_scopes_in(const char *path) {
  prof_trace *trace = NULL;
  prof_trace_info info = {.size = sizeof info};
  check_status(prof_trace_open(path, &trace), PROF_OK);
  check_status(prof_trace_info_get(trace, &info), PROF_OK);
  check(info.bad_count == 0, "%" PRIu64 " bad records in %s", info.bad_count, path);
  prof_trace_destroy(trace);
  return info.scope_count;
}

/* ---- files ---- */

static inline int host_make_folder(void **state) {
  (void)state;
  snprintf(host_folder, sizeof host_folder, "/tmp/prof-failing-XXXXXX");
  if (!mkdtemp(host_folder)) return -1;
  return chmod(host_folder, 0755);
}

static inline const char *host_path(const char *name) {
  static char paths[8][HOST_PATH_ROOM]; /* so that a few of them stand beside each other */
  static unsigned next;
  char *const path = paths[next++ % 8];
  snprintf(path, HOST_PATH_ROOM, "%s/%s", host_folder, name);
  return path;
}

static inline long long host_size(const char *path) {
  struct stat about;
  return stat(path, &about) == 0 ? (long long)about.st_size : -1;
}

/* Entries of a folder whose names hold this text; names_out, where asked for, gets the first few of
   them. */
static inline int host_entries(const char *folder, const char *text, char *names_out, size_t room) {
  int count = 0;
  size_t used = 0;
  DIR *const entries = opendir(folder);
  if (names_out) names_out[0] = '\0';
  for (const struct dirent *e; entries && (e = readdir(entries)) != NULL;) {
    if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0 || !strstr(e->d_name, text))
      continue;
    count++;
    if (names_out && used + 1 < room)
      used += (size_t)snprintf(names_out + used, room - used, "'%s' ", e->d_name);
  }
  if (entries) closedir(entries);
  return count;
}

static inline int host_remove_entry(const char *path, const struct stat *about, int kind,
                                    struct FTW *where) {
  (void)about, (void)kind;
  if (where->level > 0) remove(path);
  return 0;
}

static inline void host_empty(const char *folder) {
  nftw(folder, host_remove_entry, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

static inline int host_empty_folder(void **state) {
  (void)state;
  host_empty(host_folder);
  return 0;
}

static inline int host_remove_folder(void **state) {
  host_empty_folder(state);
  return rmdir(host_folder);
}

/* How many descriptors are open, the one that looks left out. */
static inline int host_descriptors(void) { return host_entries("/proc/self/fd", "", NULL, 0) - 1; }

#endif
