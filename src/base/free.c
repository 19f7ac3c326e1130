/* prof_free(): gives back what prof has handed out. */
#include <prof/profiler.h>
#include <stdlib.h>

#include "port.h"
#include "reentry.h"
#include "this_thread.h"

void prof_free(void *memory) {
  PROF_I_REFUSE_INTERRUPTED();
  PROF_I_INSIDE;
  free(memory);
}
