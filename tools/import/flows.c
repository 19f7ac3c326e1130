/* See flows.h. */
#include "flows.h"

#include <stdlib.h>

#include "import.h"

/* 53 bits: what a JSON number is exact to. */
static uint64_t arrow_of(uint64_t id, uint64_t step) { return step == 0 ? id : (id * 0x9e3779b97f4a7c15u + step * 0xff51afd7ed558ccdu) >> 11; }

static import_chain *find(const import_flows *flows, uint64_t id) {
  import_chain *chain;
  HASH_FIND(hh, flows->chains, &id, sizeof id, chain);
  return chain;
}

uint64_t import_flows_id(const import_flows *flows, uint64_t id) {
  const import_chain *const chain = find(flows, id);
  return arrow_of(id, chain ? chain->step_count : 0);
}

uint64_t import_flows_step(import_flows *flows, uint64_t id) {
  import_chain *chain = find(flows, id);
  if (!chain) {
    chain = import_make(sizeof *chain);
    chain->id = id;
    HASH_ADD(hh, flows->chains, id, sizeof chain->id, chain);
  }
  return arrow_of(id, ++chain->step_count);
}

void import_flows_forget(import_flows *flows, uint64_t id) {
  import_chain *const chain = find(flows, id);
  if (!chain) return;
  HASH_DEL(flows->chains, chain);
  free(chain);
}

void import_flows_fini(import_flows *flows) {
  import_chain *chain = flows->chains;
  HASH_CLEAR(hh, flows->chains);
  for (import_chain *next; chain; chain = next) {
    next = chain->hh.next;
    free(chain);
  }
}
