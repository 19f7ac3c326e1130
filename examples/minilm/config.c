/* See config.h. SPDX-License-Identifier: MIT */
#include "config.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

enum { FILE_BYTES_MAX = 64 * 1024, NUMBER_MAX = 1 << 20 };

static const struct {
  const char *key;
  size_t offset;
} numbers[] = {
    {"hidden_size", offsetof(config, hidden)},
    {"intermediate_size", offsetof(config, intermediate)},
    {"num_hidden_layers", offsetof(config, layers)},
    {"num_attention_heads", offsetof(config, heads)},
    {"max_position_embeddings", offsetof(config, positions)},
    {"type_vocab_size", offsetof(config, token_types)},
    {"vocab_size", offsetof(config, vocabulary)},
};

static const struct {
  const char *key, *value;
} words[] = {{"model_type", "bert"}, {"hidden_act", "gelu"}};

static int read_json(const char *path, cJSON **json_out, failure *why) {
  char text[FILE_BYTES_MAX];
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) return failure_set(why, "%s: %s", path, strerror(errno));
  const size_t bytes = fread(text, 1, sizeof text, stream);
  fclose(stream);
  *json_out = cJSON_ParseWithLength(text, bytes);
  return cJSON_IsObject(*json_out) ? 0 : failure_set(why, "%s: not a JSON object", path);
}

static int read_numbers(const char *path, const cJSON *json, config *c, failure *why) {
  for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
    const cJSON *item = cJSON_GetObjectItemCaseSensitive(json, numbers[i].key);
    if (!cJSON_IsNumber(item) || !(item->valuedouble >= 1 && item->valuedouble <= NUMBER_MAX))
      return failure_set(why, "%s: %s is not a number from 1 to %d", path, numbers[i].key,
                         NUMBER_MAX);
    const int64_t value = (int64_t)item->valuedouble;
    memcpy((char *)c + numbers[i].offset, &value, sizeof value);
  }
  const cJSON *epsilon = cJSON_GetObjectItemCaseSensitive(json, "layer_norm_eps");
  if (!cJSON_IsNumber(epsilon)) return failure_set(why, "%s: layer_norm_eps is not a number", path);
  c->layer_norm_epsilon = (float)epsilon->valuedouble;
  if (c->hidden % c->heads != 0)
    return failure_set(why, "%s: %lld hidden do not divide by %lld heads", path,
                       (long long)c->hidden, (long long)c->heads);
  return 0;
}

static int check_words(const char *path, const cJSON *json, failure *why) {
  for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
    const char *value = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(json, words[i].key));
    if (value == NULL || strcmp(value, words[i].value) != 0)
      return failure_set(why, "%s: %s is %s, this runtime knows only %s", path, words[i].key,
                         value == NULL ? "missing" : value, words[i].value);
  }
  return 0;
}

int config_read(const char *path, config *config_out, failure *why) {
  cJSON *json = NULL;
  config c = {0};
  int status = read_json(path, &json, why);
  if (status == 0) status = read_numbers(path, json, &c, why);
  if (status == 0) status = check_words(path, json, why);
  cJSON_Delete(json);
  if (status == 0) *config_out = c;
  return status;
}
