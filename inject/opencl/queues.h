/* A command's times are kept only where its queue was made to: the layer adds that to what the
   program asks for, unless PROF_BACKEND_OPENCL_QUEUES=unchanged forbids it. */
#ifndef PROF_INJECT_OPENCL_QUEUES_H
#define PROF_INJECT_OPENCL_QUEUES_H

#include <stdint.h>

enum { PROF_I_QUEUE_WORDS = 64 };

/* clCreateCommandQueue()'s. */
uint64_t prof_i_queue_properties(uint64_t properties);
/* clCreateCommandQueueWithProperties()'s: names and values up to a 0, or NULL. What it returns is
   the list itself where it stays as it is, or stands in room. */
const uint64_t *prof_i_queue_property_list(const uint64_t *list, uint64_t room[PROF_I_QUEUE_WORDS]);

#endif
