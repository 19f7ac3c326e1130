/* The peaks of memory in captures, in short. `prof memory FILE` prints the whole report. */
#ifndef PROF_TOOLS_RUN_PEAKS_H
#define PROF_TOOLS_RUN_PEAKS_H

#include "text.h"

/* On stdout: a line for each pool of the last session of each capture, the highest first, and who
   held the memory of the highest. Prints nothing if no capture has memory. */
void run_peaks_print(const run_words *captures);

/* `prof run-peaks CAPTURE...`: the same, for prof's Python package. */
int run_peaks(int argc, char **argv);

#endif
