/* What the environment's start needs of the sampler beyond <prof/sampler.h>. */
#ifndef PROF_SAMPLER_SAMPLER_H
#define PROF_SAMPLER_SAMPLER_H

#include <prof/sampler.h>

/* As prof_sampler_start(), but does not wait for back ends, whose libraries cannot be opened by
   another thread while this one is in a constructor of one: what they have nothing of, its thread
   says to stderr. */
int prof_i_sampler_begin(const prof_sampler_options *options);

#endif
