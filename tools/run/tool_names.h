/* Names that a user types: what a wrong one was meant to be, and lists for a terminal. */
#ifndef PROF_TOOLS_RUN_NAMES_H
#define PROF_TOOLS_RUN_NAMES_H

#include "stack.h"

/* The name of the list that is most alike, or NULL: none is. */
const char *run_tool_name_nearest(const char *name, const run_words *names);

bool run_name_has_control(const char *name);
/* True: a folder may be named for it. */
bool run_name_is_of_tool(const char *name);

/* Ends the process with a message that has the nearest names, and all of them in columns. */
_Noreturn void run_tool_names_refuse(const char *name);

/* A key of a context. Prints one line if neither prof nor madengine knows it. */
void run_names_warn_of_key(const char *key, const char *from);
/* A key of a tool in tools.json. */
void run_names_warn_of_tool_key(const char *key, const char *from);

/* `prof run --list`: each tool, and whether it can work here. */
void run_tool_names_list(void);

#endif
