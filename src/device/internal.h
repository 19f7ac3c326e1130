/* Functions of this folder that need no header of their own, grouped by the file that defines
   them. */
#ifndef PROF_DEVICE_INTERNAL_H
#define PROF_DEVICE_INTERNAL_H

#include <prof/device.h>
#include <stdbool.h>

/* ---- backend_table.c: a vendor's table has any size, and may have holes ---- */

/* Copies the table; members beyond its size become NULL. PROF_E_INVALID, PROF_E_VERSION with a
   reason; what: whose table it is, for that reason. *to is then all 0. */
int prof_i_backend_table_copy(prof_backend *to, const prof_backend *from, const char *what);

/* PROF_CAN_* that the table has functions for. */
uint32_t prof_i_backend_table_abilities(const prof_backend *table);

/* ---- plugin.c: back ends in shared libraries ---- */

/* True while this thread runs a plug-in's own code. */
bool prof_i_plugins_is_loading(void);

/* Loads and lists what these paths name: see prof_backend_load(). */
int prof_i_plugins_load(const char *paths);

/* ---- gpu_scope.c ---- */

/* In a forked child the threads' pairs are the parent's. */
void prof_i_gpu_scopes_forget(void);

/* ---- collector.c ---- */

/* When the library is loaded. From then on the core reports starts and stops to it. */
void prof_i_collector_prepare(void);

#endif
