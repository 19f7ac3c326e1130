/* A vendor's records, to the capture: a kernel, a copy or a fill is a scope of its stream; a call
   of the vendor's library is one of a line beside its thread, which readers put among that thread's
   scopes. The collector alone. */
#ifndef PROF_DEVICE_RECORDS_H
#define PROF_DEVICE_RECORDS_H

#include "registry.h"

/* Between these the back end emits what it has. */
void prof_i_records_begin(prof_i_backend *backend);
void prof_i_records_end(void);

/* Writes records of the back end whose drain is under way. False: there is no drain. What is no
   record is counted as lost. */
bool prof_i_records_write(const void *records, size_t bytes);

/* Recording ends: their lines do, too. */
void prof_i_records_end_threads(void);

/* In a forked child. */
void prof_i_records_forget(void);

#endif
