/* PyTorch's rules: which frames its profiler hides, and which operators are autograd's backward
   calls. Rules that the reader must know, too, are in src/format/layout.h: the sites of operators
   and the names of nn.Modules.

   An operator's arguments connect a backward call with its forward call (inject/torch/calls.c). A
   forward call has its "Sequence number", and torch's number of its thread as "Thread id". A
   backward call has the "Sequence number" of its forward call, and that call's thread as "Fwd
   thread id".

   In an imported trace of torch.profiler a forward call has no thread. Called by aggregate.c's
   parts, call_stacks.c and src/export. */
#ifndef PROF_ANALYSIS_TORCH_H
#define PROF_ANALYSIS_TORCH_H

#include <stdbool.h>

#include "../reader/capture.h"

struct prof_i_call_stacks;

/* ---- names ---- */

/* The category of what record_function() makes. */
bool prof_i_torch_is_annotation(prof_i_text category);

/* Whether torch.profiler leaves this frame out of its stacks (_filter_stack_entry()). */
bool prof_i_torch_hides_frame(const char *frame, size_t bytes);

/* The name of autograd's own range around a backward call. */
bool prof_i_backward_is_range(prof_i_text name);

/* ---- numbers of an operator ---- */

typedef struct prof_i_call_numbers {
  int64_t sequence;        /* -1: it has none */
  uint64_t forward_thread; /* of a backward call; else 0 */
  uint64_t thread;         /* torch's own number of the thread that it ran on; 0: unknown */
} prof_i_call_numbers;

prof_i_call_numbers prof_i_call_numbers_of(const prof_event *scope);

/* ---- backward calls of a capture ---- */

/* A forward call, found by its number and torch's number of its thread. */
typedef struct prof_i_forward_call {
  uint64_t thread; /* torch's number; 0: unknown */
  int64_t sequence;
  uint64_t start_ns;
  uint32_t owner;  /* our thread that it ran on */
  uint32_t number; /* 1 + that of the stack it has, call_stacks.h; 0: the entry is free */
  /* several threads have such a call: its thread is unknown, or they are of several processes */
  bool is_of_many;
} prof_i_forward_call;

typedef struct prof_i_backward {
  const prof_trace *trace;
  uint32_t thread;                /* of the capture, the one being walked: set by the caller */
  uint8_t *is_range;              /* by site: autograd's own range around a backward call */
  uint8_t *has_numbers;           /* by index of the schema */
  prof_i_forward_call *calls;     /* by a hash */
  uint32_t call_count, call_room; /* a power of two */
  prof_event event;               /* the one that was expanded last */
} prof_i_backward;

void prof_i_backward_destroy(prof_i_backward *backward);

/* Whether torch.profiler's RecordScope of the call is BACKWARD_FUNCTION. AccumulateGrad has no
   number, so it is known by the autograd range around it.
   range_site: the site of this range. 0: the innermost scope around the call is no range. Traced
   functions do not count. */
bool prof_i_backward_is_call(prof_i_backward *backward, const prof_i_span *span,
                             uint32_t range_site, prof_i_call_numbers *numbers_out);

/* The stack number of the forward call. 0: it has no stack, or it is not in the capture. */
uint32_t prof_i_backward_forward(const prof_i_backward *backward, prof_i_call_numbers numbers);

/* ---- stacks of forward calls, for tables ---- */

/* Reads the capture once, if it has backward calls. Takes the forward calls that began in [from_ns,
   to_ns); to_ns 0: no end. Afterwards the numbers and texts of call_stacks are a table's. False: no
   memory. */
bool prof_i_torch_find_forward_stacks(struct prof_i_call_stacks *call_stacks, uint64_t from_ns,
                                      uint64_t to_ns);

#endif
