/* Runs a compiled program on a batch. One VM serves one thread at a time and keeps nothing but its register file; programs
   and pools may be shared. Each instruction is a level-2 scope named as the program names it, around the level-1 scope of
   its operator: the difference is what the VM costs. A register's memory is tagged with the operator that writes it, and once a
   layer PROFILE_MEMORY() asks what is used. SPDX-License-Identifier: MIT */
#ifndef MINILM_VM_H
#define MINILM_VM_H

#include "batch.h"
#include "pool.h"
#include "program.h"

typedef struct vm vm;

/* The program and the pool must outlive it. NULL: no memory. */
vm *vm_create(const program *p, pool *memory);
void vm_destroy(vm *v);

/* Writes the batch's embeddings. Refused: the pool has no memory; the VM can run on afterwards. */
int vm_run(vm *v, const batch *texts, failure *why);

#endif
