/* See compose.h. */
#include "compose.h"

#include <string.h>

void prof_i_compose_bytes(prof_i_compose *text, const char *from, size_t bytes) {
  const size_t left = text->room - 1 - text->bytes, put = bytes < left ? bytes : left;
  memcpy(text->to + text->bytes, from, put);
  text->bytes += put;
  text->to[text->bytes] = '\0';
  text->is_cut |= put < bytes;
}

void prof_i_compose_text(prof_i_compose *text, const char *from) {
  prof_i_compose_bytes(text, from, strlen(from));
}

void prof_i_compose_number(prof_i_compose *text, uint64_t number) {
  char digits[20];
  size_t at = sizeof digits;
  do digits[--at] = (char)('0' + number % 10);
  while ((number /= 10) != 0);
  prof_i_compose_bytes(text, digits + at, sizeof digits - at);
}
