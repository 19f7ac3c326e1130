/* The few facts about Unicode that BERT's uncased tokenizer needs: decoding, which code points are
   dropped, blank, ideographs or punctuation, and what the lowercase letter without its accents is.
   All of it agrees with Hugging Face's normaliser (see unicode_data.h for what is left out). Pure
   functions; any thread. SPDX-License-Identifier: MIT */
#ifndef MINILM_UNICODE_H
#define MINILM_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
  UNICODE_FOLD_MAX = 3, /* a Hangul syllable becomes up to three letters */
  UNICODE_UTF8_MAX = 4,
};

/* Decodes the first code point of a non-empty text; returns its bytes. What is not UTF-8 (also
   overlong forms and surrogates) is one byte of U+FFFD, which the normaliser drops. */
size_t unicode_decode(const char *text, size_t bytes, uint32_t *code_out);

/* Returns the bytes written, 1 to 4. The code point must be valid. */
size_t unicode_encode(uint32_t code, char out[UNICODE_UTF8_MAX]);

bool unicode_is_blank(uint32_t code);
/* control and format characters, accents that stand alone, U+FFFD */
bool unicode_is_dropped(uint32_t code);
bool unicode_is_ideograph(uint32_t code); /* a word of its own for BERT */
bool unicode_is_punctuation(uint32_t code);

/* Lowercase without accents; returns how many code points that is, 1 to 3. */
size_t unicode_fold(uint32_t code, uint32_t out[UNICODE_FOLD_MAX]);

#endif
