/* Describes the devices that a sampler can read. Called in a process with open vendors'
   libraries. */
#ifndef PROF_TOOLS_RUN_SAMPLER_DEVICES_H
#define PROF_TOOLS_RUN_SAMPLER_DEVICES_H

#include "sampling.h"

/* Why nothing can be read: for each back end with meters the text of prof doctor. */
const char *run_devices_refusal(const run_sampling *sampling);

/* Checks by the heading of the sampler's file that each named device exists. Returns NULL or what
   is wrong. DUAL-GCD needs two devices. */
const char *run_devices_check(const run_sampling *sampling, const char *csv_path);

#endif
