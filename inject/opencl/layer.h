/* The layer's two tables: what it hands to the loader, and what the loader handed to it. */
#ifndef PROF_INJECT_OPENCL_LAYER_H
#define PROF_INJECT_OPENCL_LAYER_H

#include "functions.h"

/* The next layer's, or the loader's own; by places. Not written any more once the program's first
   call returns. */
extern void *const *prof_i_layer_next_table;

/* Adds the back end when the program has created its first queue, so its devices exist. Not sooner:
   a driver may crash if another thread queries devices while it creates them (PoCL 3.1 does). Any
   thread; cheap after the first time. */
void prof_i_layer_add_backend(void);

/* hooks.c: puts its functions into the table, where the next layer has some. */
void prof_i_layer_hook(void **table, uint32_t places);

#endif
