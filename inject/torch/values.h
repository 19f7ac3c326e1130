/* A call's inputs beside their shapes: scalars, lists of scalars, strides. As texts, in the form in
   which prof import keeps "Concrete Inputs" and "Input Strides" of torch's own traces. What is
   needed for it is found and proven apart from the rest (values_proof.c), for shapes are recorded
   without it, too. Read only where a callback asks for inputs. */
#ifndef PROF_INJECT_TORCH_VALUES_H
#define PROF_INJECT_TORCH_VALUES_H

#include "torch.h"

enum {
  PROF_I_TORCH_IVALUE_BYTES = 16, /* payload, tag */
  PROF_I_TORCH_TAG_OFFSET = 8,
  PROF_I_TORCH_TEXT_BYTES = 4096,   /* of one text; one that would be longer is left out */
  PROF_I_TORCH_TEXT_INPUTS_MAX = 64 /* those of texts; the rest is left out, and counted */
};

/* Written before the first callback is added, constant from then on. */
typedef struct prof_i_torch_values_layout {
  uint32_t int_tag, double_tag, bool_tag, list_tag; /* an IValue's */
  uint32_t elements;                                /* offset in a list: IValue *begin, *end */
  uint32_t is_proven;                               /* 0: no texts are made */
  uint64_t int_type;    /* the word three behind `elements`, of each list of int */
  uint64_t tensor_type; /* the same of each list of tensors */
  uint64_t unstrided;   /* keys of tensors that have no strides */
} prof_i_torch_values_layout;

extern prof_i_torch_values_layout prof_i_torch_values_proven;

/* lists: all inputs' dimensions, if one is a list of tensors or all are wanted. types: all inputs'
   prof_dtype, if all are wanted. */
typedef struct prof_i_torch_texts {
  uint32_t concrete_bytes, strides_bytes, lists_bytes, types_bytes; /* 0: none */
  char concrete[PROF_I_TORCH_TEXT_BYTES], strides[PROF_I_TORCH_TEXT_BYTES];
  char lists[PROF_I_TORCH_TEXT_BYTES], types[PROF_I_TORCH_TEXT_BYTES];
} prof_i_torch_texts;

/* Of the first `count` inputs of a call, which has that many. has_all: also what tensors have in
   the record, dimensions and types. Any thread, while the call begins. */
void prof_i_torch_texts_make(const void *call, uint32_t count, bool has_all,
                             prof_i_torch_texts *texts);

/* Whether it is a list of tensors, also an empty one. False while that is not proven. */
bool prof_i_torch_is_tensors(const void *value);

/* True if this tensor's sizes may be queried. False for an undefined one. */
bool prof_i_torch_has_sizes(const void *impl);

#endif
