/* Captures in files. A file is one capture, or a merged one with several parts
   (../format/merged.h). PATH#N is the path of part N, from 1 on. If a file has that name, the path
   is that file. */
#ifndef PROF_LIVE_PARTS_H
#define PROF_LIVE_PARTS_H

#include "../format/merged.h"

typedef struct prof_i_part {
  uint64_t offset, bytes; /* of the capture in the file */
  uint32_t number;        /* from 0 */
} prof_i_part;

/* The parts of a file that can be read, in the order of the file. Begins as zeros. */
typedef struct prof_i_parts {
  prof_i_part *items;
  uint32_t count, room;
  uint32_t all_count;  /* including lost ones */
  uint32_t lost_count; /* parts that cannot be found any more */
  bool is_merged;      /* false: the file is one capture, or none, and has no parts */
  bool is_unaligned;   /* its hosts start together */
} prof_i_parts;

/* Finds the parts of an open file. Returns PROF_OK, or a status whose text names `path`. */
int prof_i_parts_find(int fd, const char *path, prof_i_parts *parts_out);

/* The same of a path. */
int prof_i_parts_open(const char *path, prof_i_parts *parts_out);
void prof_i_parts_fini(prof_i_parts *parts);

/* Reads the header of a merged capture. False: the file is not a merged capture, or its header is
   damaged. */
bool prof_i_parts_look(const char *path, prof_i_merged_header *header_out);

/* Splits PATH#N. *number_out: from 0. False: the path has no such end, or does not fit. */
bool prof_i_part_path_split(const char *path, char *file_out, size_t room, uint32_t *number_out);

/* ---- file.c ---- */

/* The bytes of a capture: a file, or a part of one. */
typedef struct prof_i_capture_bytes {
  int fd;
  bool is_part;
  uint64_t offset, bytes;
} prof_i_capture_bytes;

/* Opens a capture without reading it. If it is not a part, prof_i_capture_bytes_look() sets its
   size. The caller closes `fd`. A merged file with several parts is refused with PROF_E_INVALID.
   Its text says how to open one of them. */
int prof_i_capture_bytes_open(const char *path, prof_i_capture_bytes *bytes_out);

/* Reads the header. *is_finished_out: no process writes to these bytes any more, so they can be
   copied as they are. */
int prof_i_capture_bytes_look(prof_i_capture_bytes *of, const char *path, prof_i_header *header_out,
                              bool *is_finished_out);

#endif
