/* What of a capture is autograd's backward: which of PyTorch's operators are backward calls, and
   what is known of the forward calls that they are of, by what their arguments say: "Sequence
   number", of a forward call "Thread id", of a backward one that number as its "Fwd thread id"
   (inject/torch/calls.c; of a trace of torch.profiler's a forward call says no thread). Called
   by call_stacks.c and forward_stacks.c; the arguments alone by src/export. */
#ifndef PROF_ANALYSIS_BACKWARD_H
#define PROF_ANALYSIS_BACKWARD_H

#include <stdbool.h>

#include "../reader/capture.h"

/* What an operator says of itself. */
typedef struct prof_i_call_numbers {
  int64_t sequence;        /* -1: it has none */
  uint64_t forward_thread; /* of a backward call; else 0 */
  uint64_t thread;         /* torch's own number of the thread that it ran on; 0: not told */
} prof_i_call_numbers;

prof_i_call_numbers prof_i_call_numbers_of(const prof_event *scope);

/* Is this the name of autograd's own range around a backward call? */
bool prof_i_backward_is_range(prof_i_text name);

/* A forward call, as it is asked for by its number and its thread's. */
typedef struct prof_i_forward_call {
  uint64_t thread; /* torch's number; 0: not told */
  int64_t sequence;
  uint64_t start_ns;
  uint32_t owner;  /* our thread that it ran on */
  uint32_t number; /* 1 + that of the stack it has, call_stacks.h; 0: nobody's place */
  /* several threads have such a call: it says no thread, or they are of several processes */
  bool is_of_many;
} prof_i_forward_call;

typedef struct prof_i_backward {
  const prof_trace *trace;
  uint32_t thread;                /* of the capture, the one that is walked: set by whoever walks */
  uint8_t *is_range;              /* by site: autograd's own range around a backward call */
  uint8_t *has_numbers;           /* by place of the schema */
  prof_i_forward_call *calls;     /* by a hash */
  uint32_t call_count, call_room; /* a power of two */
  prof_event event;               /* the one that was looked at last */
} prof_i_backward;

/* *backward_out NULL: the capture has no backward call. False: no memory. */
bool prof_i_backward_create(const prof_trace *trace, prof_i_backward **backward_out);
void prof_i_backward_destroy(prof_i_backward *backward);

/* Numbers of a scope of the thread that is walked; those of none where it has none. */
prof_i_call_numbers prof_i_backward_numbers(prof_i_backward *backward, const prof_i_span *span);

/* Is it a backward call, as torch.profiler's RecordScope BACKWARD_FUNCTION? range_site: where the
   innermost thing around it that is no traced function is autograd's range, that one's, by which
   AccumulateGrad, which has no number, is known; else 0. */
bool prof_i_backward_is_call(prof_i_backward *backward, const prof_i_span *span,
                             uint32_t range_site, prof_i_call_numbers *numbers_out);

/* Have the two one name? */
bool prof_i_backward_same_name(prof_i_backward *backward, const prof_i_span *a,
                               const prof_i_span *b);

/* Of forward calls of one number and one thread the first that began has it, and of those that
   began at once the last one that is added. number as of prof_i_stack_node. False: no memory. */
bool prof_i_backward_add(prof_i_backward *backward, prof_i_call_numbers numbers, uint32_t owner,
                         uint64_t start_ns, uint32_t number);

/* The forward call's number of what stands around it; 0 where that is nothing, or it is not
   there. */
uint32_t prof_i_backward_forward(const prof_i_backward *backward, prof_i_call_numbers numbers);

#endif
