/* Who this process is: name, rank, world size, tracks. Kept here, and copied into every capture. */
#ifndef PROF_CORE_SESSION_IDENTITY_H
#define PROF_CORE_SESSION_IDENTITY_H

/* Fills the header's identity and writes the track names, in a new arena. A child has its parent's
   limits of memory and processors. Control lock held. Signal-safe for a child. */
void prof_i_identity_begin(void);

/* The rank in force; -1 when none is known. */
int prof_i_identity_rank(void);

#endif
