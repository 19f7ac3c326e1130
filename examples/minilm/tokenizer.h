/* BERT's uncased WordPiece tokenizer, token for token as Hugging Face's. It cleans the text,
   lowercases it and strips accents. Every ideograph and punctuation mark becomes a word. Then words
   are split into the longest pieces of the vocabulary. The text may hold any bytes. A tokenizer
   does not change after it is opened; any number of threads may encode with it.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_TOKENIZER_H
#define MINILM_TOKENIZER_H

#include <stddef.h>
#include <stdint.h>

#include "failure.h"

enum {
  TOKENIZER_LENGTH_MAX = 256,    /* what the model was trained with: later tokens are cut */
  TOKENIZER_WORD_CHARS_MAX = 100 /* a longer word is [UNK] */
};

typedef struct tokenizer tokenizer;

/* Reads a vocab.txt: one token a line, its number the line's. */
int tokenizer_open(const char *path, tokenizer **tokenizer_out, failure *why);
void tokenizer_close(tokenizer *t);

int64_t tokenizer_vocabulary_count(const tokenizer *t);

/* Writes [CLS], the tokens, [SEP]; returns how many that is, at most capacity (at least 2).
   was_cut_out (or NULL) says whether there were more. */
int64_t tokenizer_encode(const tokenizer *t, const char *text, size_t bytes, int32_t *ids,
                         int64_t capacity, int *was_cut_out);

#endif
