/* CALM: a parent and a child, with pieces told by their sizes. BUSY: children of a process whose
   other threads allocate all the time; none may hang. */
#include <pthread.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int is_over;

static void *churn(void *argument) {
  while (!__atomic_load_n(&is_over, __ATOMIC_RELAXED)) free(malloc((uintptr_t)argument * 100));
  return NULL;
}

static int wait_for(pid_t child) {
  int status;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) &&
                 WEXITSTATUS(status) == 0
             ? 0
             : 1;
}

static int calm(void) {
  static void *volatile kept[4];
  kept[0] = malloc(1000003);
  kept[1] = malloc(1000033);
  const pid_t child = fork();
  if (child == 0) {
    free(kept[1]);
    kept[2] = malloc(5000037);
    free(kept[2]);
    kept[2] = malloc(1000037);
    exit(0);
  }
  kept[3] = malloc(1000039);
  return wait_for(child);
}

static int busy(void) {
  pthread_t threads[3];
  for (uintptr_t i = 0; i < 3; i++)
    if (pthread_create(&threads[i], NULL, churn, (void *)(i + 1)) != 0) return 1;
  int failed = 0;
  for (int i = 0; i < 60 && !failed; i++) {
    const pid_t child = fork();
    if (child == 0) {
      for (int k = 0; k < 1000; k++) free(malloc((size_t)k));
      if (i % 2) exit(0);
      _exit(0);
    }
    failed = wait_for(child);
  }
  __atomic_store_n(&is_over, 1, __ATOMIC_RELAXED);
  for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
  return failed;
}

int main(int argc, char **argv) {
  return argc > 1 && strcmp(argv[1], "BUSY") == 0 ? busy() : calm();
}
