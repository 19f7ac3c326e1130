/* Texts made ready for the model: token numbers in rows of one length, with the real length of each
   row. Texts are sorted by length before they are grouped, and rows are padded to a multiple of 16.
   So little is computed for padding, and the operators see few different shapes.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_BATCH_H
#define MINILM_BATCH_H

#include "failure.h"
#include "tokenizer.h"

enum { BATCH_TEXTS_MAX = 4, BATCH_LENGTH_STEP = 16 };

typedef struct text_span {
  const char *data;
  size_t bytes;
} text_span;

typedef struct batch {
  int64_t count;  /* texts */
  int64_t length; /* tokens of a row, padded */
  int32_t *ids;   /* count rows of length tokens; 0, which is [PAD], behind the text */
  int64_t lengths[BATCH_TEXTS_MAX];
  float *embeddings[BATCH_TEXTS_MAX]; /* where each text's embedding goes */
} batch;

/* Many texts and room for their embeddings. Destroying it frees all that it points to. */
typedef struct batches {
  batch *items; /* the longest first: no worker is left with a long one when the others are done */
  int64_t count;
  int32_t *ids;
  /* text_count rows of width floats, in the order in which the texts were given */
  float *embeddings;
  int64_t width;
  int64_t text_count;
  int64_t token_count; /* without padding */
  int64_t cut_count;   /* texts longer than TOKENIZER_LENGTH_MAX tokens */
} batches;

int batches_create(const tokenizer *t, int64_t width, const text_span *texts, int64_t count,
                   batches **batches_out, failure *why);
void batches_destroy(batches *b);

#endif
