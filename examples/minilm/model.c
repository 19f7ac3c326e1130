/* See model.h. SPDX-License-Identifier: MIT */
#include "model.h"

#include <stdio.h>
#include <stdlib.h>

static int join(char out[MODEL_PATH_BYTES], const char *folder, const char *rest, failure *why) {
  const int length = snprintf(out, MODEL_PATH_BYTES, "%s%s", folder, rest);
  return length > 0 && length < MODEL_PATH_BYTES
             ? 0
             : failure_set(why, "the path %.64s... is too long", folder);
}

static int open_parts(const char *folder, model *m, failure *why) {
  char path[MODEL_PATH_BYTES];
  if (join(path, folder, "/config.json", why) != 0 || config_read(path, &m->config, why) != 0)
    return -1;
  if (join(path, folder, "/vocab.txt", why) != 0 || tokenizer_open(path, &m->tokenizer, why) != 0)
    return -1;
  /* Token numbers index the embedding table and positions the other: both are bounded here,
     once. */
  if (tokenizer_vocabulary_count(m->tokenizer) > m->config.vocabulary ||
      m->config.positions < TOKENIZER_LENGTH_MAX)
    return failure_set(why, "%s: %lld tokens and %d positions do not fit the model's %lld and %lld",
                       path, (long long)tokenizer_vocabulary_count(m->tokenizer),
                       TOKENIZER_LENGTH_MAX, (long long)m->config.vocabulary,
                       (long long)m->config.positions);
  if (join(path, folder, "/model.safetensors", why) != 0 ||
      safetensors_open(path, &m->weights, why) != 0)
    return -1;
  return program_compile(&m->config, m->weights, &m->program, why);
}

int model_open(const char *folder, model **model_out, failure *why) {
  model *m = calloc(1, sizeof *m);
  if (m == NULL) return failure_set(why, "no memory for the model");
  if (open_parts(folder, m, why) != 0) {
    model_close(m);
    return -1;
  }
  *model_out = m;
  return 0;
}

void model_close(model *m) {
  if (m == NULL) return;
  program_destroy(m->program);
  safetensors_close(m->weights);
  tokenizer_close(m->tokenizer);
  free(m);
}

int model_default_folder(char path_out[MODEL_PATH_BYTES], failure *why) {
  const char *own = getenv("MINILM_MODEL"), *cache = getenv("XDG_CACHE_HOME"),
             *home = getenv("HOME");
  if (own != NULL && own[0] != '\0') return join(path_out, own, "", why);
  if (cache != NULL && cache[0] != '\0') return join(path_out, cache, "/prof/minilm/model", why);
  if (home != NULL && home[0] != '\0')
    return join(path_out, home, "/.cache/prof/minilm/model", why);
  return failure_set(why, "no model folder: set MINILM_MODEL, XDG_CACHE_HOME or HOME");
}
