/* The numbers of a BERT encoder, read from the config.json beside the weights and checked: what
   this runtime cannot run is refused here, with the key and its value. SPDX-License-Identifier:
   MIT */
#ifndef MINILM_CONFIG_H
#define MINILM_CONFIG_H

#include <stdint.h>

#include "failure.h"

typedef struct config {
  int64_t hidden;
  int64_t intermediate;
  int64_t layers;
  int64_t heads;
  int64_t positions;
  int64_t token_types;
  int64_t vocabulary;
  float layer_norm_epsilon;
} config;

int config_read(const char *path, config *config_out, failure *why);

#endif
