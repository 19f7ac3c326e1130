/* Allocates, and ends in the way that its argument names. */
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void *volatile kept[3];

static void *end_from_thread(void *argument) {
  kept[2] = malloc(1000039);
  exit(0);
  return argument;
}

static void at_exit(void) { free(kept[0]); }

int main(int argc, char **argv) {
  const char *const how = argc > 1 ? argv[1] : "";
  pthread_t thread;
  kept[0] = malloc(1000003);
  kept[1] = malloc(1000033);
  atexit(at_exit);
  if (strcmp(how, "_exit") == 0) _exit(0);
  if (strcmp(how, "kill") == 0) kill(getpid(), SIGKILL);
  if (strcmp(how, "abort") == 0) abort();
  if (strcmp(how, "thread") == 0 && pthread_create(&thread, NULL, end_from_thread, NULL) == 0)
    pause();
  return 0;
}
