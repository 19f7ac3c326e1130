/* tests/data/minilm-reference.json: texts with the token numbers and embeddings that
   sentence-transformers made of them. Include it behind cmocka.h. SPDX-License-Identifier: MIT */
#ifndef TESTS_MINILM_REFERENCE_H
#define TESTS_MINILM_REFERENCE_H

#include <math.h>

#include "batch.h"
#include "data.h"

typedef struct reference {
  cJSON *root;
  const cJSON *cases;
} reference;

__attribute__((unused)) static reference reference_read(void) {
  cJSON *root = data_read_json("minilm-reference.json");
  return (reference){root, cJSON_GetObjectItemCaseSensitive(root, "cases")};
}

__attribute__((unused)) static void reference_free(const reference *r) { cJSON_Delete(r->root); }

__attribute__((unused)) static text_span reference_text(const cJSON *one) {
  const char *text = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(one, "text"));
  return (text_span){text, strlen(text)};
}

/* All texts, in batches. */
__attribute__((unused)) static batches *reference_batches(const reference *r, const model *m) {
  text_span texts[64];
  int64_t count = 0;
  const cJSON *one;
  cJSON_ArrayForEach(one, r->cases) texts[count++] = reference_text(one);
  batches *b = NULL;
  failure why;
  if (batches_create(m->tokenizer, m->config.hidden, texts, count, &b, &why) != 0)
    fail_msg("%s", why.text);
  return b;
}

static double reference_difference(const cJSON *one, const float *embedding, int64_t width) {
  const cJSON *want = cJSON_GetObjectItemCaseSensitive(one, "embedding"), *value;
  assert_int_equal(cJSON_GetArraySize(want), width);
  double largest = 0;
  cJSON_ArrayForEach(value, want) largest =
      fmax(largest, fabs(value->valuedouble - (double)*embedding++));
  return largest;
}

/* Prints both sides' distance of every case, and fails after the last. */
__attribute__((unused)) static void reference_compare(const reference *r, const batches *b,
                                                      const char *how, double bound) {
  double largest = 0;
  int64_t i = 0;
  const cJSON *one;
  cJSON_ArrayForEach(one, r->cases) {
    const double d = reference_difference(one, b->embeddings + i++ * b->width, b->width);
    print_message("  %s, case %lld: max |difference| %.2e  %.40s\n", how, (long long)i - 1, d,
                  reference_text(one).data);
    largest = fmax(largest, d);
  }
  print_message("  %s: the largest of %lld cases is %.2e, bound %.0e\n", how, (long long)i, largest,
                bound);
  if (!(largest <= bound)) fail_msg("max |difference| %.3e > %.0e", largest, bound);
}

#endif
