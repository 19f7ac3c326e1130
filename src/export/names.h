/* The names of devices and element types in exports. */
#ifndef PROF_EXPORT_NAMES_H
#define PROF_EXPORT_NAMES_H

#include <prof/trace.h>

/* Room for what PROF_ARGS_FORMAT gives; more is cut. A recorded list has at most 16 KiB, but a
   width may ask for anything. */
enum { PROF_I_FORMAT_BYTES = 64 << 10 };

/* A tensor's element type as torch.profiler spells it, "float", "long int"; "" when unknown or no
   tensor. */
const char *prof_i_value_dtype(const prof_trace_arg *arg);

/* "GPU 0", "OpenCL 1": NUL-terminated. */
enum { PROF_I_DEVICE_NAME_BYTES = 48 };
void prof_i_device_name(prof_device device, char to[PROF_I_DEVICE_NAME_BYTES]);

#endif
