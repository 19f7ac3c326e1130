/* Paths with places to fill in; see path.h. */
#include "path.h"

#include <string.h>

#include <prof/status.h>

#include "log.h"
#include "text.h"

/* What the letter after a % stands for, or NULL when it is no place. number is the caller's room
   for digits. */
static const char *find_word(char letter, const prof_i_path_words *words, char number[16]) {
  prof_i_compose text = prof_i_compose_in(number, 16);
  switch (letter) {
    case 'p':
      prof_i_compose_number(&text, words->pid);
      return number;
    case 'r':
      prof_i_compose_number(&text, words->rank < 0 ? 0 : (uint64_t)words->rank);
      return number;
    case 'h':
      return words->host;
    case '%':
      return "%";
    default:
      return NULL;
  }
}

bool prof_i_path_has(const char *pattern, char letter) {
  for (const char *at = pattern; *at != 0; at++) {
    if (*at != '%') continue;
    if (at[1] == letter) return true;
    if (at[1] == '%') at++;
  }
  return false;
}

int prof_i_expand_path(const char *pattern, const prof_i_path_words *words, char *to, size_t room) {
  size_t used = 0;
  for (const char *at = pattern; *at != 0; at++) {
    char number[16];
    const char *const word = *at == '%' ? find_word(at[1], words, number) : NULL;
    const char *const from = word != NULL ? word : at;
    const size_t bytes = word != NULL ? strlen(word) : 1;
    if (used + bytes >= room) {
      *to = 0;
      return prof_i_fail(PROF_E_INVALID, "the path '%.64s...' is longer than %zu bytes", pattern,
                         room - 1);
    }
    memcpy(to + used, from, bytes);
    if (word == words->host && word != NULL)
      for (size_t i = used; i < used + bytes; i++)
        if (to[i] == '/') to[i] = '_';
    used += bytes;
    if (word != NULL) at++;
  }
  to[used] = 0;
  return PROF_OK;
}

bool prof_i_path_ends_in(const char *path, const char *ending) {
  const size_t bytes = strlen(path), ending_bytes = strlen(ending);
  return bytes > ending_bytes && memcmp(path + bytes - ending_bytes, ending, ending_bytes) == 0;
}
