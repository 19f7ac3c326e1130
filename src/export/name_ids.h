/* Numbers names for a database, from 1 on: equal names get one number. The texts must stay valid
   as long as the table. One thread at a time. Called by sqlite.c and rpd.c. */
#ifndef PROF_EXPORT_NAME_IDS_H
#define PROF_EXPORT_NAME_IDS_H

#include <stdbool.h>
#include <stdint.h>

#include "../reader/internal.h"

typedef struct prof_i_name {
  prof_i_text name, category;
  uint32_t site;
} prof_i_name;

typedef struct prof_i_name_ids {
  prof_i_name *names; /* by number less 1 */
  uint32_t *slots;    /* numbers by hash; 0: free */
  uint32_t count, name_room;
  uint32_t slot_count; /* a power of 2 */
} prof_i_name_ids;

/* The number of that name. *is_new_out: it had none before. 0: no memory. */
uint32_t prof_i_name_id(prof_i_name_ids *ids, const prof_i_name *name, bool *is_new_out);

void prof_i_name_ids_fini(prof_i_name_ids *ids);

#endif
