/* Dimensions as a text, "[[[2,10],[3,10]],[],[4]]": of each input its own, or those of each tensor
   in a list of them. */
#ifndef PROF_EXPORT_DIMS_H
#define PROF_EXPORT_DIMS_H

#include <stdbool.h>
#include <stdint.h>

#include "../sink/sink.h"

/* Is it that, of so many inputs (64 at most), in JSON without blanks? Then it may be written as it
   is. lists_out: a bit for each input that is a list of tensors. */
bool prof_i_dims_check(const char *text, uint64_t bytes, uint32_t count, uint64_t *lists_out);

/* Writes the text of dimensions, or of strides. As in torch.profiler's trace, a list of more than
   30 tensors is "[]". False, and nothing is written, of a text that is not of numbers in lists. */
bool prof_i_dims_put_json(prof_i_sink *sink, const char *text, uint64_t bytes);

#endif
