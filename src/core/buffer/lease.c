/* See lease.h. What a lease sees is an interval: chunks have rising numbers, so it ends at the
   newest there was when it settled; and it begins where the clears before it ended. A reader who
   stays for ever so keeps what he reads, and nothing that came after. A clear takes its time:
   who begins while it gives chunks back may see any of those, so only finished clears count as
   before. */
#include "lease.h"

#include <string.h>

#include "../../base/fault.h"
#include "arena.h"

enum {
  /* of different clears: who comes when all are taken joins the last, which then keeps more than it
     must */
  PLACES = 64,
  PLACE_BITS = 8
};

typedef struct place {
  uint64_t beginning; /* leases that have not settled: they see chunks of any number */
  uint64_t count;     /* leases that have; both 0: free */
  uint64_t clear;     /* the last one that had finished before they began */
  uint64_t newest_chunk;
} place;

/* Control lock. */
static struct {
  uint64_t arena;    /* its number: all else is of that one */
  uint64_t clear;    /* the last one that began */
  uint64_t finished; /* up to this one all have finished */
  uint64_t clearing; /* how many have not */
  place places[PLACES];
  place children; /* of all forks together: never ends */
} own;

static void look_at_arena(void) {
  if (own.arena == prof_i_the_arena.number) return;
  memset(&own, 0, sizeof own);
  own.arena = prof_i_the_arena.number;
}

static bool is_free(const place *at) { return !at->count && !at->beginning; }

static place *place_to_join(void) {
  place *unused = NULL, *latest = NULL;
  for (int i = 0; i < PLACES; i++) {
    place *const at = &own.places[i];
    if (is_free(at)) {
      if (!unused) unused = at;
      continue;
    }
    if (at->clear == own.finished) return at;
    if (!latest || at->clear > latest->clear) latest = at;
  }
  if (!unused) return latest;
  *unused = (place){.clear = own.finished};
  return unused;
}

/* NULL: it is of another arena. */
static place *place_of(uint64_t lease) {
  look_at_arena();
  const uint64_t i = lease & ((1u << PLACE_BITS) - 1);
  return lease >> PLACE_BITS == own.arena && i < PLACES ? &own.places[i] : NULL;
}

uint64_t prof_i_lease_arena(uint64_t lease) { return lease >> PLACE_BITS; }

uint64_t prof_i_lease_begin(void) {
  look_at_arena();
  place *const at = place_to_join();
  at->beginning++;
  return own.arena << PLACE_BITS | (uint64_t)(at - own.places);
}

void prof_i_lease_settle(uint64_t lease, uint64_t newest_chunk) {
  place *const at = place_of(lease);
  if (!at || !at->beginning) return;
  at->beginning--;
  at->count++;
  at->newest_chunk = newest_chunk; /* no less than it was: numbers rise */
}

bool prof_i_lease_end(uint64_t lease, bool has_settled) {
  place *const at = place_of(lease);
  if (!at) return false;
  uint64_t *const count = has_settled ? &at->count : &at->beginning;
  if (!*count) return false;
  --*count;
  return is_free(at);
}

uint64_t prof_i_lease_clear(void) {
  look_at_arena();
  own.clearing++;
  return ++own.clear;
}

void prof_i_lease_cleared(uint64_t arena) {
  look_at_arena();
  if (arena != own.arena || !own.clearing) return;
  if (--own.clearing == 0) own.finished = own.clear;
}

uint64_t prof_i_lease_clears(void) {
  look_at_arena();
  return own.clear;
}

static bool sees(const place *at, uint64_t chunk, uint64_t clear) {
  return at->clear < clear && (at->beginning || (at->count && chunk <= at->newest_chunk));
}

bool prof_i_lease_sees(uint64_t chunk, uint64_t clear) {
  if (PROF_I_FAULT(NOBODY_READS)) return false;
  for (int i = 0; i < PLACES; i++)
    if (sees(&own.places[i], chunk, clear)) return true;
  return sees(&own.children, chunk, clear);
}

void prof_i_lease_fork(void) {
  look_at_arena();
  place *const all = &own.children;
  for (int i = 0; i < PLACES; i++) {
    const place *const at = &own.places[i];
    if (!at->count) continue;
    if (!all->count || at->clear < all->clear) all->clear = at->clear;
    if (at->newest_chunk > all->newest_chunk) all->newest_chunk = at->newest_chunk;
    all->count++;
  }
}
