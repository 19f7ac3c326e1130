/* The address space of an arena that is given up. What a living thread may still point to stays
   mapped: its slot, its chunks, the state of a pool. The rest is unmapped after the control lock is
   released, because the kernel takes half a second to unmap a capture of 1.5 GiB.

   Control lock held and gate closed, if a line does not say otherwise. */
#ifndef PROF_CORE_BUFFER_MAPPING_H
#define PROF_CORE_BUFFER_MAPPING_H

#include "thread.h"

/* Memory that a live thread may point to reads as zeros from now on. */
void prof_i_mapping_cover(char *base, uint64_t bytes);

/* What no living thread can point to is unmapped after the lock is released. */
void prof_i_mapping_release(char *base, uint64_t bytes);

/* Closes the arena's file after the lock is released, because the file system may be slow. The
   device and the inode show whether the host has replaced the descriptor meanwhile. */
void prof_i_mapping_close_later(int fd, uint64_t device, uint64_t inode);

/* Takes the list of ranges that wait to be unmapped, or NULL. Control lock held. */
struct prof_i_unmap_list *prof_i_mapping_take_unmap_list(void);
/* Unmaps them. Without the lock. */
void prof_i_mapping_unmap_list(struct prof_i_unmap_list *all);

/* Calls the sink for each range, in the order of addresses. The caller unmaps the unused ones
   later; threads unmap the ranges that they may point to themselves. */
typedef enum prof_i_mapping_use {
  PROF_I_MAPPING_UNUSED,
  PROF_I_MAPPING_THREADS,
  PROF_I_MAPPING_POOLS
} prof_i_mapping_use;
typedef void prof_i_mapping_sink(void *to, char *at, uint64_t bytes, prof_i_mapping_use use);
/* False: no memory for that, and nothing has been done. */
bool prof_i_mapping_split(char *base, uint64_t bytes, prof_i_mapping_sink *sink, void *to);
size_t prof_i_mapping_ranges_max(void); /* at most so many ranges are used */

/* Each chunk in that range that a thread may point to. */
void prof_i_mapping_each_chunk(const char *base, uint64_t bytes, void (*take)(prof_i_head *chunk));

/* In a forked child. */
void prof_i_mapping_forget(void);

#endif
