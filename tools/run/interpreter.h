/* What the kernel needs to execute a file. */
#ifndef PROF_TOOLS_RUN_INTERPRETER_H
#define PROF_TOOLS_RUN_INTERPRETER_H

/* The interpreter of a script ("#!"), or the loader of an ELF file, which cannot be executed. NULL:
   it can, or the file needs none. */
const char *run_interpreter_missing(const char *path);

#endif
