/* Call sites and argument schemas: each registered once by content, so that a library that comes back by dlopen finds its old
   number, and copied into every arena. Lock-free and without malloc: the first run of a site may be in a signal handler. */
#ifndef PROF_CORE_SITE_H
#define PROF_CORE_SITE_H

#include <prof/scope.h>
#include <stdbool.h>

#include "layout.h"

/* The call site's number for this name and category (NULL: given at run time); 0 when the table is full. Writes it into the arena
   at its first appearance. Any thread. Signal-safe. */
uint32_t prof_i_site_number(const prof_site *site, const char *name, const char *category);

/* The schema of the first `count` of these arguments: kind, format, keys and types. `site` remembers the first one, so that the next
   call is a compare of pointers. 0: none left. */
uint32_t prof_i_schema_number(uint32_t site, const prof_args *args, uint32_t count);

uint32_t prof_i_site_count(void);

/* Copies all sites and schemas known into a new arena. Control lock held. */
void prof_i_site_copy_all(void);

/* Sites answer to this epoch; raised when every site must ask again. Starts at 1. */
uint32_t prof_i_site_epoch(void);

#endif
