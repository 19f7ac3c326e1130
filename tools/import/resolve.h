/* Once all scopes have come: whose launch is what, on which devices, and at which ticks of the
   capture. */
#ifndef PROF_IMPORT_SETTLE_H
#define PROF_IMPORT_SETTLE_H

#include "state.h"

/* What a device ran gets its launch, of the process whose device it is. Before arrows. */
void import_resolve_launches(import_state *state);

/* Streams get their devices, and times become ticks; what is outside of the times that are taken
   goes. Behind arrows. */
void import_resolve_times(import_state *state);

#endif
