/* Questions answered by the nearest paragraph: the questions go through the same model, and the
   embedding with the greatest dot product wins. SPDX-License-Identifier: MIT */
#ifndef MINILM_ANSWERS_H
#define MINILM_ANSWERS_H

#include "corpus.h"
#include "model.h"
#include "workers.h"

enum { ANSWERS_COUNT = 3 };

typedef struct answer {
  const char *question;
  int64_t text; /* number in the corpus */
  float score;  /* cosine of the angle between the two, 1 at most */
} answer;

/* paragraphs: the corpus, embedded. */
int answers_find(const model *m, workers *w, const batches *paragraphs,
                 answer answers_out[ANSWERS_COUNT], failure *why);

void answers_print(const corpus *c, const answer answers[ANSWERS_COUNT]);

#endif
