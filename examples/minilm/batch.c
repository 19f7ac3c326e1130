/* See batch.h. SPDX-License-Identifier: MIT */
#include "batch.h"

#include <prof/profiler.h>
#include <stdlib.h>
#include <string.h>

/* One encoded text: its place among the given ones, and where its tokens lie. */
typedef struct row {
  int64_t text;
  int64_t length;
  const int32_t *ids;
} row;

static int64_t padded(int64_t length) {
  return (length + BATCH_LENGTH_STEP - 1) / BATCH_LENGTH_STEP * BATCH_LENGTH_STEP;
}

static int longest_first(const void *left, const void *right) {
  const row *a = left, *b = right;
  if (a->length != b->length) return a->length < b->length ? 1 : -1;
  return a->text < b->text ? -1 : a->text > b->text;
}

/* Returns the texts' tokens, TOKENIZER_LENGTH_MAX of room each; NULL: no memory. */
static int32_t *encode_texts(const tokenizer *t, const text_span *texts, int64_t count, row *rows,
                             batches *b) {
  int32_t *ids = calloc((size_t)count, TOKENIZER_LENGTH_MAX * sizeof *ids);
  for (int64_t i = 0; ids != NULL && i < count; i++) {
    int32_t *own = ids + i * TOKENIZER_LENGTH_MAX;
    int was_cut = 0;
    int64_t length = 0;
    WITH_BASE_PROFILER(PROF_HOST, "tokenize", "operator", PROF_ARGS("bytes", texts[i].bytes), {
      length =
          tokenizer_encode(t, texts[i].data, texts[i].bytes, own, TOKENIZER_LENGTH_MAX, &was_cut);
    });
    rows[i] = (row){i, length, own};
    b->token_count += length;
    b->cut_count += was_cut;
  }
  return ids;
}

/* Rows are sorted: each group's first is its longest. Returns how many ids there are with
   padding. */
static int64_t group(const row *rows, int64_t count, batches *b) {
  int64_t id_count = 0;
  for (int64_t i = 0; i < count; i += BATCH_TEXTS_MAX) {
    batch *item = &b->items[b->count++];
    item->length = padded(rows[i].length);
    item->count = count - i < BATCH_TEXTS_MAX ? count - i : BATCH_TEXTS_MAX;
    id_count += item->count * item->length;
  }
  return id_count;
}

static void fill(const row *rows, batches *b) {
  int32_t *ids = b->ids;
  for (int64_t i = 0; i < b->count; i++) {
    batch *item = &b->items[i];
    item->ids = ids;
    for (int64_t j = 0; j < item->count; j++, rows++) {
      item->lengths[j] = rows->length;
      item->embeddings[j] = b->embeddings + rows->text * b->width;
      memcpy(ids, rows->ids, (size_t)rows->length * sizeof *ids);
      ids += item->length;
    }
  }
}

static int build(const tokenizer *t, const text_span *texts, int64_t count, row *rows, batches *b) {
  int32_t *ids = encode_texts(t, texts, count, rows, b);
  if (ids == NULL) return -1;
  qsort(rows, (size_t)count, sizeof *rows, longest_first);
  b->items = calloc((size_t)(count / BATCH_TEXTS_MAX + 1), sizeof *b->items);
  b->embeddings = calloc((size_t)count, (size_t)b->width * sizeof *b->embeddings);
  if (b->items != NULL) b->ids = calloc((size_t)group(rows, count, b), sizeof *b->ids);
  const int is_complete = b->items != NULL && b->embeddings != NULL && b->ids != NULL;
  if (is_complete) fill(rows, b);
  free(ids);
  return is_complete ? 0 : -1;
}

int batches_create(const tokenizer *t, int64_t width, const text_span *texts, int64_t count,
                   batches **batches_out, failure *why) {
  if (count < 1) return failure_set(why, "there are no texts to embed");
  batches *b = calloc(1, sizeof *b);
  row *rows = calloc((size_t)count, sizeof *rows);
  int status = -1;
  if (b != NULL && rows != NULL) {
    b->width = width;
    b->text_count = count;
    status = build(t, texts, count, rows, b);
  }
  free(rows);
  if (status != 0) {
    batches_destroy(b);
    return failure_set(why, "no memory for %lld texts", (long long)count);
  }
  *batches_out = b;
  return 0;
}

void batches_destroy(batches *b) {
  if (b == NULL) return;
  free(b->items);
  free(b->ids);
  free(b->embeddings);
  free(b);
}
