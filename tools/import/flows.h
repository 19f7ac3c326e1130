/* Flows with steps (ph t): each step begins another arrow of the chain, and no two arrows have one id. */
#ifndef PROF_IMPORT_FLOWS_H
#define PROF_IMPORT_FLOWS_H

#include <stdint.h>
#include <uthash.h>

/* Of an id that has had steps, how many. */
typedef struct import_chain {
  uint64_t id, step_count;
  UT_hash_handle hh;
} import_chain;

typedef struct import_flows {
  import_chain *chains;
} import_flows;

/* The id of the arrow that the chain is at. */
uint64_t import_flows_id(const import_flows *flows, uint64_t id);
/* The id of the next one. */
uint64_t import_flows_step(import_flows *flows, uint64_t id);
/* The chain begins anew. */
void import_flows_forget(import_flows *flows, uint64_t id);

void import_flows_fini(import_flows *flows);

#endif
