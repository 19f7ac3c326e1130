/* Whether ROCm on this machine comes from TheRock, AMD's newer build. */
#ifndef PROF_TOOLS_RUN_THEROCK_H
#define PROF_TOOLS_RUN_THEROCK_H

/* Says on stderr each installation that there is, or that there is none. */
void run_therock_check(void);

#endif
