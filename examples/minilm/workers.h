/* Threads that run batches, each with its own VM, fed by a short queue. Submitting waits while the
   queue is full, so memory stays bounded however much there is to do. Waits are level-2 scopes of
   category "wait". One thread submits and waits; the workers are the other side.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_WORKERS_H
#define MINILM_WORKERS_H

#include "vm.h"

enum { WORKERS_MAX = 16, WORKERS_QUEUE_ROOM = 4 };

typedef struct workers workers;

/* Starts count threads (1 to WORKERS_MAX), each with a lane of the engine. The program, the engine
   and the pool must outlive them. */
int workers_create(const program *p, engine *e, pool *memory, int count, workers **workers_out,
                   failure *why);

/* Finishes what was submitted, then joins the threads. NULL is ignored. */
void workers_destroy(workers *w);

/* The batch must stay until workers_wait() returns. */
void workers_submit(workers *w, const batch *texts);

/* Waits for all that was submitted. Refused: a batch failed since the last wait (the first one's
   reason). */
int workers_wait(workers *w, failure *why);

#endif
