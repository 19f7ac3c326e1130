/* How much work something is, whatever the machine does meanwhile: each branch of the library calls
   us, since it is built by -fsanitize-coverage=trace-pc. Of the calling thread alone. */
#ifndef PROF_TESTS_STEPS_COUNT_STEPS_H
#define PROF_TESTS_STEPS_COUNT_STEPS_H

#include <stdint.h>

static __thread uint64_t steps_now;

void __sanitizer_cov_trace_pc(void);
void __sanitizer_cov_trace_pc(void) { steps_now++; }

#endif
