/* Call stacks: the traced functions (categories python_function and c_function) that are open
   around a scope. A scope with a stack argument has that stack instead. A walk that tracks parents
   (prof_i_walker_track_parents) queries the stack for each span.

   Each pending span of the walk is a stack node. A node has a number, the same for all spans with
   the same outer node and site. So a span costs the same at any depth, and each number's text is
   made once. In tables (torch.c) a backward call is a node, too: spans inside of it have the
   stack of its forward call. Called by aggregate.c, torch.c and src/export. */
#ifndef PROF_ANALYSIS_CALL_STACKS_H
#define PROF_ANALYSIS_CALL_STACKS_H

#include "../reader/walker.h"
#include "torch.h"

/* Limits of a text of functions. Without them a recursion of depth 1000 would take 1000 texts of up
   to 1000 frames of 4,608 bytes. Frames are never cut. */
enum { PROF_I_STACK_FRAMES_MAX = 256, PROF_I_STACK_BYTES_MAX = 65536 };

/* The innermost function, backward call or autograd range, and the node that it was called in. */
typedef struct prof_i_stack_node {
  uint32_t outer, site;
  /* the nearest outer node that has a frame in texts; 0: none. A query skips the others */
  uint32_t up;
  uint32_t range;   /* the site of autograd's range, if that is the innermost scope; else 0 */
  uint32_t forward; /* in a backward call 1 + the number of the forward call's stack; else 0 */
  /* Of a scope with a stack argument: that, in the capture. Of a scope with a name in its record: a
     copy of the name. */
  prof_i_text own;
  char *text; /* its frames by ';', the innermost first; malloc()ed by the first query */
  uint64_t bytes;
  bool is_given; /* another owner frees the text */
} prof_i_stack_node;

typedef struct prof_i_call_stacks {
  const prof_trace *trace;
  /* by site, and whether it has a frame in texts (call_stacks.c); NULL: the trace has no
     functions */
  uint8_t *is_function;
  prof_i_stack_node *items; /* the first: no function is open */
  uint32_t count, room;
  uint32_t *table;     /* of indexes in items, by a hash of outer and site; 0: free */
  uint32_t table_room; /* a power of two */
  uint32_t frames;     /* of a text at most */
  uint32_t own_frames; /* of a stack argument; 0: all */
  uint64_t *ends_ns;   /* ends of function tracing while some were open; by time */
  uint32_t end_count;
  char *buffer;              /* where a text is made */
  uint32_t query_number;     /* of the last query for a text */
  bool is_of_table;          /* frames of autograd are left out */
  bool has_scopes;           /* scopes are frames, too */
  prof_event named;          /* scratch: a scope with a name in its record */
  prof_i_backward *backward; /* of a table; NULL: there are no backward calls */
} prof_i_call_stacks;

/* frames 0: PROF_I_STACK_FRAMES_MAX. with_scopes: all scopes are frames, by their names; otherwise
   only traced functions. False: no memory. */
bool prof_i_call_stacks_init(prof_i_call_stacks *call_stacks, const prof_trace *trace,
                             uint32_t frames, bool with_scopes);
void prof_i_call_stacks_fini(prof_i_call_stacks *call_stacks);

/* Makes room for numbers, if the capture has no functions and init made none. False: no memory. */
bool prof_i_call_stacks_make_room(prof_i_call_stacks *call_stacks);

static inline bool prof_i_call_stacks_has_any(const prof_i_call_stacks *call_stacks) {
  return call_stacks->table != NULL;
}
static inline bool prof_i_call_stacks_is_function(const prof_i_call_stacks *call_stacks,
                                                  uint32_t site) {
  return call_stacks->is_function && call_stacks->is_function[site];
}

/* The number of the stack around the span that the walker has just emitted; 0: it has none. False:
   no memory. */
bool prof_i_call_stacks_of_span(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                const prof_i_span *span, uint32_t *number_out);

/* The same of a pending span of lane 0. around: the entry below it. */
bool prof_i_call_stacks_of_pending(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                   prof_i_pending_span *around, uint64_t start_ns,
                                   uint32_t *number_out);

/* The number of a scope that is not a function, inside of `around`. It differs from `around` if the
   scope is a backward call. False: no memory. */
bool prof_i_call_stacks_of_scope(prof_i_call_stacks *call_stacks, const prof_i_span *span,
                                 uint32_t around, uint32_t *number_out);
static inline bool prof_i_call_stacks_is_backward(const prof_i_call_stacks *call_stacks,
                                                  uint32_t number) {
  return call_stacks->items[number].forward != 0;
}

/* The number of a stack argument, one for all equal ones. Its text is without the frames that a
   table leaves out. False: no memory. */
bool prof_i_call_stacks_of_text(prof_i_call_stacks *call_stacks, prof_i_text stack,
                                uint32_t *number_out);

/* The number of the innermost span of lane 0 that began at this time, in ticks and in ns, or
   before. For spans of side lanes. 0: none, or no memory. */
uint32_t prof_i_call_stacks_enclosing(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                      uint64_t start, uint64_t start_ns);

/* Valid until fini. "" for 0. is_of_function: the functions around it, also in a backward call.
   False: no memory. */
bool prof_i_call_stacks_text(prof_i_call_stacks *call_stacks, uint32_t number, bool is_of_function,
                             prof_i_text *text_out);

/* Hands over the text of the last query, so that it stays valid after fini. The caller that gets
   *is_owner_out frees it. False: it is another text. */
bool prof_i_call_stacks_give_text(prof_i_call_stacks *call_stacks, const char *text,
                                  bool *is_owner_out);

/* The stack argument of a scope, complete; "" if it has none. */
prof_i_text prof_i_scope_own_stack(const prof_event *scope);

/* Whether it is a traced function, by its category; a function of C. */
bool prof_i_is_function_category(prof_i_text category);
bool prof_i_is_function_site(const prof_i_site_info *site);
bool prof_i_is_c_function_site(const prof_i_site_info *site);

/* Whether the compiler or the interpreter gave the name (PROF_FUNCTION(), traced functions). Other
   functions may have the same name, e.g. lambdas. */
bool prof_i_is_named_by_function(const prof_i_site_info *site);

/* The last part of "Class.method" or "outer.<locals>.inner": co_name of the code. */
prof_i_text prof_i_unqualified_name(prof_i_text qualified);

#endif
