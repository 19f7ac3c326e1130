/* What stands on a row of a device's process: its work, named stretches beside it, or the host's
   scopes. */
#ifndef PROF_IMPORT_ROWS_H
#define PROF_IMPORT_ROWS_H

#include "state.h"

typedef enum import_row_kind { IMPORT_ROW_HOST, IMPORT_ROW_SIDE, IMPORT_ROW_WORK } import_row_kind;

/* category: of the event that stands there; empty: it has none. Once all names have come. */
import_row_kind import_rows_kind(const import_state *state, const import_process *process,
                                 import_thread_id row, import_text category);

/* "Stream 7", "Stream #14(Compute)": 7, 14. is_whole_out: no more stands there. */
bool import_rows_read_stream(import_text name, int64_t *number_out, bool *is_whole_out);

/* The number of the stream that the row is. One that has a text or a summary for it gets one. */
int64_t import_rows_stream(import_state *state, const import_process *process,
                           import_thread_id row);

#endif
