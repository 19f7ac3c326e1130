/* An event as words, for those that wait until all have come: deferred.c. */
#ifndef PROF_IMPORT_RAW_H
#define PROF_IMPORT_RAW_H

#include "event.h"
#include "spool.h"

/* Puts the event behind what the spool has. Texts longer than a record has room for are cut. */
void import_spooled_event_put(import_spool *spool, const import_event *event);

/* Its members alone. The event's texts stand where the words do. */
void import_spooled_event_members(uint64_t *words, import_event *event_out);

/* All of it. */
void import_spooled_event_read(uint64_t *words, import_event *event_out);

#endif
