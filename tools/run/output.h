/* Where the files of a run go. */
#ifndef PROF_TOOLS_RUN_OUTPUT_H
#define PROF_TOOLS_RUN_OUTPUT_H

#include <stdio.h>

#include "text.h"

/* %p: our pid, %r: the rank, or 0, %h: the host's name, %%: %. Other marks end the process with a
   message. */
char *run_output_name(const char *pattern);

/* The same without slashes at the end. */
char *run_output_folder(const char *pattern);

/* Doubles each %: in a path of the library it begins a mark. */
char *run_output_escaped(const char *path);

/* FOLDER/NAME; of the folder "." only NAME. */
char *run_output_in(const char *folder, const char *name);

/* "rank 3: ", in front of what the end prints: ranks share a terminal. "": there is no rank. */
const char *run_output_whose(void);

/* Why no file can be made in the folder, which need not be there yet; or NULL. */
const char *run_output_refusal(const char *folder);

/* Of a path that need not exist. */
const char *run_output_absolute(const char *path);

/* The folder itself. If a launcher has set a rank and the pattern has no %r: rank-N in it. */
char *run_output_of_rank(char *folder, const char *pattern);

/* The launcher's rank (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID), or NULL. */
const char *run_output_rank(void);
/* The same of another environment. value_of: the value of a variable, or NULL. */
const char *run_output_rank_of(const char *(*value_of)(const void *context, const char *name),
                               const void *context);

/* Makes the folder and those above it. Ends the process if that fails. */
void run_output_make_folder(const char *path);

/* Makes the folder FOLDER/NAME. If it exists, makes NAME.2, NAME.3, ...: runs never overwrite each
   other, not even runs that begin at once. Returns the path. */
char *run_output_new_folder(const char *folder, const char *name);
/* The path that it would make now, and another one at each call. Nothing is made. */
char *run_output_next_folder(const char *folder, const char *name);
/* As run_output_new_folder() for an empty file that grows: NAMEENDING, NAME.2ENDING, ... */
char *run_output_new_file(const char *folder, const char *name, const char *ending);

/* Without this call the process removes at its exit the files and empty folders that it has made:
   the workload was not started. */
void run_output_keep(void);
/* The folder was made elsewhere, and is removed as well. */
void run_output_note_folder(const char *path);

/* Renames a file. False with errno set: EEXIST if there is one of that name, which stays. */
bool run_output_rename_new(const char *from, const char *to);

/* Writes a new file, as run_output_new_file() names it, which has its name only when it is whole.
   Ends the process if that fails. */
char *run_output_write_new(const char *folder, const char *name, const char *ending,
                           void (*put)(FILE *to, const void *context), const void *context);

/* Opens PATH.part. NULL: errno has the reason. */
FILE *run_output_begin(const char *path);
/* Gives it its name when it is whole. False with errno set: nothing has changed at the path. file
   may be NULL: then errno is unchanged. */
bool run_output_end(FILE *file, const char *path);

/* Copies a file; the copy has its name when it is whole. False with errno set. */
bool run_output_copy(const char *from, const char *to);
/* Renames, or copies a file to another file system. False with errno set: `from` stays. */
bool run_output_move(const char *from, const char *to);

#endif
