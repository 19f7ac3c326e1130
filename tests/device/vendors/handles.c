/* See handles.h. */
#include "handles.h"

#include <stdlib.h>
#include <string.h>

static size_t place_of(const handles *h, const void *handle) {
  return ((uintptr_t)handle - (uintptr_t)h->first) / h->bytes;
}
static void *at(const handles *h, size_t place) { return h->first + place * h->bytes; }

static void begin(handles *h) {
  if (h->first) return;
  h->first = calloc(h->room, h->bytes);
  h->gone = calloc(h->room, sizeof *h->gone);
  h->is_there = calloc(h->room, 1);
  if (!h->first || !h->gone || !h->is_there) abort();
}

int handles_has(const handles *h, const void *handle) {
  if (!h->first || (uintptr_t)handle < (uintptr_t)h->first) return 0;
  const size_t place = place_of(h, handle);
  return place < h->used && at(h, place) == handle && h->is_there[place];
}

void *handles_add(handles *h) {
  begin(h);
  if (!h->gone_count && h->used == h->room) abort();
  const size_t place = h->gone_count ? h->gone[--h->gone_count] : h->used++;
  h->is_there[place] = 1;
  return memset(at(h, place), 0, h->bytes);
}

void handles_drop(handles *h, const void *handle) {
  const size_t place = place_of(h, handle);
  h->is_there[place] = 0;
  h->gone[h->gone_count++] = (uint32_t)place;
}

void *handles_next(const handles *h, const void *handle) {
  for (size_t place = handle ? place_of(h, handle) + 1 : 0; place < h->used; place++)
    if (h->is_there[place]) return at(h, place);
  return NULL;
}
