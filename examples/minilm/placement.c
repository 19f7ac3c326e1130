/* See placement.h. SPDX-License-Identifier: MIT */
#include "placement.h"

#include <prof/memory.h>
#include <stdlib.h>

struct placement {
  program program; /* shares the original's code where the weights stayed */
  instruction *own_code;
  pool *memory;
  void *weights; /* NULL: in the file */
};

/* Where a weight lies in the piece: a multiple of the pool's alignment. */
static size_t room_of(const tensor *weight) {
  const size_t bytes = (size_t)tensor_element_count(weight) * sizeof(float);
  return (bytes + POOL_ALIGNMENT - 1) / POOL_ALIGNMENT * POOL_ALIGNMENT;
}

static size_t room_of_all(const program *p) {
  size_t bytes = 0;
  for (int k = 0; k < p->instruction_count; k++)
    for (int n = 0; n < INSTRUCTION_WEIGHTS_MAX; n++)
      if (p->code[k].weights[n].rank > 0) bytes += room_of(&p->code[k].weights[n]);
  return bytes;
}

static int upload_all(placement *p, engine *e, lane *l, failure *why) {
  char *at = p->weights;
  for (int k = 0; k < p->program.instruction_count; k++) {
    for (int n = 0; n < INSTRUCTION_WEIGHTS_MAX; n++) {
      tensor *weight = &p->own_code[k].weights[n];
      if (weight->rank == 0) continue;
      if (e->upload(l, at, weight->data, (size_t)tensor_element_count(weight) * sizeof(float),
                    why) != 0)
        return -1;
      weight->data = (float *)(void *)at;
      at += room_of(weight);
    }
  }
  return 0;
}

static int place(placement *p, engine *e, failure *why) {
  const size_t bytes = room_of_all(&p->program);
  lane *l = NULL;
  p->own_code = malloc((size_t)p->program.instruction_count * sizeof *p->own_code);
  if (p->own_code == NULL) return failure_set(why, "no memory for the program");
  for (int k = 0; k < p->program.instruction_count; k++) p->own_code[k] = p->program.code[k];
  p->program.code = p->own_code;
  p->weights = pool_acquire_for(p->memory, bytes,
                                (pool_purpose){prof_memory_tag("weights"), POOL_ANY_STREAM});
  if (p->weights == NULL)
    return failure_set(why, "%s has no %zu bytes for the weights", e->description, bytes);
  if (e->open_lane(e, &l, why) != 0) return -1;
  engine_name_lane(e, l, "weights");
  const int status = upload_all(p, e, l, why);
  e->close_lane(l);
  return status;
}

int placement_create(const program *p, engine *e, pool *memory, placement **placement_out,
                     failure *why) {
  placement *made = calloc(1, sizeof *made);
  if (made == NULL) return failure_set(why, "no memory for the program");
  *made = (placement){.program = *p, .memory = memory};
  if (!e->reads_files && place(made, e, why) != 0) {
    placement_destroy(made);
    return -1;
  }
  *placement_out = made;
  return 0;
}

void placement_destroy(placement *p) {
  if (p == NULL) return;
  pool_release(p->memory, p->weights);
  free(p->own_code);
  free(p);
}

const program *placement_program(const placement *p) { return &p->program; }
