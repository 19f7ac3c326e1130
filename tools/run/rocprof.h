/* AMD's rocprof and rocprofv3, as madengine's rocprof_wrapper.sh and trace.sh use them. */
#ifndef PROF_TOOLS_RUN_ROCPROF_H
#define PROF_TOOLS_RUN_ROCPROF_H

#include "stack.h"
#include "stray_files.h"

/* The hidden command `prof run-rocprof OPTIONS -- WORDS`: rocprofv3 if it is on PATH, else rocprof.
   Their lines that do not concern the workload are left out of stderr. */
int run_rocprof(int argc, char **argv);

/* FOLDER/KIND.txt with the counters of that kind (compute, memory, communication, full,
   instructions). is_written: writes the file. */
const char *run_rocprof_counters(const char *kind, const char *folder, bool is_written);

/* Collects in the folder what rocprof wrote to `from`. Moves new results*, rocprofv3-* and folders
   with *_results.db. Copies new folders with *_trace.csv. Of folders that are not new, or while
   another run is there, it moves only files of processes of this run. Folders NAME_output and those
   of -o are never looked at: they are of prof runs. Copies tables under the names
   rocprofv3_output_NAME.csv that other programs read, and counts instructions in
   instruction_histogram.json. */
void run_rocprof_collect(const char *from, const run_stray_files *stray_files, const char *folder);

/* Moves the named files if they are new, and no other run is there. */
void run_rocprof_move(const char *from, const run_stray_files *stray_files, const char *folder,
                      const char *const *names, size_t count);

#endif
