/* Samplers: power, memory, utilisation and clocks of devices and of the host. A thread of prof
   reads them at an interval. While something is recorded, they are counters of the trace, on its
   time line. They may also go to a CSV file. docs/reference/backends.md lists what can be read.
   SPDX-License-Identifier: MIT */
#ifndef PROF_SAMPLER_H
#define PROF_SAMPLER_H

#include <prof/args.h>
#include <prof/status.h>

PROF_I_EXTERN_C_BEGIN

/* What to read. ROCm's madengine has power and vram. */
typedef enum prof_sample_mode {
  PROF_SAMPLE_ALL = 0, /* all that can be read */
  /* Watts. A meter that only has energy: its growth since the last sample. */
  PROF_SAMPLE_POWER = 1,
  PROF_SAMPLE_VRAM = 2,        /* used memory */
  PROF_SAMPLE_UTILISATION = 3, /* all percentages of a device that say how busy it is */
  PROF_SAMPLE_CLOCK = 4        /* Hz */
} prof_sample_mode;

/* Set size to sizeof(prof_sampler_options) and all other fields to 0, the default. */
typedef struct prof_sampler_options {
  size_t size;
  uint64_t interval_ns; /* 0: 100 ms; 1 ms to 10^9 s */
  /* "0,1": devices by their back ends' numbers. "all" or NULL: all, and the host's meters. "host":
     only the host's meters, and no back end is opened. */
  const char *devices;
  /* The CSV file; NULL: none. It appears when the sampler has stopped: see csv_is_live. POWER and
     VRAM are in madengine's format, a row for each sample: "time,Power(Watt) GPU0" or "time,vram(%)
     GPU0". The time is local, and N/A is a value that could not be read. UTILISATION and CLOCK have
     the same format: "utilisation(%) GPU0", "clock(MHz) GPU0". ALL has a row for each value and
     Unix time: "time_ns,meter,unit,value". */
  const char *csv_path;
  uint32_t mode; /* prof_sample_mode */
  /* 1: the file has its name from the start, and each row is written at once, so it remains however
     the process ends. Previous contents are lost. 0: the file appears when it is complete. */
  uint32_t csv_is_live;
} prof_sampler_options;

/* Starts the sampler. options NULL: all defaults. It waits until the sampler's thread has opened
   the back ends with meters, at most 10 s. PROF_SAMPLE starts it without waiting.
   Errors:
   PROF_E_RUNNING: a sampler runs.
   PROF_E_INVALID: the error names the field.
   PROF_E_NOT_FOUND: nothing of that kind can be read here. The error says why.
   PROF_E_BUSY: a back end, also of an earlier sampler, has not answered for 10 s, or another thread
     is starting one.
   Also those of a path that cannot be written.
   Any thread. Not in a constructor of a library that is being loaded: the sampler's thread would
   wait for it. */
PROF_API int prof_sampler_start(const prof_sampler_options *options) PROF_I_NOEXCEPT;

/* Stops the sampler, and gives the CSV file its name. It stops by itself when the process ends. A
   forked child has no sampler.
   Errors:
   PROF_E_NOT_RUNNING: no sampler runs.
   PROF_E_BUSY: a back end has not answered for 100 ms. The file appears when it does.
   Also those of the file. Any thread. */
PROF_API int prof_sampler_stop(void) PROF_I_NOEXCEPT;

/* The state of the sampler. The caller sets size. */
typedef struct prof_sampler_state {
  size_t size;
  uint32_t is_running;
  uint32_t meter_count;  /* meters that are read */
  uint64_t sample_count; /* since the start */
  /* Samples that were due, but the previous one was not finished, or no processor was free. */
  uint64_t missed_count;
  /* Why the host has no meters, else "". If no sampler runs: as it is now. */
  char why_not[192];
  /* The host's meters: "energy (J), battery power (W)". */
  char host_meters[128];
  uint32_t left_out_count; /* meters that are not read, because at most 256 are */
  /* State of the last sampler's file after its end, which may be later than prof_sampler_stop().
     PROF_OK, or why the file does not exist. */
  int32_t csv_status;
  char csv_error[256]; /* its text, or "" */
} prof_sampler_state;

/* Fills state_out, also after a stop. PROF_E_INVALID: state_out is NULL or its size is 0.
   Any thread. */
PROF_API int prof_sampler_get(prof_sampler_state *state_out) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
