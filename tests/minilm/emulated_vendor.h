/* A vendor's libraries out of the emulated ones (../device/vendors), which a child of the test
   finds by LD_LIBRARY_PATH: all of them, or some with others hidden. Include it behind cmocka.h.
   SPDX-License-Identifier: MIT */
#ifndef TESTS_MINILM_EMULATED_VENDOR_H
#define TESTS_MINILM_EMULATED_VENDOR_H

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { VENDOR_PATH_BYTES = 4096, VENDOR_TEXT_BYTES = 2048, VENDOR_FILES_MAX = 8 };

static inline void vendor_folder(char path_out[VENDOR_PATH_BYTES]) {
  const char *build = getenv("PROF_TEST_BUILD_DIR");
  snprintf(path_out, VENDOR_PATH_BYTES, "%s/tests/device/vendors",
           build != NULL ? build : "build/dev");
}

/* For the processes that are started from now on. */
static inline void vendor_find_all(void) {
  char path[VENDOR_PATH_BYTES];
  vendor_folder(path);
  setenv("LD_LIBRARY_PATH", path, 1);
}

/* The emulated library's own state, in this process. */
static inline void *vendor_state(const char *library, const char *function) {
  void *(*state)(void) = NULL;
  void *const found = dlopen(library, RTLD_NOW);
  if (found == NULL) fail_msg("%s", dlerror());
  *(void **)&state = dlsym(found, function);
  assert_non_null(state);
  return state();
}

static inline void vendor_run_child(const char *libraries, int output) {
  setenv("LD_LIBRARY_PATH", libraries, 1);
  dup2(output, STDOUT_FILENO);
  execl("/proc/self/exe", "alone", "open", (char *)NULL);
  _exit(127);
}

/* What this program with the argument "open" says if some of the vendor's libraries are the
   emulated ones and the others cannot be opened. The system may have the others: an empty file of
   that name comes before. Both lists end with NULL. */
static inline void vendor_ask(const char *const *there, const char *const *hidden,
                              char text_out[VENDOR_TEXT_BYTES]) {
  char folder[] = "/tmp/minilm-vendor-XXXXXX", vendors[VENDOR_PATH_BYTES],
       from[VENDOR_PATH_BYTES + 64], paths[VENDOR_FILES_MAX][128];
  int ends[2], status = -1, count = 0;
  assert_non_null(mkdtemp(folder));
  vendor_folder(vendors);
  for (; *there != NULL; there++) {
    snprintf(from, sizeof from, "%s/%s", vendors, *there);
    snprintf(paths[count], sizeof paths[count], "%s/%s", folder, *there);
    assert_int_equal(symlink(from, paths[count++]), 0);
  }
  for (; *hidden != NULL; hidden++) {
    snprintf(paths[count], sizeof paths[count], "%s/%s", folder, *hidden);
    close(open(paths[count++], O_WRONLY | O_CREAT, 0600));
  }
  assert_int_equal(pipe(ends), 0);
  const pid_t child = fork();
  if (child == 0) vendor_run_child(folder, ends[1]);
  close(ends[1]);
  size_t bytes = 0;
  for (ssize_t got = 1; got > 0 && bytes < VENDOR_TEXT_BYTES - 1; bytes += (size_t)got) {
    got = read(ends[0], text_out + bytes, VENDOR_TEXT_BYTES - 1 - bytes);
    if (got < 0) got = 0;
  }
  text_out[bytes] = '\0';
  close(ends[0]);
  assert_int_equal(waitpid(child, &status, 0), child);
  for (int i = 0; i < count; i++) unlink(paths[i]);
  rmdir(folder);
  print_message("  %s\n", text_out);
  assert_int_equal(status, 0);
}

static inline void vendor_says(const char *const *there, const char *const *hidden,
                               const char *words) {
  char text[VENDOR_TEXT_BYTES];
  vendor_ask(there, hidden, text);
  if (strstr(text, words) == NULL) fail_msg("\"%s\" does not say \"%s\"", text, words);
}

#define LIBRARIES(...) \
  (const char *const[]) { __VA_ARGS__, NULL }
#define NO_LIBRARIES \
  (const char *const[]) { NULL }

/* The argument "open": what opening the engine comes to. */
static inline int vendor_tell(const char *name) {
  engine *e = NULL;
  failure refusal;
  if (engine_open(name, &e, &refusal) != 0)
    puts(refusal.text);
  else
    printf("opened: %s\n", e->description);
  if (e != NULL) e->destroy(e);
  return 0;
}

#endif
