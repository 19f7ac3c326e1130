/* A program with its weights in an engine's memory. SPDX-License-Identifier: MIT */
#ifndef MINILM_PLACEMENT_H
#define MINILM_PLACEMENT_H

#include "engine.h"

typedef struct placement placement;

/* Copies the weights into one piece of the pool; where the engine reads the mapped file nothing is
   copied. The program, the engine and the pool must outlive it. Refused: the pool has no memory, or
   the engine did not take it. */
int placement_create(const program *p, engine *e, pool *memory, placement **placement_out,
                     failure *why);

/* NULL is ignored. */
void placement_destroy(placement *p);

const program *placement_program(const placement *p);

#endif
