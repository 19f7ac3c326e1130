/* A library that allocates in its constructor, which may be before or after prof's, and frees in
   its destructor, which may be after prof's. */
#include <stdlib.h>

void *early_piece;
static void *early_freed;

static void __attribute__((constructor)) at_load(void) {
  early_piece = malloc(1000003);
  early_freed = malloc(1000081);
}

static void __attribute__((destructor)) at_exit(void) { free(early_freed); }
