/* See snapshot_pin.h. A pin sees an interval of chunk numbers, which rise. It begins where the
   clears before it ended, and ends at the newest chunk when it settled. So a reader that stays for
   ever keeps what it reads, and nothing later. A clear takes time, and a reader that begins
   meanwhile may see any of its chunks. So only finished clears count as earlier. */
#include "snapshot_pin.h"

#include <string.h>

#include "../../base/fault.h"
#include "arena.h"

enum {
  /* of different clears: if all are taken, a reader joins the last, which then keeps more than it
     must */
  ENTRIES = 64,
  ENTRY_BITS = 8
};

typedef struct pin_entry {
  uint64_t beginning; /* leases that have not settled: they see chunks of any number */
  uint64_t count;     /* leases that have; both 0: free */
  uint64_t clear;     /* the last one that had finished before they began */
  uint64_t newest_chunk;
} pin_entry;

/* Control lock. */
static struct {
  uint64_t arena;    /* its number: all else is of that one */
  uint64_t clear;    /* the last one that began */
  uint64_t finished; /* up to this one all have finished */
  uint64_t clearing; /* how many have not */
  pin_entry entries[ENTRIES];
  pin_entry children; /* of all forks together: never ends */
} pin_table;

static void follow_arena(void) {
  if (pin_table.arena == prof_i_the_arena.number) return;
  memset(&pin_table, 0, sizeof pin_table);
  pin_table.arena = prof_i_the_arena.number;
}

static bool entry_is_free(const pin_entry *at) { return !at->count && !at->beginning; }

static pin_entry *entry_to_share(void) {
  pin_entry *unused = NULL, *latest = NULL;
  for (int i = 0; i < ENTRIES; i++) {
    pin_entry *const at = &pin_table.entries[i];
    if (entry_is_free(at)) {
      if (!unused) unused = at;
      continue;
    }
    if (at->clear == pin_table.finished) return at;
    if (!latest || at->clear > latest->clear) latest = at;
  }
  if (!unused) return latest;
  *unused = (pin_entry){.clear = pin_table.finished};
  return unused;
}

/* NULL: it is of another arena. */
static pin_entry *entry_of(uint64_t snapshot_pin) {
  follow_arena();
  const uint64_t i = snapshot_pin & ((1u << ENTRY_BITS) - 1);
  return snapshot_pin >> ENTRY_BITS == pin_table.arena && i < ENTRIES ? &pin_table.entries[i]
                                                                      : NULL;
}

uint64_t prof_i_snapshot_pin_arena(uint64_t snapshot_pin) { return snapshot_pin >> ENTRY_BITS; }

uint64_t prof_i_snapshot_pin_begin(void) {
  follow_arena();
  pin_entry *const at = entry_to_share();
  at->beginning++;
  return pin_table.arena << ENTRY_BITS | (uint64_t)(at - pin_table.entries);
}

void prof_i_snapshot_pin_settle(uint64_t snapshot_pin, uint64_t newest_chunk) {
  pin_entry *const at = entry_of(snapshot_pin);
  if (!at || !at->beginning) return;
  at->beginning--;
  at->count++;
  at->newest_chunk = newest_chunk; /* no less than it was: numbers rise */
}

bool prof_i_snapshot_pin_end(uint64_t snapshot_pin, bool has_settled) {
  pin_entry *const at = entry_of(snapshot_pin);
  if (!at) return false;
  uint64_t *const count = has_settled ? &at->count : &at->beginning;
  if (!*count) return false;
  --*count;
  return entry_is_free(at);
}

uint64_t prof_i_snapshot_pin_begin_clear(void) {
  follow_arena();
  pin_table.clearing++;
  return ++pin_table.clear;
}

void prof_i_snapshot_pin_end_clear(uint64_t arena) {
  follow_arena();
  if (arena != pin_table.arena || !pin_table.clearing) return;
  if (--pin_table.clearing == 0) pin_table.finished = pin_table.clear;
}

uint64_t prof_i_snapshot_pin_clear_count(void) {
  follow_arena();
  return pin_table.clear;
}

static bool entry_sees(const pin_entry *at, uint64_t chunk, uint64_t clear) {
  return at->clear < clear && (at->beginning || (at->count && chunk <= at->newest_chunk));
}

bool prof_i_snapshot_pin_sees(uint64_t chunk, uint64_t clear) {
  if (PROF_I_FAULT(NOBODY_READS)) return false;
  for (int i = 0; i < ENTRIES; i++)
    if (entry_sees(&pin_table.entries[i], chunk, clear)) return true;
  return entry_sees(&pin_table.children, chunk, clear);
}

void prof_i_snapshot_pin_fork(void) {
  follow_arena();
  pin_entry *const all = &pin_table.children;
  for (int i = 0; i < ENTRIES; i++) {
    const pin_entry *const at = &pin_table.entries[i];
    if (!at->count) continue;
    if (!all->count || at->clear < all->clear) all->clear = at->clear;
    if (at->newest_chunk > all->newest_chunk) all->newest_chunk = at->newest_chunk;
    all->count++;
  }
}
