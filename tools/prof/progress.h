/* A line on the terminal about work that takes more than two seconds: how much is done, and an
   estimate of the rest. Nothing is written to a pipe, a file or a dumb terminal, or where CI is
   set. */
#ifndef PROF_TOOLS_PROGRESS_H
#define PROF_TOOLS_PROGRESS_H

/* passes: how often the command reads a capture from its begin to its end, about. Before the first
   progress_expect(). */
void progress_begin(const char *command, unsigned passes);

/* The file will be read. */
void progress_expect(const char *path);

/* Removes the line: before a result is printed. Also at exit. */
void progress_end(void);

/* Removes the line. For a signal's handler that ends the process. */
void progress_killed(void);

/* Around text for the terminal that is no result: the line makes room for it. */
void progress_pause(void);
void progress_resume(void);

#endif
