/* One argument's value as JSON: what the formats share. Knows no format's layout. */
#ifndef PROF_EXPORT_VALUE_H
#define PROF_EXPORT_VALUE_H

#include <prof/trace.h>

#include "../sink/sink.h"

/* Room for what PROF_ARGS_FORMAT gives; more is cut. A recorded list has at most 16 KiB, but a
   width may ask for anything. */
enum { PROF_I_FORMAT_BYTES = 64 << 10 };

/* As a JSON value. What JSON or a double cannot hold becomes a string: NaN, infinities, integers
   past 2^53, pointers. */
void prof_i_value_json(prof_i_sink *sink, const prof_trace_arg *arg);

/* As the inside of a JSON string that has been opened. */
void prof_i_value_text(prof_i_sink *sink, const prof_trace_arg *arg);

/* A list of texts as JSON, which a range of PyTorch's has as an argument. _torch_ranges.py of the
   Python package writes a mark as the byte behind its bracket. No JSON and no program's text has
   it there. */
bool prof_i_value_is_text_list(const prof_trace_arg *arg);

/* "[2, 3]" of a tensor; "[]" of anything else. The same as JSON and as text. */
void prof_i_value_dims(prof_i_sink *sink, const prof_trace_arg *arg);

/* A tensor's element type as torch.profiler spells it, "float", "long int"; "" when unknown or no
   tensor. */
const char *prof_i_value_dtype(const prof_trace_arg *arg);

/* "GPU 0", "OpenCL 1": NUL-terminated. */
enum { PROF_I_DEVICE_NAME_BYTES = 48 };
void prof_i_device_name(prof_device device, char to[PROF_I_DEVICE_NAME_BYTES]);

/* As a field of CSV, in quotes. U+FFFD replaces what is not UTF-8, and NUL, which readers
   refuse. */
void prof_i_csv_put_text(prof_i_sink *sink, const char *text, uint64_t bytes);

#endif
