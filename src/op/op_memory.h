/* Device memory that a vendor's library hands out while an operator runs. The back end records it
   (PROF_BACKEND_MEMORY) without a recording of prof's: the measuring thread starts it for that
   alone, and stops it. The vendor says neither which thread nor which stream requested a block. So
   everything counts that the process gets of that device. See op.h. */
#ifndef PROF_OP_OP_MEMORY_H
#define PROF_OP_OP_MEMORY_H

#include "../device/registry.h"

typedef struct prof_i_op_memory prof_i_op_memory;

/* Begins. With a text: PROF_E_UNSUPPORTED (no back end reports), PROF_E_PERMISSION,
   PROF_E_NO_MEMORY. PROF_E_BUSY: it records, another measurement uses it, or another tool does. */
int prof_i_op_memory_begin(prof_device device, prof_i_op_memory **memory_out);

/* Ends, and returns the peak of what was handed out since. Frees the memory in any case.
   PROF_E_UNSUPPORTED: reports were missed; PROF_E_NO_MEMORY. */
int prof_i_op_memory_end(prof_i_op_memory *memory, uint64_t *peak_bytes_out);

#endif
