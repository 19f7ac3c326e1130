/* The emulated CUDA driver beyond CUDA's own functions: what a test asks of it, and what it has
   seen. Found by dlsym() in libcuda.so.1, or linked. */
#ifndef TESTS_DEVICE_VENDORS_CUDA_H
#define TESTS_DEVICE_VENDORS_CUDA_H

#include <stdint.h>

enum { EMULATED_CUDA_DEVICES = 2 };

typedef struct emulated_cuda {
  /* What a test sets. */
  uint32_t device_count;  /* 0: cuDeviceGetCount says 0 */
  int32_t driver_version; /* cuDriverGetVersion(); 0: 13000 */
  /* cuInit returns it; or the environment's EMULATED_CUDA_INIT_ERROR, for a program that is not the
     test's */
  int32_t init_error;
  uint8_t is_divided;    /* devices have an instance's name (MIG) */
  uint8_t uuid;          /* of device 0 its bytes, of device 1 one more; 0: 0x10 */
  int32_t create_error;  /* cuEventCreate returns it */
  int32_t record_error;  /* cuEventRecord returns it */
  int32_t elapsed_error; /* cuEventElapsedTime returns it */
  /* a kernel has gone wrong: all that asks for events and streams returns it from then on.
     Atomic */
  int32_t last_error;
  /* What it has seen; atomic. */
  uint32_t init_count;
  uint32_t events, contexts; /* that there are */
  uint32_t captured_records; /* events that became part of a graph */
  /* uses of an event that has gone with its context, where the real one may crash, by a thread that
     had not just seen that context there */
  uint32_t gone_touches;
  /* by one that had: it went in the instant between that look and the use */
  uint32_t raced_touches;
  uint32_t broken_captures; /* by a call that may not come from any thread meanwhile */
  /* for what the last module that was loaded was compiled: "sm_90", "compute_80" */
  char architecture[16];
  uint32_t after_last; /* calls that returned last_error */
} emulated_cuda;

emulated_cuda *emulated_cuda_state(void);
/* launches a kernel "busy" that takes so long; 0 is the current context's default stream */
void emulated_cuda_work(void *stream, uint64_t ns);
/* for cuLaunchKernel(). Stays, as its name must: records point to that */
void *emulated_cuda_kernel(const char *name, uint64_t ns);
/* for cuGraphLaunch(): so many nodes. Stays */
void *emulated_cuda_graph(void *kernel, uint32_t count);
/* as the runtime does: a call of its own, and the driver's inside of it, of one number */
int emulated_cuda_runtime_launch(void *kernel, void *stream);
/* cudaStreamSynchronize(), which is reported as a call and a wait */
int emulated_cuda_runtime_wait(void *stream);

/* ---- for the emulated cuBLAS ---- */

/* as a kernel, on the stream's thread; an error: own is freed */
int emulated_cuda_run(void *stream, const char *name, void (*run)(void *own), void *own);
/* for run(): where the device's memory really is */
void *emulated_cuda_argument(const void *address);

/* ---- for the emulated CUPTI, which the driver tells what it does ---- */

typedef enum emulated_cuda_kind {
  EMULATED_CUDA_KERNEL,
  EMULATED_CUDA_COPY,
  EMULATED_CUDA_FILL
} emulated_cuda_kind;

typedef struct emulated_cuda_done {
  emulated_cuda_kind kind;
  uint32_t device, context, stream, correlation; /* by numbers */
  const char *name;
  uint32_t grid[3], block[3], shared_bytes;
  uint64_t bytes, graph_node;
  uint32_t way, graph, graph_nodes; /* graph_nodes: how many that has */
} emulated_cuda_done;

typedef struct emulated_cuda_piece {
  uint64_t address, bytes, time_ns;              /* by CLOCK_REALTIME */
  uint32_t device, context, correlation, stream; /* stream: of a stream-ordered one; 0 */
  int place, is_release;                         /* place: CUPTI's kinds of memory */
} emulated_cuda_piece;

typedef struct emulated_cuda_observer {
  /* by CLOCK_REALTIME, on the calling thread */
  void (*call)(int domain, uint32_t number, uint32_t correlation, uint64_t start_ns,
               uint64_t end_ns);
  /* for a stream; before its call */
  void (*waited)(uint32_t context, uint32_t stream, uint32_t correlation, uint64_t start_ns,
                 uint64_t end_ns);
  void *(*begins)(const emulated_cuda_done *it);                 /* it is put on its stream */
  void (*ends)(void *begun, uint64_t start_ns, uint64_t end_ns); /* on the stream's thread */
  /* memory is handed out, or given back */
  void (*piece)(const emulated_cuda_piece *it);
} emulated_cuda_observer;

void emulated_cuda_observe(const emulated_cuda_observer *observer);
uint32_t emulated_cuda_stream_number(void *context, void *stream, int is_per_thread); /* 0: none */
uint32_t emulated_cuda_context_number(void *context);

#endif
