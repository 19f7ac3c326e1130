/* In tables, what runs in a backward call of autograd's has the stack of the forward call that it
   is of, and two frames of autograd's own are left out, as torch.profiler has it
   (_set_backward_stacktraces() and _filter_stack_entry() of torch/autograd/profiler_util.py). The
   cursor and the JSON have what really stood around it, there and here. Called by aggregate.c. */
#ifndef PROF_ANALYSIS_FORWARD_STACKS_H
#define PROF_ANALYSIS_FORWARD_STACKS_H

#include "call_stacks.h"

/* Looks through the capture once where it has backward calls; of forward calls those that began
   from from_ns on, and before to_ns (0: up to its end). From there on the callers' numbers and
   texts are a table's. False: no memory. */
bool prof_i_forward_stacks_find(prof_i_call_stacks *call_stacks, uint64_t from_ns, uint64_t to_ns);

#endif
