/* PROF_SAMPLE and its kin of the environment. */
#ifndef PROF_LIB_SAMPLE_H
#define PROF_LIB_SAMPLE_H

/* Starts the sampler if it is asked for; what is wrong is said, and the program runs on without it.
   When recording has begun. */
void prof_i_sample_as_told(void);

#endif
