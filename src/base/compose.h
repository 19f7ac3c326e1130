/* Text put together in a room of fixed size. Where a scope may come, printf does not do: it takes a
   kilobyte of stack and is not async-signal-safe. Signal-safe; no lock, no allocation. */
#ifndef PROF_BASE_COMPOSE_H
#define PROF_BASE_COMPOSE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_compose {
  char *to; /* always ends with a NUL */
  size_t room, bytes;
  bool is_cut; /* something did not fit */
} prof_i_compose;

/* Begins an empty text. The room is 1 byte at least, NUL included. */
static inline prof_i_compose prof_i_compose_in(char *to, size_t room) {
  to[0] = '\0';
  return (prof_i_compose){.to = to, .room = room};
}

void prof_i_compose_bytes(prof_i_compose *text, const char *from, size_t bytes);
void prof_i_compose_text(prof_i_compose *text, const char *from);
void prof_i_compose_number(prof_i_compose *text, uint64_t number);

#endif
