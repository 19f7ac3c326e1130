/* Allocates before main() and in it. The test finds each piece by its size. Then threads, each of
   which has its first event in malloc(). With 40 thread keys taken, glibc allocates when prof sets
   its own, inside that event. */
#include <pthread.h>
#include <stdlib.h>

extern void *early_piece;
static void *volatile in_preinit, *volatile in_constructor, *volatile in_main;

/* Before any library's constructor, libc's too. */
static void at_preinit(void) {
  pthread_key_t key;
  for (int i = 0; i < 40; i++)
    if (pthread_key_create(&key, NULL) != 0) abort();
  in_preinit = malloc(1000013);
}
__attribute__((section(".preinit_array"), used)) static void (*const preinit)(void) = at_preinit;
static void __attribute__((constructor)) at_load(void) { in_constructor = malloc(1000033); }
static void __attribute__((destructor)) at_exit(void) { free(in_constructor); }

static void *run(void *argument) {
  void *volatile piece = malloc(1000039);
  return (void)argument, piece;
}

int main(void) {
  if (!early_piece || !in_preinit) return 1;
  in_main = malloc(1000037);
  for (int i = 0; i < 3; i++) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, run, NULL) != 0 || pthread_join(thread, NULL) != 0) return 1;
  }
  return 0;
}
