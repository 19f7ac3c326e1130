/* See library.h: where a line comes from. */
#define _GNU_SOURCE
#include "library.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "../../src/base/text.h"
#include "output.h"

enum { ENVIRONMENT_BYTES_MAX = 4 << 20, DIGITS_MAX = 9 };

/* The number that the text begins with. Returns its digits; 0: there is none. */
static size_t read_digits(const char *at, const char *end, int64_t *number_out) {
  size_t digits = 0;
  int64_t number = 0;
  while (at + digits < end && prof_i_is_digit(at[digits])) {
    if (digits >= DIGITS_MAX) return 0;
    number = 10 * number + (at[digits++] - '0');
  }
  if (digits > 0) *number_out = number;
  return digits;
}

/* ---- in front of a line ---- */

/* Behind blanks and colours. */
static const char *skip_colours(const char *at, const char *end) {
  while (at < end) {
    if (*at == ' ') {
      at++;
    } else if (*at == 0x1b && at + 1 < end && at[1] == '[') {
      at += 2;
      while (at < end && (prof_i_is_digit(*at) || *at == ';')) at++;
      if (at < end) at++;
    } else {
      return at;
    }
  }
  return at;
}

/* Behind "2026-03-12T13:57:49.1Z " of Kubernetes, and "2026-03-12 13:57:49 ". */
static const char *skip_time(const char *at, const char *end) {
  static const char day[] = "dddd-dd-dd";
  size_t i = 0;
  while (day[i] && at + i < end && (day[i] == 'd' ? prof_i_is_digit(at[i]) : at[i] == day[i])) i++;
  const char *behind = at + i;
  if (day[i] || behind == end) return at;
  while (behind < end && *behind == ' ') behind++; /* the time of day is a word of its own */
  while (behind < end && *behind != ' ') behind++;
  return skip_colours(behind, end);
}

/* "3: " and "[3] " at the line's begin. */
static int64_t rank_at_begin(const char *at, const char *end) {
  const bool is_in_brackets = at < end && *at == '[';
  const char *const behind = is_in_brackets ? "] " : ": ";
  int64_t rank;
  if (is_in_brackets) at++;
  while (at < end && *at == ' ') at++;
  const size_t digits = read_digits(at, end, &rank);
  if (digits == 0 || end - at < (ptrdiff_t)digits + 2) return -1;
  return memcmp(at + digits, behind, 2) == 0 ? rank : -1;
}

/* "[1,3]<stderr>:", also "[prterun-host-77@1,3]<stdout>:". */
static int64_t rank_of_tag(const char *begin, const char *end) {
  static const char mark[] = "]<std";
  const char *const tag = memmem(begin, (size_t)(end - begin), mark, sizeof mark - 1);
  const char *at = tag;
  int64_t rank;
  while (at && at > begin && prof_i_is_digit(at[-1])) at--;
  if (!at || at == begin || at[-1] != ',') return -1;
  return read_digits(at, tag, &rank) > 0 ? rank : -1;
}

/* "[rank3]:" of torch's processes, "[default3]:" of torchrun, where default is the role's name. */
static int64_t rank_of_word(const char *begin, const char *end) {
  int64_t found = -1;
  for (const char *open = begin; (open = memchr(open, '[', (size_t)(end - open))) != NULL; open++) {
    static const char word[] = "rank";
    const char *at = open + 1;
    int64_t number;
    while (at < end && (isalpha((unsigned char)*at) || *at == '_')) at++;
    const size_t letters = (size_t)(at - open - 1), digits = read_digits(at, end, &number);
    if (letters == 0 || digits == 0 || end - at < (ptrdiff_t)digits + 2) continue;
    if (memcmp(at + digits, "]:", 2) != 0) continue;
    if (letters == sizeof word - 1 && memcmp(open + 1, word, letters) == 0) return number;
    if (found < 0) found = number;
  }
  return found;
}

int64_t run_origin_rank(const char *prefix, size_t bytes) {
  const char *const end = prefix + bytes;
  if (bytes == 0) return -1;
  int64_t rank = rank_of_tag(prefix, end);
  if (rank < 0) rank = rank_of_word(prefix, end);
  if (rank < 0) rank = rank_at_begin(skip_time(skip_colours(prefix, end), end), end);
  return rank;
}

/* ---- log files ---- */

typedef struct process_environment {
  const char *text; /* NAME=VALUE, each with a NUL */
  size_t bytes;
} process_environment;

static const char *environment_value(const void *context, const char *name) {
  const process_environment *const e = context;
  const size_t bytes = strlen(name);
  for (const char *at = e->text; at < e->text + e->bytes; at += strlen(at) + 1)
    if (strncmp(at, name, bytes) == 0 && at[bytes] == '=') return at + bytes + 1;
  return NULL;
}

/* In a container the number may be another process's, which does not know the folder. */
static int64_t rank_of_process(int64_t pid, const char *folder) {
  process_environment e = {0};
  char *const path = run_text("/proc/%lld/environ", (long long)pid);
  char *const text = run_file_read(path, ENVIRONMENT_BYTES_MAX, &e.bytes);
  free(path);
  if (!text) return -1;
  e.text = text;
  const char *const rank = memmem(text, e.bytes, folder, strlen(folder))
                               ? run_output_rank_of(environment_value, &e)
                               : NULL;
  const int64_t number = rank ? strtoll(rank, NULL, 10) : -1;
  free(text);
  return number;
}

run_origin run_origin_of_log(const char *path, const char *folder) {
  static const char ending[] = ".log";
  run_origin origin = RUN_ORIGIN_UNKNOWN;
  const size_t bytes = strlen(path);
  if (bytes <= sizeof ending) return origin;
  const char *const end = path + bytes - (sizeof ending - 1);
  const char *at = end;
  while (at > path && prof_i_is_digit(at[-1])) at--;
  if (at > path && at[-1] == '.' && read_digits(at, end, &origin.pid) > 0)
    origin.rank = rank_of_process(origin.pid, folder);
  return origin;
}
