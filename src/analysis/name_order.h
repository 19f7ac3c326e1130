/* Sorts rows by name, which means by their group: by name, category, thread and so on, in the order
   of a table's columns. Texts are compared as bytes, numbers as numbers. Called by rows.c. */
#ifndef PROF_ANALYSIS_NAME_ORDER_H
#define PROF_ANALYSIS_NAME_ORDER_H

#include "../reader/catalog.h"
#include "group.h"

int prof_i_text_order(prof_i_text a, prof_i_text b);
int prof_i_location_order(const prof_i_source_location *a, const prof_i_source_location *b);

/* By name, category and device. */
int prof_i_group_name_order(const prof_i_group *a, const prof_i_group *b);

/* By shape or argument, source location and stack. is_arg: the key's shape is an argument's
   value. */
int prof_i_group_detail_order(const prof_i_group *a, const prof_i_group *b, bool is_arg);

/* The position of each thread and process when they are sorted by name and number. */
typedef struct prof_i_name_ranks {
  uint32_t *threads, *processes;
} prof_i_name_ranks;

/* False: no memory. */
bool prof_i_name_ranks_init(prof_i_name_ranks *ranks, const prof_trace *const *traces,
                            size_t trace_count, const prof_i_processes *processes);
void prof_i_name_ranks_fini(prof_i_name_ranks *ranks);

/* Combines the rank of a group's process (high bits) and that of its thread into one number. */
uint64_t prof_i_name_rank(const prof_i_name_ranks *ranks, const prof_i_group *group);

#endif
