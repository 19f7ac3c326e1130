/* Allocates by every name that C has, at random, and keeps an account of its own; prints it at the
   end. Nothing of libc that it calls allocates. */
#define _GNU_SOURCE
#include <errno.h>
#include <malloc.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECES = 2000, STEPS = 200000 };

static struct {
  void *at;
  size_t asked, given;
} pieces[PIECES];
static unsigned long long allocs, frees, used, asked, peak_used, peak_asked;

static unsigned draw(void) {
  static uint64_t state = 1;
  state = state * 6364136223846793005ull + 1442695040888963407ull;
  return (unsigned)(state >> 33);
}

static void came(int i, void *at, size_t bytes) {
  if (!at) abort();
  memset(at, 0xa5, bytes);
  pieces[i].at = at;
  pieces[i].asked = bytes;
  pieces[i].given = malloc_usable_size(at);
  allocs++;
  used += pieces[i].given;
  asked += bytes;
  if (used <= peak_used) return;
  peak_used = used;
  peak_asked = asked;
}

static void went(int i) {
  pieces[i].at = NULL;
  frees++;
  used -= pieces[i].given;
  asked -= pieces[i].asked;
}

static void *by_any_name(size_t bytes) {
  void *at = NULL;
  switch (draw() % 8) {
    case 0:
      return calloc(1, bytes);
    case 1:
      return memalign(64, bytes);
    case 2:
      return aligned_alloc(256, bytes);
    case 3:
      return posix_memalign(&at, 1024, bytes) == 0 ? at : NULL;
    case 4:
      return valloc(bytes);
    case 5:
      return pvalloc(bytes);
    case 6:
      return reallocarray(NULL, 1, bytes);
    default:
      return malloc(bytes);
  }
}

static size_t draw_bytes(void) {
  return draw() % 100 == 0 ? draw() % 1000000 : draw() % 10 == 0 ? draw() % 5000 : draw() % 300;
}

static void step(void) {
  const int i = (int)(draw() % PIECES);
  const size_t bytes = draw_bytes();
  if (!pieces[i].at) {
    came(i, by_any_name(bytes), bytes);
  } else if (draw() % 3) {
    free(pieces[i].at);
    went(i);
  } else {
    void *const fresh =
        draw() % 2 ? realloc(pieces[i].at, bytes + 1) : reallocarray(pieces[i].at, 1, bytes + 1);
    went(i);
    came(i, fresh, bytes + 1);
  }
}

/* A call that fails changes no piece. errno, or the result of posix_memalign(), says why. A realloc
   that fails is recorded as a free and an alloc of the bytes that the piece has. */
static void fail_all(void) {
  void *volatile at = &at;
  volatile size_t huge = SIZE_MAX / 2;
  errno = 0;
  if (malloc(huge) || errno != ENOMEM) abort();
  if (calloc(huge, 8) || memalign(64, huge) || aligned_alloc(64, huge) || valloc(huge) ||
      pvalloc(huge) || reallocarray(NULL, huge, 8))
    abort();
  if (posix_memalign((void **)&at, 64, huge) != ENOMEM ||
      posix_memalign((void **)&at, 3, 8) != EINVAL || at != (void *)&at)
    abort();
  came(0, malloc(1000), 1000);
  errno = 0;
  if (realloc(pieces[0].at, huge) || errno != ENOMEM) abort();
  void *const kept = pieces[0].at;
  const size_t given = pieces[0].given;
  went(0);
  came(0, kept, given);
  if (reallocarray(kept, huge, 8)) abort();
  errno = 77;
  free(NULL);
  free(kept);
  went(0);
  if (errno != 77) abort();
  came(0, malloc(0), 0);
  if (realloc(pieces[0].at, 0)) abort();
  went(0);
}

int main(void) {
  fail_all();
  for (int i = 0; i < STEPS; i++) step();
  if (malloc_usable_size(strcpy(malloc(10), "nine char")) < 10) abort(); /* and one that leaks */
  allocs++;
  asked += 10;
  used += 24;
  char text[512]; /* printf() and dprintf() would allocate */
  const int length = snprintf(text, sizeof text,
                              "own_allocs=%llu\nown_frees=%llu\nown_used=%llu\nown_asked=%llu\nown_"
                              "peak_used=%llu\nown_peak_asked=%llu\n",
                              allocs, frees, used, asked, peak_used, peak_asked);
  return write(1, text, (size_t)length) != length;
}
