/* How many instructions of each class ran, by rocprof's tables of counters. */
#ifndef PROF_TOOLS_RUN_HISTOGRAM_H
#define PROF_TOOLS_RUN_HISTOGRAM_H

/* Reads rocprofv3_output_counter_collection.csv and rocprofv3_output_domain_stats.csv of the
   folder, and writes instruction_histogram.json, if there is any counter of instructions: {"VALU":
   N, ...}. The tables have a column a counter, or the columns Counter_Name and Counter_Value. */
void run_histogram_write(const char *folder);

#endif
