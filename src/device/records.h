/* Writes a vendor's records to the capture. A kernel, a copy or a fill is a scope of its stream. A
   call of the vendor's library is a scope of a virtual thread beside its own; readers put it among
   its thread's scopes. The collector alone. */
#ifndef PROF_DEVICE_RECORDS_H
#define PROF_DEVICE_RECORDS_H

#include "registry.h"

/* Between these the back end's records are written. */
void prof_i_records_begin(prof_i_backend *backend);
void prof_i_records_end(void);

/* Writes records of the back end whose drain is under way. False: there is no drain. What is no
   record is counted as lost. */
bool prof_i_records_write(const void *records, size_t bytes);

/* Recording ends, and its virtual threads with it. */
void prof_i_records_end_threads(void);

/* In a forked child. */
void prof_i_records_forget(void);

#endif
