/* When a test cannot run here: one line "skip: why", and exit status 77. A header only. */
#ifndef PROF_TESTS_SKIP_H
#define PROF_TESTS_SKIP_H

#include <stdio.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#define SKIP_SANITIZED 0
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
#undef SKIP_SANITIZED
#define SKIP_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer) || __has_feature(address_sanitizer)
#undef SKIP_SANITIZED
#define SKIP_SANITIZED 1
#endif
#endif

static inline void skip_because(const char *why) {
  printf("skip: %s\n", why);
  fflush(stdout);
  exit(77);
}

static inline void skip_unless_steppable(void) {
#if !defined(__x86_64__)
  skip_because("stepping by instruction is written for x86-64");
#elif SKIP_SANITIZED
  skip_because("the sanitizer's own instructions would be walked");
#else
  int status = 0;
  const pid_t child = fork();
  if (child == 0) _exit(ptrace(PTRACE_TRACEME, 0, NULL, NULL) != 0);
  if (child < 0 || waitpid(child, &status, 0) != child || status != 0)
    skip_because("ptrace is not permitted here");
#endif
}

#endif
