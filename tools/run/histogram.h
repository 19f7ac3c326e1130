/* Counts executed instructions by class, from rocprof's tables of counters. */
#ifndef PROF_TOOLS_RUN_HISTOGRAM_H
#define PROF_TOOLS_RUN_HISTOGRAM_H

/* Reads rocprofv3_output_counter_collection.csv and rocprofv3_output_domain_stats.csv of the
   folder. If they have counters of instructions, writes instruction_histogram.json:
   {"VALU": N, ...}. The tables have one column for each counter, or the columns Counter_Name and
   Counter_Value. */
void run_histogram_write(const char *folder);

#endif
