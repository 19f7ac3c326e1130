/* Where prof puts a capture whose folder does not take it: see src/core/buffer/capture_file.c. */
#ifndef PROF_TOOLS_RUN_PLACES_H
#define PROF_TOOLS_RUN_PLACES_H

#include "text.h"

/* Paths of captures of that folder that are elsewhere. */
run_words run_capture_paths_find(const char *folder);

/* Paths of captures that `prof run --repeat` has kept beside its folder, because that did not take
   them: FOLDER'S NAME.NUMBER.prof. */
run_words run_capture_paths_retained(const char *folder);

#endif
