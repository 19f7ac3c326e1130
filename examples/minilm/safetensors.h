/* Reads a .safetensors file: 8 bytes of header length, a JSON header with name, dtype, shape and
   offsets of each tensor, then the data. The file is mapped, so 87 MiB of weights cost no copy, and
   tensors point into the mapping. Nothing in the file is trusted: what does not fit its own bounds
   is refused when it is opened, with the reason. The file must not be truncated by others while it
   is open (that is a SIGBUS, as for every mapping). SPDX-License-Identifier: MIT */
#ifndef MINILM_SAFETENSORS_H
#define MINILM_SAFETENSORS_H

#include "failure.h"
#include "tensor.h"

typedef struct safetensors safetensors;

int safetensors_open(const char *path, safetensors **file_out, failure *why);

/* Unmaps: tensors of this file are invalid afterwards. NULL is ignored. */
void safetensors_close(safetensors *file);

/* The float32 tensor of that name and exact shape. Refused: no such name, another dtype, another
   shape. Any thread. */
int safetensors_get(const safetensors *file, const char *name, int rank, const int64_t *dims,
                    tensor *tensor_out, failure *why);

#endif
