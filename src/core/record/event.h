/* What the library records itself beside scopes. The face's own functions stand in
   <prof/scope.h>. */
#ifndef PROF_CORE_RECORD_EVENT_H
#define PROF_CORE_RECORD_EVENT_H

#include <prof/scope.h>

/* prof_i_counter_1() of something that a device has. */
void prof_i_counter_of(prof_site *site, const char *name, double value, prof_device device);

#endif
