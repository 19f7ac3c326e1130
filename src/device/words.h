/* Why a call of a back end of prof's own failed, in words, for each thread its own: of whichever it asked last. */
#ifndef PROF_DEVICE_WORDS_H
#define PROF_DEVICE_WORDS_H

/* Keeps the text for prof_i_words_last() and returns result. Any thread. */
int prof_i_words_fail(int result, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same of a static text, at the cost of keeping a pointer: for what may fail at every scope. */
int prof_i_words_refuse(int result, const char *text);

/* "": nothing failed yet. Valid until the thread's next. */
const char *prof_i_words_last(void);

#endif
