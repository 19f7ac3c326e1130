/* The walk of a test that refuses the nth call of each function, for every n, to a child of its own
   each. The plugin inject.so does so; the test puts it in front of the C library by LD_PRELOAD. In
   CI n is 1, 2, 4, 8, ...; with PROF_LONG=1 it is every number. A header only, because each test is
   one file; included after host.h. */
#ifndef PROF_TEST_FAILING_WALK_H
#define PROF_TEST_FAILING_WALK_H

#include <dlfcn.h>
#include <sys/mman.h>

#include "../fault/support/skip.h"
#include "host.h"
#include "inject.h"

/* What is refused, and how. */
typedef struct walk_way {
  inject_function function;
  const char *name;
  int error;
  const char *error_name;
} walk_way;
#define WALK_WAY(name, error) \
  { INJECT_##name, #name, error, #error }

static struct {
  inject_begin_function *begin;
  inject_arm_function *arm;
  inject_plan *plan; /* shared with the children */
  const char *only;  /* PROF_FAILING_ONLY=function and PROF_FAILING_NTH=n run one case alone */
  uint64_t only_nth, runs, failures;
} walk;

/* A call to prof, in which anything may fail. The text of a known failure replaces that of an older
   one. */
#define WALK_ARMED(call)     \
  __extension__({            \
    prof_health_get(NULL);   \
    walk.arm(1);             \
    const int armed_ = call; \
    walk.arm(0);             \
    armed_;                  \
  })

/* It worked, or there is a text that says why not. */
static void walk_check_said(int status) {
  const char *const text = prof_last_error();
  if (status == PROF_OK) return;
  check(status < 0 && strcmp(prof_status_name(status), "PROF_E_UNKNOWN") != 0, "status %d", status);
  check(text[0] && !strstr(text, "health_out"), "%s without a word", prof_status_name(status));
}

/* False: it went wrong, or there is no nth call. With nth 0 nothing fails. */
static bool walk_nth(host_body *body, const void *context, const walk_way *way, uint64_t nth,
                     bool is_lasting) {
  char said[HOST_SAID_ROOM], complaint[HOST_SAID_ROOM + 64];
  host_empty(host_folder);
  assert_int_equal(mkdir(host_path("run"), 0755) | mkdir(host_path("elsewhere"), 0755), 0);
  *walk.plan = (inject_plan){
      .function = way->function, .error = way->error, .nth = nth, .is_lasting = is_lasting};
  const int status = host_end(host_begin(body, context), said);
  walk.runs++;
  if (*host_complaint(status, said, complaint, sizeof complaint)) {
    walk.failures++;
    print_error("%s %" PRIu64 "%s, %s: %s\n", way->name, nth, is_lasting ? " and all after it" : "",
                way->error_name, complaint);
  }
  return walk.plan->failed_count > 0;
}

/* Waiting for a file or a pipe is interrupted as often as the host pleases; where the kernel begins
   anew after each signal, there must be an end. */
static bool walk_is_bounded(inject_function function) {
  return function == INJECT_fallocate || function == INJECT_madvise || function == INJECT_flock ||
         function == INJECT_close;
}

static void walk_all(host_body *body, const void *context, const walk_way *ways, size_t way_count,
                     bool is_lasting) {
  const bool is_every = getenv("PROF_LONG") != NULL;
  walk.runs = walk.failures = 0;
  for (size_t i = 0; i < way_count; i++) {
    uint64_t nth = walk.only_nth ? walk.only_nth : 1;
    if (walk.only && strcmp(walk.only, ways[i].name) != 0) continue;
    if (is_lasting && ways[i].error == EINTR && !walk_is_bounded(ways[i].function)) continue;
    while (walk_nth(body, context, &ways[i], nth, is_lasting) && !walk.only_nth)
      nth = is_every ? nth + 1 : 2 * nth;
    print_message("  %-18s %-13s fewer than %" PRIu64 " calls\n", ways[i].name, ways[i].error_name,
                  nth);
  }
  print_message("  %" PRIu64 " runs\n", walk.runs);
  if (walk.failures)
    fail_msg("%" PRIu64 " of %" PRIu64 " runs went wrong", walk.failures, walk.runs);
}

/* Once more with the plugin in front. Returns only when that fails. */
static int walk_put_plugin_in_front(char **argv) {
  char plugin[HOST_PATH_ROOM] = "";
  const char *const folder = getenv("PROF_TEST_PLUGIN_DIR");
  const ssize_t bytes = readlink("/proc/self/exe", plugin, sizeof plugin - 16);
  if (bytes <= 0 || getenv("LD_PRELOAD")) return 1;
  plugin[bytes] = '\0';
  snprintf(strrchr(plugin, '/'), 16, "/inject.so");
  if (folder) snprintf(plugin, sizeof plugin, "%s/inject.so", folder);
  setenv("LD_PRELOAD", plugin, 1);
  execv("/proc/self/exe", argv);
  return 1;
}

/* 0: the plugin stands in front. Else main() ends with it. */
static int walk_begin(char **argv) {
#if !defined(__GLIBC__) || SKIP_SANITIZED
  (void)argv;
  printf(
      "skip: the plugin that fails calls is written for glibc, and a sanitizer has its own in "
      "front\n");
  return HOST_SKIPPED;
#endif
  *(void **)&walk.begin = dlsym(RTLD_DEFAULT, "inject_begin");
  *(void **)&walk.arm = dlsym(RTLD_DEFAULT, "inject_arm");
  if (!walk.begin || !walk.arm) return walk_put_plugin_in_front(argv);
  walk.plan =
      mmap(NULL, sizeof *walk.plan, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (walk.plan == MAP_FAILED) return 1;
  walk.only = getenv("PROF_FAILING_ONLY");
  const char *const nth = getenv("PROF_FAILING_NTH");
  walk.only_nth = nth ? strtoull(nth, NULL, 10) : 0;
  return 0;
}

#endif
