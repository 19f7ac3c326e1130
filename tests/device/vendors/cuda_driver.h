/* Between the files of the emulated CUDA driver: its errors, its lock, what is current, and calls
   as its observer sees them. */
#ifndef TESTS_DEVICE_VENDORS_CUDA_DRIVER_H
#define TESTS_DEVICE_VENDORS_CUDA_DRIVER_H

#include "cuda.h"

#define CU __attribute__((visibility("default")))

enum {
  SUCCESS = 0,
  INVALID_VALUE = 1,
  OUT_OF_MEMORY = 2,
  NOT_INITIALIZED = 3,
  INVALID_DEVICE = 101,
  INVALID_CONTEXT = 201,
  INVALID_HANDLE = 400,
  CONTEXT_IS_DESTROYED = 709,
  NO_BINARY = 209,
  NOT_FOUND = 500,
  NOT_READY = 600,
  CAPTURE_UNSUPPORTED = 900,
  CAPTURE_INVALIDATED = 901,
  CAPTURE_IMPLICIT = 906
};
enum { DRIVER = 1, RUNTIME = 2 }; /* domains of calls */

typedef struct call {
  uint32_t number, correlation;
  uint64_t start_ns;
} call;

/* ---- cuda_work.c ---- */

struct kernel;

call cuda_enter(uint32_t number);
int cuda_leave(const call *c, int domain, int result); /* returns result */
const emulated_cuda_observer *cuda_observer(void);     /* NULL: there is none */
uint64_t cuda_real_ns(void);

/* Lock held. The graph of that kernel, so many times. */
void *cuda_make_graph(struct kernel *node, uint32_t count);

/* ---- cuda.c ---- */

typedef struct context {
  int device;
  unsigned long long number;
  void *legacy, *per_thread;
} context;

typedef struct stream {
  context *of;
  struct engine_stream *engine;
  uint32_t number;
  int capture; /* 0: none; 1: under way; 2: broken */
  int capture_mode;
  /* what was put on it while it was captured, last, and how often anything was */
  struct kernel *node;
  uint32_t node_count;
} stream;

void cuda_lock(void);
void cuda_unlock(void);

#define LOCKED(...)                                       \
  do {                                                    \
    cuda_lock();                                          \
    const __typeof__(__VA_ARGS__) result = (__VA_ARGS__); \
    cuda_unlock();                                        \
    return result;                                        \
  } while (0)

/* Lock held. 0: this thread has no current context. */
int cuda_is_current(uint32_t *device_out, uint32_t *context_out);

/* Lock held; an error. 0, 1 and 2 are the current context's. */
int cuda_find_stream(void *handle, stream **out);

/* Lock held; an error. */
int cuda_stream_number(void *handle, uint32_t *out);

#endif
