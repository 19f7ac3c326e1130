/* A model folder (config.json, vocab.txt, model.safetensors, as fetch-model.sh leaves it) made
   ready to run: configuration, tokenizer, mapped weights and the compiled program. It does not
   change once open; any number of threads may use it. SPDX-License-Identifier: MIT */
#ifndef MINILM_MODEL_H
#define MINILM_MODEL_H

#include "program.h"
#include "tokenizer.h"

enum { MODEL_PATH_BYTES = 4096 };

typedef struct model {
  config config;
  tokenizer *tokenizer;
  safetensors *weights;
  program *program;
} model;

int model_open(const char *folder, model **model_out, failure *why);
void model_close(model *m);

/* Where the model is expected: $MINILM_MODEL, or the folder that fetch-model.sh fills. Refused:
   neither it nor a home folder is known, or the path is too long. */
int model_default_folder(char path_out[MODEL_PATH_BYTES], failure *why);

#endif
