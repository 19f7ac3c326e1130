/* See answers.h. SPDX-License-Identifier: MIT */
#include "answers.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ops.h"

enum { EXCERPT_BYTES = 160 };

static const char *const questions[ANSWERS_COUNT] = {
    "Can I use this software commercially without paying?",
    "What happens if I distribute modified versions?",
    "Is there any warranty if the program breaks?",
};

static void find_nearest(const tensor *paragraphs, const tensor *question, tensor *scores,
                         answer *a) {
  op_similarity(paragraphs, question, scores);
  a->text = 0;
  for (int64_t i = 1; i < scores->dims[0]; i++)
    if (scores->data[i] > scores->data[a->text]) a->text = i;
  a->score = scores->data[a->text];
}

static int find_all(const batches *paragraphs, const batches *asked, answer *answers_out) {
  const tensor rows = {
      {paragraphs->text_count, paragraphs->width, 0, 0}, 2, paragraphs->embeddings};
  tensor scores = {{paragraphs->text_count, 0, 0, 0}, 1, NULL};
  scores.data = malloc((size_t)paragraphs->text_count * sizeof(float));
  if (scores.data == NULL) return -1;
  for (int i = 0; i < ANSWERS_COUNT; i++) {
    const tensor question = {{asked->width, 0, 0, 0}, 1, asked->embeddings + i * asked->width};
    answers_out[i].question = questions[i];
    find_nearest(&rows, &question, &scores, &answers_out[i]);
  }
  free(scores.data);
  return 0;
}

int answers_find(const model *m, workers *w, const batches *paragraphs,
                 answer answers_out[ANSWERS_COUNT], failure *why) {
  text_span texts[ANSWERS_COUNT];
  batches *asked = NULL;
  for (int i = 0; i < ANSWERS_COUNT; i++)
    texts[i] = (text_span){questions[i], strlen(questions[i])};
  if (batches_create(m->tokenizer, m->config.hidden, texts, ANSWERS_COUNT, &asked, why) != 0)
    return -1;
  for (int64_t i = 0; i < asked->count; i++) workers_submit(w, &asked->items[i]);
  int status = workers_wait(w, why);
  if (status == 0 && find_all(paragraphs, asked, answers_out) != 0)
    status = failure_set(why, "no memory for the scores");
  batches_destroy(asked);
  return status;
}

/* So that an excerpt does not end inside a character. */
static int excerpt_bytes(text_span text) {
  size_t bytes = text.bytes < EXCERPT_BYTES ? text.bytes : EXCERPT_BYTES;
  while (bytes < text.bytes && bytes > 0 && ((unsigned char)text.data[bytes] & 0xC0) == 0x80)
    bytes--;
  return (int)bytes;
}

void answers_print(const corpus *c, const answer answers[ANSWERS_COUNT]) {
  printf(
      "\nThree questions, and the paragraph nearest to each (cosine of the two embeddings, 1 is "
      "the same):\n");
  for (int i = 0; i < ANSWERS_COUNT; i++) {
    const answer *a = &answers[i];
    const text_span text = c->texts[a->text];
    const int bytes = excerpt_bytes(text);
    printf("\n  %s\n    %.3f  %s\n    \"%.*s%s\"\n", a->question, (double)a->score,
           corpus_file_name(c, a->text), bytes, text.data, (size_t)bytes < text.bytes ? "..." : "");
  }
}
