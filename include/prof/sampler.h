/* Samplers: power, memory used, utilisation and clocks of devices and of the host, read at an
   interval by one thread of prof's own. They stand in the trace as counters, on the one time line,
   while something is recorded; and in a CSV file, if one is named. What can be read:
   docs/reference/backends.md. SPDX-License-Identifier: MIT */
#ifndef PROF_SAMPLER_H
#define PROF_SAMPLER_H

#include <prof/args.h>
#include <prof/status.h>

PROF_I_EXTERN_C_BEGIN

/* What is read; ROCm's madengine has power and vram. */
typedef enum prof_sample_mode {
  PROF_SAMPLE_ALL = 0,   /* all that there is */
  PROF_SAMPLE_POWER = 1, /* W; where only energy is told, by what it grew since the last sample */
  PROF_SAMPLE_VRAM = 2,  /* memory used */
  PROF_SAMPLE_UTILISATION = 3, /* of each device what it tells in %, as how busy it is */
  PROF_SAMPLE_CLOCK = 4        /* in Hz */
} prof_sample_mode;

/* Set size to sizeof(prof_sampler_options) and the rest to zero: zero means the default. */
typedef struct prof_sampler_options {
  size_t size;
  uint64_t interval_ns; /* 0: 100 ms; 1 ms to 10^9 s */
  /* "0,1": those by the back ends' numbers; "all" or NULL: all, and the host's own meters; "host":
     those alone, no back end is opened */
  const char *devices;
  /* NULL: none. Written under another name, and there when the sampler has stopped. By mode: POWER
     and VRAM as madengine has them, a row a sample, "time,Power(Watt) GPU0" or "time,vram(%) GPU0",
     local time, N/A for what could not be read; UTILISATION and CLOCK the same, "utilisation(%)
     GPU0", "clock(MHz) GPU0"; ALL: "time_ns,meter,unit,value", a row a value, Unix time */
  const char *csv_path;
  uint32_t mode; /* prof_sample_mode */
  /* 1: the file has its name from the start, and each row is written at once, so that it stays
     however the process ends. What the file held before is lost. 0: the file appears when it
     is complete. */
  uint32_t csv_is_live;
} prof_sampler_options;

/* Starts it, when its thread has opened the back ends that have meters and asked what they can
   read: waits for that, 10 s at most. NULL: all defaults. Errors: PROF_E_RUNNING, PROF_E_INVALID
   (with the field's name), PROF_E_NOT_FOUND: nothing of that kind can be read here, and why; those
   of a path that cannot be written; PROF_E_BUSY: a back end has not answered for 10 s, or still not
   the one before; or another thread is just starting one. Any thread; not from a constructor of a
   library that is being loaded, which its thread would wait for (PROF_SAMPLE does not wait). */
PROF_API int prof_sampler_start(const prof_sampler_options *options) PROF_I_NOEXCEPT;

/* Stops it, and gives the CSV file its name. PROF_E_NOT_RUNNING; PROF_E_BUSY: a back end has not
   answered for 100 ms: the file comes when it does; errors of the file. The process's end stops it,
   too; a forked child has none. */
PROF_API int prof_sampler_stop(void) PROF_I_NOEXCEPT;

typedef struct prof_sampler_state {
  size_t size;
  uint32_t is_running;
  uint32_t meter_count;  /* that are read */
  uint64_t sample_count; /* since the start */
  /* that were due, and the one before was still being read, or nobody had a processor for it */
  uint64_t missed_count;
  /* the host's own meters: why there are none; "". While none runs, as it is now */
  char why_not[192];
  /* those that there are, with ", " between: "energy (J), battery power (W)" */
  char host_meters[128];
  uint32_t left_out_count; /* meters that are not read for want of room: 256 are */
  /* of the last sampler's file, once that has ended: PROF_OK, or why it is not there, which
     prof_sampler_stop() may have been too early to say */
  int32_t csv_status;
  char csv_error[256]; /* in words; "" */
} prof_sampler_state;
/* How it is, also when it has stopped. PROF_E_INVALID. */
PROF_API int prof_sampler_get(prof_sampler_state *state_out) PROF_I_NOEXCEPT;

PROF_I_EXTERN_C_END

#endif
