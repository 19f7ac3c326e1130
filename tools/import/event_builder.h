/* Builds events from a database's rows, in the form of a JSON trace, so that one code takes both.
   Texts of members and arguments are copied. */
#ifndef PROF_IMPORT_BUILD_H
#define PROF_IMPORT_BUILD_H

#include "database.h"
#include "event.h"

/* Begins a new event. It uses the buffer of the event before. */
void import_event_begin(import_event *event, const char *phase);
void import_event_fini(import_event *event);

void import_event_set_member(import_event *event, import_member member, import_text text);
void import_event_set_number(import_event *event, import_member member, int64_t number);

/* Sets the member from a column of integers. Any other value makes the event odd. */
void import_event_set_column(import_event *event, import_member member, const import_rows *rows,
                             int column);

/* Sets ts and dur from columns in ns. end < 0: no duration. */
void import_event_set_times(import_event *event, const import_rows *rows, int start, int end);

void import_event_add_text(import_event *event, const char *key, import_text text);
void import_event_add_i64(import_event *event, const char *key, int64_t number);
/* Writes a decimal point, so that all values of a counter have one type. */
void import_event_add_f64(import_event *event, import_text key, import_text digits);
/* Adds the column's value, an integer or a text. Adds nothing for NULL. */
void import_event_add_column(import_event *event, const char *key, const import_rows *rows,
                             int column);
/* Adds nothing for NULL and 0. */
void import_event_add_nonzero(import_event *event, const char *key, const import_rows *rows,
                              int column);
/* Adds three columns as [x,y,z]. Adds nothing if the first is NULL. */
void import_event_add_dims(import_event *event, const char *key, const import_rows *rows,
                           int column);
void import_event_add_arg(import_event *event, import_text key, import_type type, import_text text);

#endif
