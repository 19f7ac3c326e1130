/* Runs a compiled program on a batch. One VM serves one thread at a time and keeps nothing but its
   register file; programs, engines and pools may be shared. Each instruction is a level-2 scope
   named as the program names it, around the level-1 scope of its operator: the difference is what
   the VM costs. A register's memory is tagged with the operator that writes it, and once a layer
   PROFILE_MEMORY() asks what is used. SPDX-License-Identifier: MIT */
#ifndef MINILM_VM_H
#define MINILM_VM_H

#include "engine.h"

typedef struct vm vm;

/* The program (whose weights the engine can read: placement.h), the engine and the pool (of the
   engine's memory) must outlive it. Refused: no memory, or the engine has no lane. */
int vm_create(const program *p, engine *e, pool *memory, vm **vm_out, failure *why);

/* What its work is called where the trace shows a device's. */
void vm_set_name(const vm *v, const char *name);
void vm_destroy(vm *v);

/* Writes the batch's embeddings. Refused: the pool has no memory, or the engine failed; the VM can
   run on afterwards. */
int vm_run(vm *v, const batch *texts, failure *why);

#endif
