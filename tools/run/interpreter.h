/* What the kernel needs to execute a file. */
#ifndef PROF_TOOLS_RUN_INTERPRETER_H
#define PROF_TOOLS_RUN_INTERPRETER_H

#include <stdbool.h>
#include <stddef.h>

/* The interpreter of a script ("#!"), or the loader of an ELF file, which cannot be executed. NULL:
   it can, or the file needs none. */
const char *run_interpreter_missing(const char *path);

/* The file has these bytes, such as the name of a symbol or of a library. False, too, if it cannot
   be read. */
bool run_program_mentions(const char *path, const char *text, size_t text_bytes);

#endif
