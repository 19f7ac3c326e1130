/* Blocks on both sides of 4096 bytes, and two that realloc takes from one side to the other. Left
   at the end: of 200003 bytes, of 50000, and 500 small ones. */
#include <stdlib.h>

enum { SMALL = 1000 };

int main(void) {
  static void *volatile small[SMALL];
  for (int i = 0; i < SMALL; i++) small[i] = malloc(100);
  for (int i = 0; i < SMALL; i += 2) free(small[i]);
  void *volatile kept = malloc(50000), *volatile gone = calloc(1, 60000);
  free(gone);
  void *volatile grows = realloc(malloc(100), 200003), *volatile shrinks =
                                                           realloc(malloc(300007), 50);
  free(shrinks);
  return kept && grows ? 0 : 1;
}
