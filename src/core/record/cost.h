/* What recording costs on this machine, measured. */
#ifndef PROF_CORE_RECORD_COST_H
#define PROF_CORE_RECORD_COST_H

#include <stdint.h>

typedef struct prof_i_cost {
  uint64_t scope_ps; /* one plain scope, begin and end */
  /* the begin of one whose site is muted, or for which there is no room any more */
  uint64_t left_out_ps;
} prof_i_cost;

/* Runs some thousand empty scopes in a prof_i_thread of its own: nothing is recorded. Of the clock
   in use. Takes some 30 us; with a slow clock, more. Control lock held. */
prof_i_cost prof_i_cost_measure(void);

/* The cost at this process's first start. The first call measures it. Control lock held. */
prof_i_cost prof_i_cost_at_start(void);

#endif
