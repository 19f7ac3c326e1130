/* Which devices a sampler can read, in words. In a process whose vendors' libraries are open. */
#ifndef PROF_TOOLS_RUN_SAMPLER_DEVICES_H
#define PROF_TOOLS_RUN_SAMPLER_DEVICES_H

#include "sampling.h"

/* Nothing can be read: why not, of each back end with meters what prof doctor says. */
const char *run_devices_why_not(const run_sampling *sampling);

/* By the heading of a file that the sampler has begun: is each named device there? NULL: yes; else
   what is wrong. With DUAL-GCD there must be two devices. */
const char *run_devices_check(const run_sampling *sampling, const char *csv_path);

#endif
