/* Live pieces of memory by address: no two overlap. A treap in one array, whose priorities are made
   of the addresses, so that it is the same tree whatever the order, and no chance is needed.
   Caller's memory, one thread at a time; insertion, removal and search take some 2 ln(n) steps.
   Knows nothing of pools. */
#ifndef PROF_FORMAT_ADDR_MAP_H
#define PROF_FORMAT_ADDR_MAP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct prof_i_addr_range {
  uint64_t address;
  uint64_t bytes; /* not 0; 0: a free node */
  uint64_t value; /* the owner's */
  /* places in the array; 0: none. Of a free node, left is the next free one */
  uint32_t left, right;
} prof_i_addr_range;

typedef struct prof_i_addr_map {
  prof_i_addr_range *nodes; /* place 0 is not used */
  uint32_t room;            /* places in nodes */
  uint32_t used;            /* places that were ever taken, place 0 with them */
  uint32_t root, free;
  uint32_t count; /* live */
} prof_i_addr_map;

/* Is there a place for one more? If not, the caller makes nodes larger: place by place, what is
   behind `used` may hold anything. */
static inline bool prof_i_addr_map_has_room(const prof_i_addr_map *addr_map) {
  return addr_map->free || (addr_map->used ? addr_map->used : 1) < addr_map->room;
}

/* Places, or 0. at: begins at the address. overlap: the first one that shares a byte with these.
   after: the first that begins behind the address. */
uint32_t prof_i_addr_map_find(const prof_i_addr_map *addr_map, uint64_t address);
uint32_t prof_i_addr_map_find_overlap(const prof_i_addr_map *addr_map, uint64_t address,
                                      uint64_t bytes);
uint32_t prof_i_addr_map_find_after(const prof_i_addr_map *addr_map, uint64_t address);

/* Of what overlaps nothing, with room for it. Returns its place, which holds until it is taken
   out. */
uint32_t prof_i_addr_map_insert(prof_i_addr_map *addr_map, uint64_t address, uint64_t bytes,
                                uint64_t value);
/* The piece that begins there, which is there. */
void prof_i_addr_map_remove(prof_i_addr_map *addr_map, uint64_t address);

#endif
