/* Which units of the arena in force have been made ready for an extent's head. A claimed unit for
   which there was no room must not be read: on a tmpfs without a free page a read is a SIGBUS.
   Readers of this process check here first. */
#ifndef PROF_CORE_BUFFER_HEAD_MAP_H
#define PROF_CORE_BUFFER_HEAD_MAP_H

#include <stdbool.h>
#include <stdint.h>

/* Before an arena of that cap and number takes the place of the one in force. Control lock held,
   the gate closed. Without memory for the map every unit counts as ready. */
void prof_i_head_map_begin(uint64_t arena, uint64_t cap_bytes);

/* The unit at this offset of the arena in force has its memory. Any thread. Signal-safe. */
void prof_i_head_map_add(uint64_t offset);

/* May a reader of that arena look at the unit? True also where nobody knows: another arena is in
   force by now. Any thread. Signal-safe. */
bool prof_i_head_map_may_read(uint64_t arena, uint64_t offset);

#endif
