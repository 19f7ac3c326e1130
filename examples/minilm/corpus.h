/* Files as paragraphs: what stands between blank lines, blanks and control characters squeezed to
   single spaces. Paragraphs of a few words (headings, rules) are left out, for they answer no
   question. SPDX-License-Identifier: MIT */
#ifndef MINILM_CORPUS_H
#define MINILM_CORPUS_H

#include "batch.h"

typedef struct corpus_file corpus_file;

/* texts[i] comes from the file with the number file_of[i]. All of it belongs to the corpus. */
typedef struct corpus {
  text_span *texts;
  int *file_of;
  int64_t count;
  int64_t room;
  corpus_file *files;
  int file_count;
} corpus;

/* NULL: no memory. */
corpus *corpus_create(void);
void corpus_destroy(corpus *c);

/* A file that is there already, also by another name, is passed over. Refused: it cannot be read,
   is no regular file, or has more than 64 MiB. */
int corpus_add_file(corpus *c, const char *path, failure *why);

/* The regular files of a folder by name, then those that its links point to and that are not there
   yet. */
int corpus_add_folder(corpus *c, const char *folder, failure *why);

/* Keeps so many paragraphs, evenly spread over all. */
void corpus_limit(corpus *c, int64_t count);

const char *corpus_file_name(const corpus *c, int64_t text);

#endif
