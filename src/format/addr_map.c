/* See addr_map.h. */
#include "addr_map.h"

static uint64_t node_priority(uint64_t address) {
  uint64_t x = address * 0x9e3779b97f4a7c15ull;
  x = (x ^ x >> 32) * 0xd6e8feb86659fd93ull;
  return x ^ x >> 29;
}

uint32_t prof_i_addr_map_find(const prof_i_addr_map *addr_map, uint64_t address) {
  uint32_t at = addr_map->root;
  while (at && addr_map->nodes[at].address != address)
    at = address < addr_map->nodes[at].address ? addr_map->nodes[at].left
                                               : addr_map->nodes[at].right;
  return at;
}

uint32_t prof_i_addr_map_find_after(const prof_i_addr_map *addr_map, uint64_t address) {
  uint32_t found = 0;
  for (uint32_t at = addr_map->root; at;) {
    const prof_i_addr_range *const node = &addr_map->nodes[at];
    if (node->address > address) found = at;
    at = node->address > address ? node->left : node->right;
  }
  return found;
}

/* The last that begins at the address or before. */
static uint32_t node_before(const prof_i_addr_map *addr_map, uint64_t address) {
  uint32_t found = 0;
  for (uint32_t at = addr_map->root; at;) {
    const prof_i_addr_range *const node = &addr_map->nodes[at];
    if (node->address <= address) found = at;
    at = node->address <= address ? node->right : node->left;
  }
  return found;
}

uint32_t prof_i_addr_map_find_overlap(const prof_i_addr_map *addr_map, uint64_t address,
                                      uint64_t bytes) {
  const uint32_t low = node_before(addr_map, address);
  if (low && address - addr_map->nodes[low].address < addr_map->nodes[low].bytes) return low;
  const uint32_t high = prof_i_addr_map_find_after(addr_map, address);
  return high && addr_map->nodes[high].address - address < bytes ? high : 0;
}

static uint32_t node_allocate(prof_i_addr_map *addr_map) {
  const uint32_t place = addr_map->free;
  if (!place) {
    if (addr_map->used == 0) addr_map->used = 1;
    return addr_map->used++;
  }
  addr_map->free = addr_map->nodes[place].left;
  return place;
}

uint32_t prof_i_addr_map_insert(prof_i_addr_map *addr_map, uint64_t address, uint64_t bytes,
                                uint64_t value) {
  prof_i_addr_range *const nodes = addr_map->nodes;
  const uint32_t fresh = node_allocate(addr_map);
  const uint64_t new_priority = node_priority(address);
  uint32_t *link = &addr_map->root;
  while (*link && node_priority(nodes[*link].address) >= new_priority)
    link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;
  uint32_t below = *link;
  *link = fresh;
  nodes[fresh] = (prof_i_addr_range){.address = address, .bytes = bytes, .value = value};
  /* what stood there is cut in two at the address */
  uint32_t *lower = &nodes[fresh].left, *higher = &nodes[fresh].right;
  while (below) {
    if (nodes[below].address < address) {
      *lower = below;
      lower = &nodes[below].right;
      below = *lower;
    } else {
      *higher = below;
      higher = &nodes[below].left;
      below = *higher;
    }
  }
  *lower = *higher = 0;
  addr_map->count++;
  return fresh;
}

void prof_i_addr_map_remove(prof_i_addr_map *addr_map, uint64_t address) {
  prof_i_addr_range *const nodes = addr_map->nodes;
  uint32_t *link = &addr_map->root;
  while (nodes[*link].address != address)
    link = address < nodes[*link].address ? &nodes[*link].left : &nodes[*link].right;
  const uint32_t gone = *link;
  uint32_t left = nodes[gone].left, right = nodes[gone].right;
  while (left && right) {
    if (node_priority(nodes[left].address) >= node_priority(nodes[right].address)) {
      *link = left;
      link = &nodes[left].right;
      left = *link;
    } else {
      *link = right;
      link = &nodes[right].left;
      right = *link;
    }
  }
  *link = left ? left : right;
  nodes[gone] = (prof_i_addr_range){.left = addr_map->free};
  addr_map->free = gone;
  addr_map->count--;
}
