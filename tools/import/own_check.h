/* Counts what is missing in a database that prof wrote: rows that refer to missing rows, and rows
   that were deleted. Called by own_database.c. */
#ifndef PROF_IMPORT_OWN_CHECK_H
#define PROF_IMPORT_OWN_CHECK_H

#include "database_reader.h"

/* The queries by which prof's own tables are read. */
typedef enum import_own_part {
  IMPORT_OWN_HEAD,
  IMPORT_OWN_DEVICES,
  IMPORT_OWN_SCOPES,
  IMPORT_OWN_KERNELS,
  IMPORT_OWN_STEPS,
  IMPORT_OWN_INSTANTS,
  IMPORT_OWN_COUNTERS,
  IMPORT_OWN_MEMORY,
  IMPORT_OWN_ARROWS,
  IMPORT_OWN_LAUNCHES,
  IMPORT_OWN_TAIL,
  IMPORT_OWN_PARTS
} import_own_part;

/* The queries by which an RPD is read. */
typedef enum import_own_rpd_part {
  IMPORT_OWN_RPD_HEAD,
  IMPORT_OWN_RPD_CALLS,
  IMPORT_OWN_RPD_WORK,
  IMPORT_OWN_RPD_COUNTERS,
  IMPORT_OWN_RPD_LAUNCHES,
  IMPORT_OWN_RPD_TAIL,
  IMPORT_OWN_RPD_PARTS
} import_own_rpd_part;

/* Counts the rows that the query of this part did not give, by reason. read: how many it gave. */
void import_own_check_part(const import_reader *reader, bool is_rpd, int part, uint64_t read);
/* Counts rows that are read in another form, and rows that were deleted. */
void import_own_check_all(const import_reader *reader, bool is_rpd);

#endif
