/* A "vendor's library": an engine that copies memory, one command after the other, on a thread of
   its own, with a clock of its own. Any device that works through a queue looks like it. Knows
   nothing of prof. */
#ifndef ENGINE_H
#define ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct engine_queue engine_queue;
/* a moment of a queue's: when all is done that was put there before */
typedef struct engine_fence engine_fence;

engine_queue *engine_queue_create(void);        /* NULL: no memory, or no thread */
void engine_queue_destroy(engine_queue *queue); /* when it is done */
/* returns at once; -1: no memory */
int engine_copy(engine_queue *queue, void *to, const void *from, size_t bytes);
void engine_finish(engine_queue *queue); /* waits until it is done */

engine_fence *engine_fence_create(void);
void engine_fence_destroy(engine_fence *fence);
/* again, once it is past; -1: no memory */
int engine_fence_put(engine_queue *queue, engine_fence *fence);
bool engine_fence_is_past(const engine_fence *fence);
uint64_t engine_fence_ns(const engine_fence *fence); /* when it was past, by engine_now_ns() */

uint64_t engine_now_ns(void); /* the engine's clock */

#endif
