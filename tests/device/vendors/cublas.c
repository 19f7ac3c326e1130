/* An emulated libcublas.so: the two products that examples/minilm asks of it, by OpenBLAS on the
   stream's thread. No device is behind it. */
#include <cblas.h>
#include <stdint.h>
#include <stdlib.h>

#include "cuda.h"

#define BLAS __attribute__((visibility("default")))

enum { SUCCESS = 0, NOT_INITIALIZED = 1, INVALID_VALUE = 7, EXECUTION_FAILED = 13 };

/* The stream's thread is the device: OpenBLAS has none of its own beside it. */
__attribute__((constructor)) static void begin(void) { openblas_set_num_threads(1); }

typedef struct handle {
  void *stream;
  int mode;
} handle;

typedef struct side {
  const float *first;
  int leading;
  long long step;
} side;

typedef struct product {
  int of_a, of_b, m, n, k, count;
  float alpha, beta;
  side a, b, c;
} product;

static void multiply(void *own) {
  const product *const p = own;
  const float *const a = emulated_cuda_argument(p->a.first), *const b =
                                                                 emulated_cuda_argument(p->b.first);
  float *const c = emulated_cuda_argument(p->c.first);
  for (int i = 0; i < p->count; i++)
    cblas_sgemm(CblasColMajor, p->of_a ? CblasTrans : CblasNoTrans,
                p->of_b ? CblasTrans : CblasNoTrans, p->m, p->n, p->k, p->alpha, a + i * p->a.step,
                p->a.leading, b + i * p->b.step, p->b.leading, p->beta, c + i * p->c.step,
                p->c.leading);
  free(own);
}

/* Reads it at the call, as the real one does; alpha and beta are on the host. */
static int put(const handle *h, const product *what) {
  const product *const w = what;
  if (!h) return NOT_INITIALIZED;
  if (w->m < 0 || w->n < 0 || w->k < 0 || w->count < 0 || w->of_a < 0 || w->of_a > 1 ||
      w->of_b < 0 || w->of_b > 1)
    return INVALID_VALUE;
  if (w->a.leading < (w->of_a ? w->k : w->m) || w->b.leading < (w->of_b ? w->n : w->k) ||
      w->c.leading < w->m)
    return INVALID_VALUE;
  product *const p = malloc(sizeof *p);
  if (!p) abort();
  *p = *what;
  return emulated_cuda_run(h->stream, "emulated_sgemm", multiply, p) == 0 ? SUCCESS
                                                                          : EXECUTION_FAILED;
}

BLAS int cublasCreate_v2(handle **out);
BLAS int cublasCreate_v2(handle **out) { return (*out = calloc(1, sizeof **out)) ? SUCCESS : 3; }

BLAS int cublasDestroy_v2(handle *h);
BLAS int cublasDestroy_v2(handle *h) {
  free(h);
  return SUCCESS;
}

BLAS int cublasSetStream_v2(handle *h, void *stream);
BLAS int cublasSetStream_v2(handle *h, void *stream) {
  h->stream = stream;
  return SUCCESS;
}

BLAS int cublasSetMathMode(handle *h, int mode);
BLAS int cublasSetMathMode(handle *h, int mode) {
  h->mode = mode;
  return SUCCESS;
}

BLAS int cublasSgemm_v2(handle *h, int of_a, int of_b, int m, int n, int k, const float *alpha,
                        const float *a, int lda, const float *b, int ldb, const float *beta,
                        float *c, int ldc);
BLAS int cublasSgemm_v2(handle *h, int of_a, int of_b, int m, int n, int k, const float *alpha,
                        const float *a, int lda, const float *b, int ldb, const float *beta,
                        float *c, int ldc) {
  return put(
      h, &(product){of_a, of_b, m, n, k, 1, *alpha, *beta, {a, lda, 0}, {b, ldb, 0}, {c, ldc, 0}});
}

BLAS int cublasSgemmStridedBatched(handle *h, int of_a, int of_b, int m, int n, int k,
                                   const float *alpha, const float *a, int lda, long long step_a,
                                   const float *b, int ldb, long long step_b, const float *beta,
                                   float *c, int ldc, long long step_c, int count);
BLAS int cublasSgemmStridedBatched(handle *h, int of_a, int of_b, int m, int n, int k,
                                   const float *alpha, const float *a, int lda, long long step_a,
                                   const float *b, int ldb, long long step_b, const float *beta,
                                   float *c, int ldc, long long step_c, int count) {
  return put(h, &(product){of_a,
                           of_b,
                           m,
                           n,
                           k,
                           count,
                           *alpha,
                           *beta,
                           {a, lda, step_a},
                           {b, ldb, step_b},
                           {c, ldc, step_c}});
}
