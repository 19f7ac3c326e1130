/* See queues.h. */
#define _GNU_SOURCE
#include "queues.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "functions.h"

static bool may_change_queues(void) {
  const char *const wanted = secure_getenv("PROF_BACKEND_OPENCL_QUEUES");
  return !wanted || strcmp(wanted, "unchanged") != 0;
}

/* A queue that kernels put commands on is none of the host's. */
static uint64_t with_profiling(uint64_t properties) {
  return properties & PROF_I_CL_QUEUE_ON_DEVICE ? properties
                                                : properties | PROF_I_CL_QUEUE_PROFILING_ENABLE;
}

uint64_t prof_i_queue_properties(uint64_t properties) {
  return may_change_queues() ? with_profiling(properties) : properties;
}

const uint64_t *prof_i_queue_property_list(const uint64_t *list,
                                           uint64_t room[PROF_I_QUEUE_WORDS]) {
  size_t words = 0, at = SIZE_MAX;
  if (!may_change_queues()) return list;
  for (; list && list[words]; words += 2) {
    /* more than anybody has: they stay as they are */
    if (words + 5 > PROF_I_QUEUE_WORDS) return list;
    if (list[words] == PROF_I_CL_QUEUE_PROPERTIES) at = words + 1;
    memcpy(room + words, list + words, 2 * sizeof *list);
  }
  if (at == SIZE_MAX) {
    room[words] = PROF_I_CL_QUEUE_PROPERTIES;
    room[words + 1] = 0;
    at = words + 1;
    words += 2;
  }
  room[at] = with_profiling(room[at]);
  room[words] = 0;
  return room;
}
