/* The runtime as a shared library, libminilm.so: sentences in, embeddings out. What another
   language calls; minilm.py does, through ctypes. It links the shared libprof, as a user's runtime
   would. So its scopes and its memory are in one capture with those of all other users of prof in
   the process. It starts and stops no recording: that is the program's. Why something was refused
   goes into the caller's failure, so no last error exists that another thread could overwrite.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_EMBED_H
#define MINILM_EMBED_H

#include "batch.h"
#include "failure.h"
#include "pool.h"

#define MINILM_API __attribute__((visibility("default")))

/* A model and a tensor pool of its own. */
typedef struct minilm minilm;

/* folder: as fetch-model.sh leaves it; NULL: model_default_folder()'s. device: engine_open()'s
   name; NULL: "host". The caller closes the model. Any thread. The first one sets OpenBLAS to one
   thread, for the whole process: who calls decides how many work. */
MINILM_API int minilm_open(const char *folder, const char *device, minilm **minilm_out,
                           failure *why);

/* Rows that have not been released are gone. NULL is ignored. Nobody else may be using the
   model. */
MINILM_API void minilm_close(minilm *m);

/* Floats of an embedding. Any thread. */
MINILM_API int64_t minilm_width(const minilm *m);

/* One embedding of length 1 for each text: count rows of minilm_width() floats, in the texts'
   order. The rows lie in a pool of the model's, in the host's memory, as a framework's tensors do,
   and are the caller's until minilm_release(). Texts may hold any bytes, and are not kept. Refused:
   count below 1, or no memory; rows_out stays as it was. Any number of threads at once; the work is
   done on the calling one. */
MINILM_API int minilm_embed(minilm *m, const text_span *texts, int64_t count, float **rows_out,
                            failure *why);

/* NULL is ignored. Any thread. */
MINILM_API void minilm_release(minilm *m, float *rows);

/* The own account, which does not come from prof, of the pool that lies where the model computes.
   Any thread. */
MINILM_API void minilm_memory_get(minilm *m, pool_statistics *statistics_out);

#endif
