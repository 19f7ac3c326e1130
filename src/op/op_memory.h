/* What a vendor's library hands out of a device's memory while an operator runs, by what its
   back end records (PROF_BACKEND_MEMORY), without a recording of prof's: the back end is started
   for that alone, by the thread that measures, and stopped again. It says neither which thread
   asked for a piece nor on which stream: all that the process was given of that device counts.
   See op.h. */
#ifndef PROF_OP_OP_MEMORY_H
#define PROF_OP_OP_MEMORY_H

#include "../device/registry.h"

typedef struct prof_i_op_memory prof_i_op_memory;

/* From here on. PROF_E_UNSUPPORTED (no back end tells), PROF_E_BUSY (it is recording, another
   measurement is at it, or another tool has what it takes), PROF_E_PERMISSION, PROF_E_NO_MEMORY:
   with words. */
int prof_i_op_memory_begin(prof_device device, prof_i_op_memory **memory_out);

/* Until here: the most that was held at once of what was handed out since. The memory is gone,
   whatever is returned. PROF_E_UNSUPPORTED: not all was told; PROF_E_NO_MEMORY. */
int prof_i_op_memory_end(prof_i_op_memory *memory, uint64_t *peak_bytes_out);

#endif
