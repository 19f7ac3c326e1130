/* See vm.h. SPDX-License-Identifier: MIT */
#include "vm.h"

#include <prof/memory.h>
#include <stdlib.h>

/* What those that write a new register are called in the account of memory. */
static const char *const purposes[] = {[OPCODE_EMBEDDING] = "embedding",
                                       [OPCODE_DENSE] = "dense",
                                       [OPCODE_ATTENTION_SCORES] = "attention scores",
                                       [OPCODE_ATTENTION_MIX] = "attention mix",
                                       [OPCODE_MEAN_POOL] = "mean pool"};

enum { PURPOSES = sizeof purposes / sizeof *purposes };

struct vm {
  const program *program;
  pool *memory;
  engine *engine;
  lane *lane;
  tensor *registers; /* data NULL: empty */
  uint32_t tags[PURPOSES];
};

static void release(vm *v, int number) {
  pool_release(v->memory, v->registers[number].data);
  v->registers[number].data = NULL;
}

/* What an instruction that writes a new register makes of its inputs' shapes; in-place ones are not
   asked. */
static tensor shape_of_result(const vm *v, const instruction *i, const batch *texts) {
  const int64_t count = texts->count, length = texts->length;
  switch (i->op) {
    case OPCODE_EMBEDDING:
      return (tensor){{count, length, i->weights[0].dims[1], 0}, 3, NULL};
    case OPCODE_DENSE:
      return (tensor){{count, length, i->weights[0].dims[0], 0}, 3, NULL};
    case OPCODE_ATTENTION_SCORES:
      return (tensor){{count, v->program->heads, length, length}, 4, NULL};
    case OPCODE_ATTENTION_MIX:
      return (tensor){{count, length, tensor_row_width(&v->registers[i->in[1]]), 0}, 3, NULL};
    case OPCODE_MEAN_POOL:
      return (tensor){{count, tensor_row_width(&v->registers[i->in[0]]), 0, 0}, 2, NULL};
    case OPCODE_SOFTMAX:
    case OPCODE_ADD:
    case OPCODE_LAYER_NORM:
    case OPCODE_GELU:
    case OPCODE_L2_NORMALISE:
      break;
  }
  return v->registers[i->out];
}

static int allocate_result(vm *v, const instruction *i, const batch *texts, failure *why) {
  if (i->out == i->in[0]) return 0;
  tensor result = shape_of_result(v, i, texts);
  const size_t bytes = (size_t)tensor_element_count(&result) * sizeof(float);
  result.data = pool_acquire_for(
      v->memory, bytes,
      (pool_purpose){(size_t)i->op < PURPOSES ? v->tags[i->op] : 0, v->engine->stream(v->lane)});
  if (result.data == NULL) return failure_set(why, "%s: the pool has no %zu bytes", i->name, bytes);
  v->registers[i->out] = result;
  return 0;
}

static int invoke(vm *v, const instruction *i, const batch *texts, failure *why) {
  invocation what = {.op = i->op,
                     .weights = i->weights,
                     .out = &v->registers[i->out],
                     .texts = texts,
                     .epsilon = v->program->layer_norm_epsilon};
  for (int n = 0; n < INSTRUCTION_INPUTS_MAX; n++)
    if (i->in[n] != NO_REGISTER) what.in[n] = &v->registers[i->in[n]];
  return v->engine->invoke(v->lane, &what, why);
}

static int step(vm *v, const instruction *i, const batch *texts, failure *why) {
  if (allocate_result(v, i, texts, why) != 0) return -1;
  /* Where a layer holds its input, query, key, value and the scores: a guess at its peak. A program
     that queries now and then must guess. */
  if (i->op == OPCODE_SOFTMAX) PROFILE_MEMORY(v->engine->memory->device, i->name);
  if (invoke(v, i, texts, why) != 0) return -1;
  for (int n = 0; n < INSTRUCTION_INPUTS_MAX; n++)
    if (i->dead[n] != NO_REGISTER) release(v, i->dead[n]);
  return 0;
}

static int run_instructions(vm *v, const batch *texts, failure *why) {
  for (int k = 0; k < v->program->instruction_count; k++) {
    const instruction *i = &v->program->code[k];
    int status = 0;
    WITH_BASE_PROFILER_LEVEL(2, PROF_HOST, i->name, "vm", PROF_NO_ARGS,
                             { status = step(v, i, texts, why); });
    if (status != 0) return -1;
  }
  return 0;
}

static int run_and_fetch(vm *v, const batch *texts, failure *why) {
  if (v->engine->begin(v->lane, texts, why) != 0 || run_instructions(v, texts, why) != 0) return -1;
  return v->engine->fetch(v->lane, &v->registers[v->program->result], texts, why);
}

static int set_up(vm *v, failure *why) {
  v->registers = calloc((size_t)v->program->register_count, sizeof *v->registers);
  if (v->registers == NULL) return failure_set(why, "no memory for the VM");
  for (int i = 0; i < PURPOSES; i++) v->tags[i] = prof_memory_tag(purposes[i]);
  return v->engine->open_lane(v->engine, &v->lane, why);
}

int vm_create(const program *p, engine *e, pool *memory, vm **vm_out, failure *why) {
  vm *v = calloc(1, sizeof *v);
  if (v == NULL) return failure_set(why, "no memory for the VM");
  *v = (vm){.program = p, .memory = memory, .engine = e};
  if (set_up(v, why) != 0) {
    free(v->registers);
    free(v);
    return -1;
  }
  *vm_out = v;
  return 0;
}

void vm_set_name(const vm *v, const char *name) { engine_name_lane(v->engine, v->lane, name); }

void vm_destroy(vm *v) {
  if (v == NULL) return;
  v->engine->close_lane(v->lane);
  free(v->registers);
  free(v);
}

int vm_run(vm *v, const batch *texts, failure *why) {
  int status = 0;
  WITH_BASE_PROFILER_LEVEL(
      2, PROF_HOST, "run", "vm", PROF_ARGS("texts", texts->count, "tokens", texts->length), {
        status = run_and_fetch(v, texts, why);
        if (status != 0) v->engine->finish(v->lane); /* what is on its way there reads the texts */
        /* The result, and after a refusal whatever was alive. */
        for (int r = 0; r < v->program->register_count; r++)
          if (v->registers[r].data != NULL) release(v, r);
      });
  return status;
}
