/* Where the memory went, by the capture: the peaks by both ways in beside the pool's own
   account, what was live at the peak, what fragmentation cost. By prof's reading calls alone.
   SPDX-License-Identifier: MIT */
#ifndef MINILM_MEMORY_TABLE_H
#define MINILM_MEMORY_TABLE_H

#include <prof/memory.h>
#include <prof/trace.h>

#include "failure.h"
#include "pool.h"

/* To stdout. own: the pool's account of the same time. Refused: the trace holds no memory of a pool
   and a query, or cannot be read. */
int memory_table_print(const prof_trace *trace, const pool_statistics *own, failure *why);

#endif
