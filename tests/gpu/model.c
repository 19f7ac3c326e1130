/* usage: model [cuda|hip]
   examples/minilm on a device beside the same on the host: the embeddings, and what prof recorded
   of the operators. The model is what fetch-model.sh fetched. Without it, the test makes one of the
   same shapes with random weights. The embeddings of that one only show that both computed the
   same. */
#define _GNU_SOURCE
#include <math.h>
#include <prof/profiler.h>
#include <prof/trace.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embed.h"
#include "gpu.h"

enum {
  HIDDEN = 384,
  WIDE = 1536,
  LAYERS = 2,
  POSITIONS = 512,
  VOCABULARY = 64,
  TEXTS = 24,
  TEXT_BYTES = 1024,
  PATH_BYTES = 4200
};

#define BOUND 1e-3

/* ---- a model that is made up ---- */

typedef struct writer {
  FILE *header, *data;
  uint64_t bytes;
  uint32_t seed;
} writer;

/* Around middle, by spread at most. */
static void put_tensor(writer *w, const char *name, int rows, int columns, float middle,
                       float spread) {
  const uint64_t count = (uint64_t)(rows ? rows : 1) * (uint64_t)columns,
                 bytes = count * sizeof(float);
  fprintf(w->header, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[", w->bytes ? "," : "{", name);
  if (rows) fprintf(w->header, "%d,", rows);
  fprintf(w->header, "%d],\"data_offsets\":[%llu,%llu]}", columns, (unsigned long long)w->bytes,
          (unsigned long long)(w->bytes + bytes));
  for (uint64_t i = 0; i < count; i++) {
    w->seed = w->seed * 1664525u + 1013904223u;
    const float value = middle + spread * ((float)(w->seed >> 8) / 8388608.0f - 1.0f);
    fwrite(&value, sizeof value, 1, w->data);
  }
  w->bytes += bytes;
}

static void put_layer(writer *w, int layer) {
  static const struct {
    const char *name;
    int rows, columns;
  } parts[] = {
      {"attention.self.query", HIDDEN, HIDDEN},  {"attention.self.key", HIDDEN, HIDDEN},
      {"attention.self.value", HIDDEN, HIDDEN},  {"attention.output.dense", HIDDEN, HIDDEN},
      {"intermediate.dense", WIDE, HIDDEN},      {"output.dense", HIDDEN, WIDE},
      {"attention.output.LayerNorm", 0, HIDDEN}, {"output.LayerNorm", 0, HIDDEN}};
  char name[128];
  for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
    const int is_norm = parts[i].rows == 0;
    snprintf(name, sizeof name, "encoder.layer.%d.%s.weight", layer, parts[i].name);
    put_tensor(w, name, parts[i].rows, parts[i].columns, is_norm ? 1 : 0, 0.08f);
    snprintf(name, sizeof name, "encoder.layer.%d.%s.bias", layer, parts[i].name);
    put_tensor(w, name, 0, is_norm ? HIDDEN : parts[i].rows, 0, 0.05f);
  }
}

static FILE *create(const char *folder, const char *name) {
  char path[PATH_BYTES];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  FILE *const file = fopen(path, "wb");
  if (!file) abort();
  return file;
}

static void copy_into(FILE *to, FILE *from) {
  char bytes[65536];
  rewind(from);
  for (size_t got; (got = fread(bytes, 1, sizeof bytes, from)) > 0;) fwrite(bytes, 1, got, to);
  fclose(from);
}

/* Its header's length is a multiple of 8, so that the floats are aligned. */
static void put_weights(const char *folder) {
  writer w = {.header = tmpfile(), .data = tmpfile(), .seed = 1};
  if (!w.header || !w.data) abort();
  put_tensor(&w, "embeddings.word_embeddings.weight", VOCABULARY, HIDDEN, 0, 0.1f);
  put_tensor(&w, "embeddings.position_embeddings.weight", POSITIONS, HIDDEN, 0, 0.1f);
  put_tensor(&w, "embeddings.token_type_embeddings.weight", 2, HIDDEN, 0, 0.1f);
  put_tensor(&w, "embeddings.LayerNorm.weight", 0, HIDDEN, 1, 0.1f);
  put_tensor(&w, "embeddings.LayerNorm.bias", 0, HIDDEN, 0, 0.1f);
  for (int i = 0; i < LAYERS; i++) put_layer(&w, i);
  fputc('}', w.header);
  while (ftell(w.header) % 8) fputc(' ', w.header);
  FILE *const file = create(folder, "model.safetensors");
  const uint64_t bytes = (uint64_t)ftell(w.header);
  fwrite(&bytes, sizeof bytes, 1, file);
  copy_into(file, w.header);
  copy_into(file, w.data);
  fclose(file);
}

static void put_model(const char *folder) {
  FILE *file = create(folder, "config.json");
  fprintf(file,
          "{\"model_type\":\"bert\",\"hidden_act\":\"gelu\",\"hidden_size\":%d,\"intermediate_"
          "size\":%d,\"num_hidden_layers\":%d,\"num_attention_heads\":12,\"max_position_"
          "embeddings\":%d,\"type_vocab_size\":2,\"vocab_size\":%d,\"layer_norm_eps\":1e-12}\n",
          HIDDEN, WIDE, LAYERS, POSITIONS, VOCABULARY);
  fclose(file);
  file = create(folder, "vocab.txt");
  fputs("[PAD]\n[UNK]\n[CLS]\n[SEP]\n[MASK]\n", file);
  for (char letter = 'a'; letter <= 'z'; letter++) fprintf(file, "%c\n##%c\n", letter, letter);
  fclose(file);
  put_weights(folder);
}

static void remove_model(const char *folder) {
  static const char *const names[] = {"config.json", "vocab.txt", "model.safetensors"};
  char path[PATH_BYTES];
  for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
    snprintf(path, sizeof path, "%s/%s", folder, names[i]);
    unlink(path);
  }
  rmdir(folder);
}

/* ---- what is compared ---- */

static char room[TEXTS][TEXT_BYTES];

static void make_texts(text_span out[TEXTS]) {
  for (int i = 0; i < TEXTS; i++) {
    const int letters = 3 + 8 * i;
    for (int k = 0; k < letters; k++)
      room[i][k] = (char)(k % 6 == 5 ? ' ' : 'a' + (i * 7 + k * k) % 26);
    out[i] = (text_span){room[i], (size_t)letters};
  }
}

static double largest_difference(const float *a, const float *b, int64_t count) {
  double largest = 0;
  for (int64_t i = 0; i < count; i++) {
    const double d = fabs((double)a[i] - (double)b[i]);
    if (!isfinite(d)) return INFINITY;
    if (d > largest) largest = d;
  }
  return largest;
}

/* Operators' scopes, and those of them that have the device's time. */
static int look_at_scopes(const char *device) {
  prof_trace *trace = NULL;
  prof_cursor *cursor = NULL;
  uint64_t host = 0, sides = 0, device_ns = 0;
  static prof_event e;
  if (prof_get(&trace) != PROF_OK || prof_cursor_create(trace, &cursor) != PROF_OK)
    return printf("failed model: %s\n", prof_last_error()), 1;
  while (prof_cursor_next(cursor, &e) == 1) {
    if (e.kind != PROF_EVENT_SCOPE || e.category_bytes != 8 ||
        memcmp(e.category, "operator", 8) != 0)
      continue;
    if (e.name_bytes == 8 && memcmp(e.name, "tokenize", 8) == 0) continue; /* the host's own */
    if (!(e.flags & PROF_EVENT_ON_DEVICE))
      host++;
    else
      sides++, device_ns += e.duration_ns;
  }
  prof_cursor_destroy(cursor);
  prof_trace_destroy(trace);
  const int is_good = host > 0 && host == sides && device_ns > 0;
  printf("%s model: %llu operators put on %s, %llu with its times, %.3f ms there\n",
         is_good ? "ok" : "failed", (unsigned long long)host, device, (unsigned long long)sides,
         (double)device_ns / 1e6);
  return !is_good;
}

static int compare(minilm *host, minilm *device, const char *name) {
  text_span texts[TEXTS];
  float *ours = NULL, *theirs = NULL, *again = NULL;
  failure why = {""};
  make_texts(texts);
  if (minilm_embed(host, texts, TEXTS, &ours, &why) != 0 ||
      minilm_embed(device, texts, TEXTS, &theirs, &why) != 0)
    return printf("failed model: %s\n", why.text), 1;
  const double difference = largest_difference(ours, theirs, TEXTS * minilm_width(host));
  int failed = !(difference <= BOUND);
  printf("%s model: %d embeddings on %s differ from the host's by %.1e at most\n",
         failed ? "failed" : "ok", TEXTS, name, difference);
  if (prof_start(1) != PROF_OK) return printf("failed model: %s\n", prof_last_error()), 1;
  const double begun_ns = gpu_now_ns();
  if (minilm_embed(device, texts, TEXTS, &again, &why) != 0)
    return printf("failed model: %s\n", why.text), 1;
  const double took_ns = gpu_now_ns() - begun_ns;
  prof_stop();
  printf("   model: %.0f texts a second, recorded\n", TEXTS / took_ns * 1e9);
  if (largest_difference(ours, again, TEXTS * minilm_width(host)) > BOUND)
    failed |= printf("failed model: the embeddings are others while it is recorded\n") > 0;
  failed |= look_at_scopes(name);
  minilm_release(host, ours);
  minilm_release(device, theirs);
  minilm_release(device, again);
  return failed;
}

/* 77 where the machine has not what it takes. */
static int run(const char *folder, minilm *host, const char *name) {
  minilm *device = NULL;
  failure why;
  if (minilm_open(folder, name, &device, &why) != 0) {
    const int is_absent = strstr(why.text, "there is no ") || strstr(why.text, "has no device");
    printf("%-8s %-32s %s\n", is_absent ? "skipped" : "failed", "model", why.text);
    return is_absent ? 77 : 1;
  }
  const int failed = compare(host, device, name);
  minilm_close(device);
  return failed;
}

int main(int argc, char **argv) {
  char own[] = "/tmp/gpu-model-XXXXXX";
  const char *folder = NULL;
  minilm *host = NULL;
  failure why;
  if (minilm_open(NULL, "host", &host, &why) != 0) {
    if (!mkdtemp(own)) return printf("failed model: no temporary folder\n"), 1;
    put_model(folder = own);
    if (minilm_open(folder, "host", &host, &why) != 0)
      return printf("failed model: %s\n", why.text), 1;
  }
  printf("   model: %s\n",
         folder ? "of made-up weights: fetch-model.sh has not been here" : "all-MiniLM-L6-v2");
  const int status = run(folder, host, argc > 1 ? argv[1] : "cuda");
  minilm_close(host);
  if (folder) remove_model(folder);
  return status;
}
