/* A progress line on the terminal for work of more than two seconds: percent done, and the
   estimated time left. Nothing is written to a pipe, a file or a dumb terminal, or if CI is set. */
#ifndef PROF_TOOLS_PROGRESS_H
#define PROF_TOOLS_PROGRESS_H

/* passes: about how often the command reads a capture from begin to end. Call it before the first
   progress_expect(). */
void progress_begin(const char *command, unsigned passes);

/* Announces that this file will be read. */
void progress_expect(const char *path);

/* Removes the line. Call it before a result is printed; it is also called at exit. */
void progress_end(void);

/* Removes the line. For a signal handler that ends the process. */
void progress_killed(void);

/* Enclose messages to the terminal in these calls: the line is removed and drawn again. */
void progress_pause(void);
void progress_resume(void);

#endif
