/* Exit statuses through a tool that does not pass them on: two hidden commands around the tool. */
#ifndef PROF_TOOLS_RUN_STATUS_H
#define PROF_TOOLS_RUN_STATUS_H

/* `prof run-status TOOL...`: runs the tool, and ends as the program did that
   `prof run-status-of PROGRAM...` ran inside of it; as the tool if there was none. */
int run_status(int argc, char **argv);
int run_status_of(int argc, char **argv);

#endif
