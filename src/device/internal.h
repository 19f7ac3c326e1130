/* Functions of this folder that need no header of their own, grouped by the file that defines
   them. */
#ifndef PROF_DEVICE_INTERNAL_H
#define PROF_DEVICE_INTERNAL_H

#include <prof/device.h>
#include <stdbool.h>

struct prof_i_stream;

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

/* ---- event_time.c: when an event was, in ns of its stream's clock. The collector ---- */

/* The event is past. It may be kept as the stream's zero: another event of the stream then replaces
   it. False: it has no time. */
bool prof_i_event_time_get(struct prof_i_stream *stream, void **event, uint64_t *ns_out);

/* Both are past, and the first has no time. True: they have a distance, so the zero has gone, for
   example with a context of the vendor's. The first event becomes the zero. Times from now on are
   at no known distance from earlier ones. */
bool prof_i_event_time_restart(struct prof_i_stream *stream, void **first, void *second,
                               uint64_t *first_ns_out);

/* ---- gpu_scope.c ---- */

/* In a forked child the threads' pairs are the parent's. */
void prof_i_gpu_scopes_forget(void);

/* ---- collector.c ---- */

/* When the library is loaded. From then on the core reports starts and stops to it. */
void prof_i_collector_prepare(void);

#endif
