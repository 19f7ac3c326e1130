/* The model as a program: a flat list of instructions on numbered registers, made once by
   program_compile() and run as often as wanted by the VM. Each register is written by one
   instruction and read by later ones. An instruction names the registers that no later one reads,
   so the VM gives their memory back at once. Nothing in a program depends on the batch: shapes
   come in when it runs. SPDX-License-Identifier: MIT */
#ifndef MINILM_PROGRAM_H
#define MINILM_PROGRAM_H

#include "config.h"
#include "safetensors.h"

typedef enum opcode {
  /* out = embedding of the batch's tokens; weights: words, positions, types */
  OPCODE_EMBEDDING,
  OPCODE_DENSE,            /* out = in0 * weight0^T + weight1 */
  OPCODE_ATTENTION_SCORES, /* out = in0 * in1^T, by head */
  OPCODE_SOFTMAX,          /* out = in0, in place */
  OPCODE_ATTENTION_MIX,    /* out = in0 * in1, by head */
  OPCODE_ADD,              /* out = in0 in place, plus in1 */
  OPCODE_LAYER_NORM,       /* out = in0, in place; weights: scale, shift */
  OPCODE_GELU,             /* out = in0, in place */
  OPCODE_MEAN_POOL,        /* out = mean of in0 over each text's tokens */
  OPCODE_L2_NORMALISE      /* out = in0, in place */
} opcode;

enum {
  NO_REGISTER = -1,
  INSTRUCTION_INPUTS_MAX = 2,
  INSTRUCTION_WEIGHTS_MAX = 3,
  INSTRUCTION_NAME_BYTES = 40
};

typedef struct instruction {
  opcode op;
  int in[INSTRUCTION_INPUTS_MAX]; /* registers, or NO_REGISTER */
  int out;                        /* equal to in[0]: written in place */
  /* inputs that are read here for the last time, or NO_REGISTER */
  int dead[INSTRUCTION_INPUTS_MAX];
  tensor weights[INSTRUCTION_WEIGHTS_MAX];
  char name[INSTRUCTION_NAME_BYTES]; /* "layer 3 key" */
} instruction;

typedef struct program {
  instruction *code;
  int instruction_count;
  int instruction_room;
  int register_count;
  int result; /* the register that holds the embeddings at the end */
  int64_t heads;
  float layer_norm_epsilon;
} program;

/* The weights' file must stay open as long as the program is used. */
int program_compile(const config *c, const safetensors *weights, program **program_out,
                    failure *why);
void program_destroy(program *p);

#endif
