/* What both proofs share: the known calls. Used by layout_proof.c and values_proof.c alone. */
#ifndef PROF_INJECT_TORCH_LAYOUT_PROOF_H
#define PROF_INJECT_TORCH_LAYOUT_PROOF_H

#include "torch.h"

enum {
  PROF_I_TORCH_INPUTS_MAX = 4,
  PROF_I_TORCH_RANK_MAX = 4,
  PROF_I_TORCH_IVALUE_WORDS = 2 /* payload, tag */
};

/* What an input is that is no tensor. */
typedef enum prof_i_torch_known_kind {
  PROF_I_TORCH_KNOWN_OTHER = 0, /* nothing is known of it */
  PROF_I_TORCH_KNOWN_NONE = 1,
  PROF_I_TORCH_KNOWN_INT = 2,    /* dims[0] */
  PROF_I_TORCH_KNOWN_DOUBLE = 3, /* the bits of dims[0] */
  PROF_I_TORCH_KNOWN_BOOL = 4,   /* dims[0] */
  PROF_I_TORCH_KNOWN_LIST = 5,   /* of ints: the first `rank` of dims */
  PROF_I_TORCH_KNOWN_TENSORS = 6 /* a list of them: dims are addresses, as impl */
} prof_i_torch_known_kind;

/* A known call. bindings/python/prof/_torch_calls.py has the same. */
typedef struct prof_i_torch_known {
  const char *name;
  int64_t sequence;
  uint64_t forward; /* PROF_I_TORCH_THIS_THREAD: torch's number of this one */
  uint32_t scope;
  uint32_t count; /* of inputs */
  struct {
    const void *impl; /* of a Tensor; NULL: something else */
    uint32_t rank, dtype;
    int64_t dims[PROF_I_TORCH_RANK_MAX];
    uint32_t kind, reserved; /* prof_i_torch_known_kind */
  } inputs[PROF_I_TORCH_INPUTS_MAX];
  const char *concrete, *strides; /* the texts that it has; NULL: they are not compared */
} prof_i_torch_known;

#define PROF_I_TORCH_THIS_THREAD UINT64_MAX

/* Copies what can be read. False: not all of it. */
bool prof_i_torch_read(const void *from, void *to, size_t bytes);

/* A known call has come, after prof_i_torch_layout_proven was found. */
void prof_i_torch_values_examine(const void *call, const prof_i_torch_known *known);

#endif
