/* Which traced functions (of the categories python_function and c_function) stand open around a
   scope: the stack of what has none of its own. A walk that looks around
   (prof_i_walker_track_parents) asks for it, span by span. Each place on the walk's stack is looked
   at once, and what stands around it has a number, one for each way to get there; so a span costs
   the same at any depth, and the text of a number is made once. Of a table (forward_stacks.h) a
   backward call is such a place, too: what is inside of it has the stack of its forward call.
   Called by aggregate.c, forward_stacks.c and src/export. */
#ifndef PROF_ANALYSIS_CALLERS_H
#define PROF_ANALYSIS_CALLERS_H

#include "../reader/walker.h"
#include "torch.h"

/* Of a text of functions: a recursion a thousand deep would otherwise take a thousand texts of a
   thousand frames, and a frame may be of 4,608 bytes. Frames are whole. */
enum { PROF_I_STACK_FRAMES_MAX = 256, PROF_I_STACK_BYTES_MAX = 65536 };

/* One way to get somewhere: the innermost function, backward call or autograd's range, and the way
   to it. */
typedef struct prof_i_stack_node {
  uint32_t outer, site;
  /* the nearest outer one that has a frame in texts; 0: none. What is asked for leaves it out */
  uint32_t up;
  uint32_t range;   /* the site of autograd's range, where that is the innermost scope; else 0 */
  uint32_t forward; /* in a backward call 1 + the number of what its forward call has; else 0 */
  /* of a scope that says its stack itself: that, where the capture has it. Of one whose name its
     record has: a copy of that */
  prof_i_text own;
  char *text; /* its frames by ';', the innermost first; malloc()ed when it is asked for */
  uint64_t bytes;
  bool is_given; /* the text is another's to free */
} prof_i_stack_node;

typedef struct prof_i_call_stacks {
  const prof_trace *trace;
  /* by site, and whether it has a frame in texts (call_stacks.c); NULL: the trace has no
     functions */
  uint8_t *is_function;
  prof_i_stack_node *items; /* the first: nothing stands around it */
  uint32_t count, room;
  uint32_t *table;     /* of places in items, found by a hash of outer and site; 0: nobody's */
  uint32_t table_room; /* a power of two */
  uint32_t frames;     /* of a text at most */
  uint32_t own_frames; /* of a stack that a scope has itself; 0: all */
  uint64_t *ends_ns;   /* when a tracing of functions ended while some stood open; by time */
  uint32_t end_count;
  char *buffer;              /* where a text is made */
  uint32_t asked;            /* the number whose text was asked for last */
  bool is_of_table;          /* frames of autograd's own are left out */
  bool has_scopes;           /* scopes are frames, too */
  prof_event named;          /* of a scope with a name of its own, while that is looked at */
  prof_i_backward *backward; /* of a table; NULL: there are no backward calls */
} prof_i_call_stacks;

/* frames 0: PROF_I_STACK_FRAMES_MAX. with_scopes: all scopes are frames, by their names; else
   traced functions alone. False: no memory. */
bool prof_i_call_stacks_init(prof_i_call_stacks *call_stacks, const prof_trace *trace,
                             uint32_t frames, bool with_scopes);
void prof_i_call_stacks_fini(prof_i_call_stacks *call_stacks);

/* Room for numbers, which a capture with functions has from the first. False: no memory. */
bool prof_i_call_stacks_make_room(prof_i_call_stacks *call_stacks);

static inline bool prof_i_call_stacks_has_any(const prof_i_call_stacks *call_stacks) {
  return call_stacks->table != NULL;
}
static inline bool prof_i_call_stacks_is_function(const prof_i_call_stacks *call_stacks,
                                                  uint32_t site) {
  return call_stacks->is_function && call_stacks->is_function[site];
}

/* The number of what stands around the span that the walker has just handed out; 0: nothing. False:
   no memory. */
bool prof_i_call_stacks_of_span(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                const prof_i_span *span, uint32_t *number_out);

/* The same of what stands in lane 0 and has not been handed out: around is the place below it. */
bool prof_i_call_stacks_of_pending(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                   prof_i_pending_span *around, uint64_t start_ns,
                                   uint32_t *number_out);

/* The number of a scope that is no function, which stands there: another one where it is a backward
   call itself. False: no memory. */
bool prof_i_call_stacks_of_scope(prof_i_call_stacks *call_stacks, const prof_i_span *span,
                                 uint32_t around, uint32_t *number_out);
static inline bool prof_i_call_stacks_is_backward(const prof_i_call_stacks *call_stacks,
                                                  uint32_t number) {
  return call_stacks->items[number].forward != 0;
}

/* The number of a stack that scopes have themselves, one for all that have it; its text is without
   the frames that a table leaves out. False: no memory. */
bool prof_i_call_stacks_of_text(prof_i_call_stacks *call_stacks, prof_i_text stack,
                                uint32_t *number_out);

/* The number of what is on lane 0 of a walk and began at that time, in ticks and in ns, or before:
   it holds what overlaps the rest. 0 where there is no memory, too. */
uint32_t prof_i_call_stacks_enclosing(prof_i_call_stacks *call_stacks, prof_i_walker *walker,
                                      uint64_t start, uint64_t start_ns);

/* Valid until fini; "" of 0. Of a function the functions around it, also in a backward call. False:
   no memory. */
bool prof_i_call_stacks_text(prof_i_call_stacks *call_stacks, uint32_t number, bool is_of_function,
                             prof_i_text *text_out);

/* Is it the text that was asked for last? Then it stays valid after fini, until one frees it: who
   is told *is_owner_out. */
bool prof_i_call_stacks_give_text(prof_i_call_stacks *call_stacks, const char *text,
                                  bool *is_owner_out);

/* The stack that a scope has itself, whole; "" where it has none. */
prof_i_text prof_i_scope_own_stack(const prof_event *scope);

/* Of a traced function, by its category; one of C's. */
bool prof_i_is_function_category(prof_i_text category);
bool prof_i_is_function_site(const prof_i_site_info *site);
bool prof_i_is_c_function_site(const prof_i_site_info *site);

/* Has the compiler or the interpreter named it (PROF_FUNCTION(), traced functions)? Others may have
   that name, lambdas do. */
bool prof_i_is_named_by_function(const prof_i_site_info *site);

/* Of "Class.method" and "outer.<locals>.inner" the last: what code calls itself. */
prof_i_text prof_i_unqualified_name(prof_i_text qualified);

/* How a traced function reads in a stack, as torch.profiler writes it: "file.py(12): function",
   "<built-in function len>". Writes at most room bytes and no NUL; returns what it would need; 0:
   it is none. */
size_t prof_i_frame_text(const prof_i_site_info *site, char *to, size_t room);

#endif
