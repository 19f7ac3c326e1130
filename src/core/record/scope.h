/* What cost.c and cost_sample.c need of the hot path. */
#ifndef PROF_CORE_RECORD_SCOPE_H
#define PROF_CORE_RECORD_SCOPE_H

#include <prof/scope.h>

#include "../buffer/thread.h"

/* Opens and closes so many empty scopes as if on this thread, whose chunk has room for them all. */
void prof_i_scope_run_empty(prof_i_thread *thread, prof_site *site, int count);
/* A scope that no reader sees, as one of the host's goes by: it goes where the host's goes, by code
   and data of its own (cost_sample.c), none of which shares a page with another or with the
   recorder's. */
typedef struct prof_i_twin_data prof_i_twin_data;
typedef struct prof_i_twin_calls {
  uint64_t (*begin)(const prof_i_twin_data *own, prof_site *site);
  uint64_t (*begin_details)(const prof_i_twin_data *own, prof_site *site,
                            const prof_details *details);
  void (*end)(const prof_i_twin_data *own, uint64_t start);
} prof_i_twin_calls;
struct prof_i_twin_data { /* as tables of addresses are */
  prof_i_thread **thread; /* as what is the thread's own */
  prof_i_twin_calls calls;
};
typedef struct prof_i_twin {
  const prof_i_twin_calls *calls;
  const prof_i_twin_data *own;
} prof_i_twin;
void prof_i_scope_twin_link(prof_i_twin_calls *stubs, prof_i_twin_data *own);
/* Its thread and site are ready. details: what the host's scope has beyond a literal name, or NULL;
   what is long or on a device begins as a plain scope. */
uint64_t prof_i_scope_twin_begin(const prof_i_twin *twin, prof_site *site,
                                 const prof_details *details);
void prof_i_scope_twin_end(const prof_i_twin *twin, uint64_t start);

/* Begins, as prof_i_scope_run_empty(), whose site is muted. */
void prof_i_scope_run_left_out(prof_i_thread *thread, prof_site *site, int count);

#endif
