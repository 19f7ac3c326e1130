/* uthash for the main thread, where a fault ends the run as any other: uthash itself would exit. */
#ifndef PROF_TOOLS_RUN_HASH_H
#define PROF_TOOLS_RUN_HASH_H

#include "text.h"

#define uthash_fatal(message) run_fail("%s", message)
#include <uthash.h>

#endif
