/* See text.h. */
#define _GNU_SOURCE
#include "text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"

static struct {
  int (*finish)(void *context);
  void *context;
  pid_t process;
} failure_handler;

void run_set_failure_handler(int (*finish)(void *context), void *context) {
  failure_handler.finish = finish;
  failure_handler.context = context;
  failure_handler.process = getpid();
}

void run_fail(const char *format, ...) {
  char text[2048];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say("prof run: %s", text);
  int (*const finish)(void *) = failure_handler.process == getpid() ? failure_handler.finish : NULL;
  failure_handler.finish = NULL;
  exit(finish ? finish(failure_handler.context) : RUN_FAILED);
}

static _Noreturn void fail_for_memory(void) { run_fail("out of memory"); }

void *run_make(size_t count, size_t size) {
  void *const made = calloc(count ? count : 1, size);
  if (!made) fail_for_memory();
  return made;
}

void *run_grow(void *items, size_t count, size_t size) {
  void *const grown = count <= SIZE_MAX / size ? realloc(items, count * size) : NULL;
  if (!grown) fail_for_memory();
  return grown;
}

char *run_text(const char *format, ...) {
  char *text = NULL;
  va_list arguments;
  va_start(arguments, format);
  const int bytes = vasprintf(&text, format, arguments);
  va_end(arguments);
  if (bytes < 0) fail_for_memory();
  return text;
}

char *run_copy(const char *text, size_t bytes) {
  char *const copy = run_make(bytes + 1, 1);
  memcpy(copy, text, bytes);
  return copy;
}

/* ---- lists ---- */

const char *run_base_name(const char *path) {
  const char *const slash = strrchr(path, '/');
  return slash ? slash + 1 : path;
}

bool run_ends_in(const char *text, const char *ending) {
  const size_t bytes = strlen(text), of = strlen(ending);
  return bytes > of && strcmp(text + bytes - of, ending) == 0;
}

bool run_is_blank(const char *text) { return text[strspn(text, " \t\r\n")] == '\0'; }

void run_words_add(run_words *words, const char *text) {
  if (words->count + 2 > words->room) {
    words->room = words->room ? 2 * words->room : 16;
    words->items = run_grow(words->items, words->room, sizeof *words->items);
  }
  words->items[words->count++] = (char *)text;
  words->items[words->count] = NULL;
}

void run_words_add_all(run_words *words, const run_words *more) {
  for (size_t i = 0; i < more->count; i++) run_words_add(words, more->items[i]);
}

ptrdiff_t run_words_find(const run_words *words, const char *text) {
  for (size_t i = 0; i < words->count; i++)
    if (strcmp(words->items[i], text) == 0) return (ptrdiff_t)i;
  return -1;
}

void run_words_split(run_words *words, const char *text) {
  static const char blanks[] = " \t\r\n";
  for (;;) {
    text += strspn(text, blanks);
    const size_t bytes = strcspn(text, blanks);
    if (bytes == 0) return;
    run_words_add(words, run_copy(text, bytes));
    text += bytes;
  }
}

/* ---- quotes ---- */

static bool word_is_plain(const char *word) {
  static const char plain[] =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-";
  return *word && word[strspn(word, plain)] == '\0';
}

/* 'it'\''s' */
static size_t put_shell_quoted(char *to, const char *word) {
  size_t bytes = 0;
  to[bytes++] = '\'';
  for (const char *at = word; *at; at++) {
    if (*at == '\'') {
      memcpy(to + bytes, "'\\''", 4);
      bytes += 4;
    } else {
      to[bytes++] = *at;
    }
  }
  to[bytes++] = '\'';
  return bytes;
}

char *run_words_quoted(const run_words *words) {
  size_t room = 1, bytes = 0;
  for (size_t i = 0; i < words->count; i++) room += 4 * strlen(words->items[i]) + 3;
  char *const text = run_make(room, 1);
  for (size_t i = 0; i < words->count; i++) {
    const char *const word = words->items[i];
    if (i > 0) text[bytes++] = ' ';
    const bool is_bare = word_is_plain(word);
    if (is_bare) memcpy(text + bytes, word, strlen(word));
    bytes += is_bare ? strlen(word) : put_shell_quoted(text + bytes, word);
  }
  return text;
}

char *run_word_quoted(const char *word) {
  run_words words = {0};
  run_words_add(&words, word);
  return run_words_quoted(&words);
}

/* ---- variables ---- */

static bool variable_is_named(const char *variable, const char *name, size_t bytes) {
  return strncmp(variable, name, bytes) == 0 && variable[bytes] == '=';
}

const char *run_variable_get(const run_words *variables, const char *name) {
  const size_t bytes = strlen(name);
  for (size_t i = 0; i < variables->count; i++)
    if (variable_is_named(variables->items[i], name, bytes)) return variables->items[i] + bytes + 1;
  return NULL;
}

void run_variable_set(run_words *variables, const char *name, const char *value) {
  char *const variable = run_text("%s=%s", name, value);
  const size_t bytes = strlen(name);
  for (size_t i = 0; i < variables->count; i++) {
    if (!variable_is_named(variables->items[i], name, bytes)) continue;
    variables->items[i] = variable;
    return;
  }
  run_words_add(variables, variable);
}

/* ---- files ---- */

/* -1: an error. A FIFO that nobody writes to is empty: to wait for a writer would hang. */
static ssize_t read_file_bytes(int fd, char *to, size_t room) {
  for (;;) {
    const ssize_t got = read(fd, to, room);
    if (got >= 0 || (errno != EINTR && errno != EAGAIN)) return got;
    struct pollfd ready = {.fd = fd, .events = POLLIN};
    if (errno == EAGAIN) poll(&ready, 1, -1);
  }
}

char *run_file_read(const char *path, size_t limit_bytes, size_t *bytes_out) {
  const int fd = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);
  if (fd < 0) return NULL;
  size_t room = 4096, bytes = 0;
  char *text = malloc(room);
  ssize_t got = text ? 0 : -1;
  while (text && (got = read_file_bytes(fd, text + bytes, room - bytes - 1)) > 0) {
    bytes += (size_t)got;
    if (bytes > limit_bytes) break;
    if (bytes + 1 < room) continue;
    room *= 2;
    char *const grown = realloc(text, room);
    if (!grown) {
      got = -1;
      break;
    }
    text = grown;
  }
  const int error = got < 0 ? errno : bytes > limit_bytes ? EFBIG : 0;
  close(fd);
  if (error) {
    free(text);
    errno = error;
    return NULL;
  }
  text[bytes] = '\0';
  *bytes_out = bytes;
  return text;
}

run_words run_folder_names(const char *folder) {
  run_words names = {0};
  DIR *const all = opendir(folder);
  for (struct dirent *entry; all && (entry = readdir(all)) != NULL;)
    if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
      run_words_add(&names, run_text("%s", entry->d_name));
  if (all) closedir(all);
  return names;
}
