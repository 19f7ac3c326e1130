/* Where the files of a run go. */
#ifndef PROF_TOOLS_RUN_OUTPUT_H
#define PROF_TOOLS_RUN_OUTPUT_H

#include "text.h"

/* %p: our pid, %r: the rank, or 0, %h: the host's name, %%: %. Other marks end the process with a
   message. */
char *run_output_name(const char *pattern);

/* The folder itself, or rank-N in it, where a launcher has set a rank and the pattern has no %r. */
char *run_output_of_rank(char *folder, const char *pattern);

/* The rank that a launcher has set (RANK, OMPI_COMM_WORLD_RANK, PMI_RANK, SLURM_PROCID), or
   NULL. */
const char *run_output_rank(void);

/* Makes the folder and those above it. Ends the process where that fails. */
void run_output_make_folder(const char *path);

/* Makes FOLDER/NAME as a folder, or NAME.2, NAME.3, ... where it is there already with files in it:
   runs never overwrite each other. Returns its path. */
char *run_output_new_folder(const char *folder, const char *name);
/* The same for a file, NAMEENDING or NAME.2ENDING, ...; made empty. */
char *run_output_new_file(const char *folder, const char *name, const char *ending);

#endif
