/* Who computes, and where the tensors lie meanwhile: the host, or a device. The VM knows only this
   of it. It takes memory from the pool, puts instructions on a lane in the program's order, and
   asks for the result at its end. On the host an instruction is done when invoke() returns; on a
   device it is on its way. SPDX-License-Identifier: MIT */
#ifndef MINILM_ENGINE_H
#define MINILM_ENGINE_H

#include <stdbool.h>

#include "batch.h"
#include "pool.h"
#include "program.h"

typedef struct engine engine;

/* Work in order, of one thread at a time: a device's stream; of the host nothing. */
typedef struct lane lane;

/* An instruction with its operands. */
typedef struct invocation {
  opcode op;
  const tensor *weights;                    /* as many as the opcode has */
  const tensor *in[INSTRUCTION_INPUTS_MAX]; /* NULL: none */
  tensor *out; /* its data lie where the engine's memory does; equal to in[0]: in place */
  const batch *texts;
  float epsilon; /* of a layer norm */
} invocation;

/* All refuse with -1 and why; afterwards the lane can be used on. */
struct engine {
  const char *name;        /* "host" */
  const char *description; /* of the device: its own name; stays as long as the engine */
  bool reads_files;        /* the weights may stay where the file is mapped */
  const pool_source *memory;
  /* the lane is NULL where there is nothing to know */
  int (*open_lane)(engine *e, lane **lane_out, failure *why);
  /* done with what was put there; NULL is ignored */
  void (*close_lane)(lane *l);
  uint64_t (*stream)(const lane *l); /* for the pool */
  /* done when it returns */
  int (*upload)(lane *l, void *to, const void *from, size_t bytes, failure *why);
  /* what the instructions need of the texts goes ahead */
  int (*begin)(lane *l, const batch *texts, failure *why);
  int (*invoke)(lane *l, const invocation *i, failure *why);
  /* waits, and copies a row into each text's embedding */
  int (*fetch)(lane *l, const tensor *rows, const batch *texts, failure *why);
  /* waits for what was put there, whatever came of it */
  void (*finish)(lane *l);
  /* when all lanes are closed, and the pool is gone */
  void (*destroy)(engine *e);
};

/* Always there; whoever destroys it does nothing. */
engine *engine_host(void);

/* name: "host", "opencl", "cuda" or "hip". Refused: there is no such engine, or not on this
   machine, and why. */
int engine_open(const char *name, engine **engine_out, failure *why);

/* What a device's lane is called in the trace. The host's lane has no name. */
void engine_name_lane(const engine *e, const lane *l, const char *name);

#endif
