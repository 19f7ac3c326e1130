/* Classifies a row of a device's process: the device's work, derived annotations, or the host's
   scopes. */
#ifndef PROF_IMPORT_ROWS_H
#define PROF_IMPORT_ROWS_H

#include "state.h"

typedef enum import_row_kind { IMPORT_ROW_HOST, IMPORT_ROW_SIDE, IMPORT_ROW_WORK } import_row_kind;

/* category: the event's, or empty. Call it when all names have been read. */
import_row_kind import_row_kind_of(const import_state *state, const import_process *process,
                                   import_thread_id row, import_text category);

/* "Stream 7", "Stream #14(Compute)": 7, 14. is_whole_out: nothing follows. */
bool import_row_read_stream(import_text name, int64_t *number_out, bool *is_whole_out);

/* The row's stream number. A row with a text for a number, or a summary, gets a new number. */
int64_t import_row_stream(import_state *state, const import_process *process, import_thread_id row);

#endif
