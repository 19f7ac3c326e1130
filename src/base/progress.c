/* See progress.h. */
#include "progress.h"

_Atomic uint64_t prof_i_progress_bytes;
