/* How large a thread's next chunk may be, by how many threads share what is free. */
#ifndef PROF_CORE_BUFFER_CHUNK_SIZE_H
#define PROF_CORE_BUFFER_CHUNK_SIZE_H

#include <stdint.h>

/* Between the arena's smallest and its largest chunk. Any thread. Signal-safe. */
uint64_t prof_i_chunk_size_max(void);

/* Another arena is in force. Control lock held, level 0. */
void prof_i_chunk_size_begin(void);

#endif
