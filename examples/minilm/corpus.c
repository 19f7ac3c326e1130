/* See corpus.h. SPDX-License-Identifier: MIT */
#define _POSIX_C_SOURCE 200809L

#include "corpus.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_BYTES_MAX = 64 << 20, PARAGRAPH_WORDS_MIN = 6, PATH_BYTES = 4096 };

struct corpus_file {
  char *name;
  dev_t device;
  ino_t inode;
};

static bool is_known(const corpus *c, const struct stat *status) {
  for (int i = 0; i < c->file_count; i++)
    if (c->files[i].device == status->st_dev && c->files[i].inode == status->st_ino) return true;
  return false;
}

static int add_name(corpus *c, const char *path, const struct stat *status, failure *why) {
  corpus_file *grown = realloc(c->files, (size_t)(c->file_count + 1) * sizeof *grown);
  char *name = strdup(path);
  if (grown != NULL) c->files = grown;
  if (grown == NULL || name == NULL) {
    free(name);
    return failure_set(why, "%s: no memory", path);
  }
  grown[c->file_count++] = (corpus_file){name, status->st_dev, status->st_ino};
  return 0;
}

static int make_room(corpus *c) {
  if (c->count < c->room) return 0;
  const int64_t room = c->room == 0 ? 256 : 2 * c->room;
  text_span *texts = realloc(c->texts, (size_t)room * sizeof *texts);
  if (texts != NULL) c->texts = texts;
  int *file_of = realloc(c->file_of, (size_t)room * sizeof *file_of);
  if (file_of != NULL) c->file_of = file_of;
  if (texts == NULL || file_of == NULL) return -1;
  c->room = room;
  return 0;
}

static bool is_blank(char byte) { return (unsigned char)byte <= ' ' || byte == 0x7F; }

/* Squeezes text into out, which has room for it; returns the bytes and the number of words. */
static size_t squeeze(const char *text, size_t bytes, char *out, int *word_count_out) {
  size_t used = 0;
  *word_count_out = 0;
  for (size_t i = 0; i < bytes; i++) {
    if (is_blank(text[i])) continue;
    const bool is_word_start = i == 0 || is_blank(text[i - 1]);
    if (is_word_start && used > 0) out[used++] = ' ';
    *word_count_out += is_word_start;
    out[used++] = text[i];
  }
  return used;
}

static int add_paragraph(corpus *c, const char *text, size_t bytes) {
  char *squeezed = malloc(bytes + 1);
  int words;
  if (squeezed == NULL || make_room(c) != 0) {
    free(squeezed);
    return -1;
  }
  const size_t used = squeeze(text, bytes, squeezed, &words);
  if (words < PARAGRAPH_WORDS_MIN) {
    free(squeezed);
    return 0;
  }
  c->file_of[c->count] = c->file_count - 1;
  c->texts[c->count++] = (text_span){squeezed, used};
  return 0;
}

/* The end of the paragraph that begins at text: behind it comes a line of blanks only, or the
   end. */
static const char *paragraph_end(const char *text, const char *end) {
  for (const char *line = text; line < end;) {
    const char *stop = memchr(line, '\n', (size_t)(end - line));
    if (stop == NULL) return end;
    const char *at = line;
    while (at < stop && is_blank(*at)) at++;
    if (at == stop && line > text) return line;
    line = stop + 1;
  }
  return end;
}

static int split(corpus *c, const char *text, size_t bytes) {
  const char *const end = text + bytes;
  while (text < end) {
    const char *stop = paragraph_end(text, end);
    if (add_paragraph(c, text, (size_t)(stop - text)) != 0) return -1;
    text = stop;
  }
  return 0;
}

static int read_and_split(corpus *c, const char *path, size_t bytes, failure *why) {
  FILE *stream = fopen(path, "rbe");
  if (stream == NULL) return failure_set(why, "%s: %s", path, strerror(errno));
  char *text = malloc(bytes + 1);
  int status = -1;
  failure_set(why, "%s: no memory for its %zu bytes", path, bytes);
  if (text != NULL) {
    const size_t got = fread(text, 1, bytes, stream);
    status = ferror(stream) ? failure_set(why, "%s: cannot be read", path) : split(c, text, got);
  }
  free(text);
  fclose(stream);
  return status;
}

/* The folder's regular files, or its links to such. */
static int add_entries(corpus *c, const char *folder, struct dirent **entries, int count,
                       bool is_for_links, failure *why) {
  for (int i = 0; i < count; i++) {
    char path[PATH_BYTES];
    struct stat own, target;
    const int length = snprintf(path, sizeof path, "%s/%s", folder, entries[i]->d_name);
    if (length < 0 || length >= PATH_BYTES || lstat(path, &own) != 0 || stat(path, &target) != 0)
      continue;
    if (!S_ISREG(target.st_mode) || (bool)S_ISLNK(own.st_mode) != is_for_links) continue;
    if (corpus_add_file(c, path, why) != 0) return -1;
  }
  return 0;
}

corpus *corpus_create(void) { return calloc(1, sizeof(corpus)); }

void corpus_destroy(corpus *c) {
  if (c == NULL) return;
  for (int64_t i = 0; i < c->count; i++) free((void *)c->texts[i].data);
  for (int i = 0; i < c->file_count; i++) free(c->files[i].name);
  free(c->texts);
  free(c->file_of);
  free(c->files);
  free(c);
}

int corpus_add_file(corpus *c, const char *path, failure *why) {
  struct stat status;
  if (stat(path, &status) != 0) return failure_set(why, "%s: %s", path, strerror(errno));
  if (!S_ISREG(status.st_mode)) return failure_set(why, "%s: not a regular file", path);
  if (status.st_size > FILE_BYTES_MAX)
    return failure_set(why, "%s: %lld bytes, more than %d", path, (long long)status.st_size,
                       FILE_BYTES_MAX);
  if (is_known(c, &status)) return 0;
  if (add_name(c, path, &status, why) != 0) return -1;
  return read_and_split(c, path, (size_t)status.st_size, why);
}

int corpus_add_folder(corpus *c, const char *folder, failure *why) {
  struct dirent **entries = NULL;
  const int count = scandir(folder, &entries, NULL, alphasort);
  if (count < 0) return failure_set(why, "%s: %s", folder, strerror(errno));
  int result = add_entries(c, folder, entries, count, false, why);
  if (result == 0) result = add_entries(c, folder, entries, count, true, why);
  for (int i = 0; i < count; i++) free(entries[i]);
  free(entries);
  return result;
}

void corpus_limit(corpus *c, int64_t count) {
  if (count < 1 || count >= c->count) return;
  /* Text i * old / count stays, for i < count; what lies between is freed. */
  int64_t kept = 0;
  for (int64_t i = 0; i < c->count; i++) {
    if (kept < count && i == kept * c->count / count) {
      c->texts[kept] = c->texts[i];
      c->file_of[kept++] = c->file_of[i];
    } else {
      free((void *)c->texts[i].data);
    }
  }
  c->count = kept;
}

const char *corpus_file_name(const corpus *c, int64_t text) {
  return c->files[c->file_of[text]].name;
}
