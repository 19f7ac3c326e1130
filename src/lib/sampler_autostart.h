/* PROF_SAMPLE and its kin of the environment. */
#ifndef PROF_LIB_SAMPLER_AUTOSTART_H
#define PROF_LIB_SAMPLER_AUTOSTART_H

/* Starts the sampler if it is asked for; what is wrong is said, and the program runs on without it.
   When recording has begun. */
void prof_i_sampler_start_as_set(void);

#endif
