/* A progress line on the terminal for work of more than two seconds: percent done, and the
   estimated time left. Nothing is written to a pipe, a file or a dumb terminal, or if CI is set. */
#ifndef PROF_TOOLS_PROGRESS_H
#define PROF_TOOLS_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

/* passes: about how often the command reads a capture from begin to end. Call it before the first
   progress_expect(). */
void progress_begin(const char *command, unsigned passes);
bool progress_has_begun(void);
/* Whether the line is shown, or will be, because a file was announced. */
bool progress_has_line(void);

/* Announces that this file will be read. If it is a trace, it will be imported first. */
void progress_expect(const char *path);

/* Bytes counted so far. */
uint64_t progress_bytes(void);

/* A trace that was announced has become this capture. bytes_before: progress_bytes() at the begin
   of the import. */
void progress_imported(const char *trace, const char *capture, uint64_t bytes_before);

/* Removes the line. Call it before a result is printed; it is also called at exit. */
void progress_end(void);

/* Removes the line. For a signal handler that ends the process. */
void progress_killed(void);

/* Enclose messages to the terminal in these calls: the line is removed and drawn again. */
void progress_pause(void);
void progress_resume(void);

#endif
