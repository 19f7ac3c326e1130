/* Detects ROCm installations of TheRock, AMD's newer build. */
#ifndef PROF_TOOLS_RUN_THEROCK_H
#define PROF_TOOLS_RUN_THEROCK_H

/* Prints each installation on stderr, or that there is none. */
void run_therock_check(void);

#endif
