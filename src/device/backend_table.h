/* A vendor's table as it came: of whatever size, and perhaps with holes. From here on all of
   src/device sees a whole one. */
#ifndef PROF_DEVICE_BACKEND_TABLE_H
#define PROF_DEVICE_BACKEND_TABLE_H

#include <prof/device.h>

/* The table, members beyond its size NULL. PROF_E_INVALID, PROF_E_VERSION, with the reason: what:
   whose it is, for that text. *to is then all 0, but for a name that could be read. */
int prof_i_backend_table_copy(prof_backend *to, const prof_backend *from, const char *what);

/* PROF_CAN_* that it has functions for. */
uint32_t prof_i_backend_table_abilities(const prof_backend *table);

#endif
