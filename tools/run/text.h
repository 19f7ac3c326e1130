/* Strings and lists of strings of the command `prof run`. They live until the process ends. */
#ifndef PROF_TOOLS_RUN_TEXT_H
#define PROF_TOOLS_RUN_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A growing list; items[count] is NULL, so that items serves as argv or envp. Start with {0}. */
typedef struct run_words {
  char **items;
  size_t count, room;
} run_words;

/* Ends the process with "prof run: TEXT" and RUN_FAILED. */
_Noreturn void run_fail(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* What a failure calls first, once and in this process alone. Its result is the status of the
   process. NULL: nothing is called. */
void run_set_failure_handler(int (*finish)(void *context), void *context);

/* The status with which `prof run` ends when it could not start the workload: as timeout(1) and
   env(1) do. 126 and 127: the workload's file cannot be executed, or is not found. */
enum { RUN_FAILED = 125, RUN_CANNOT_EXECUTE = 126, RUN_NOT_FOUND = 127 };

/* Never return NULL. */
void *run_make(size_t count, size_t size);
/* As realloc() of count items of that size. */
void *run_grow(void *items, size_t count, size_t size);
char *run_text(const char *format, ...) __attribute__((format(printf, 1, 2)));
char *run_copy(const char *text, size_t bytes);

/* What is behind the last slash of a path. */
const char *run_base_name(const char *path);
/* False, too, if the text is nothing but the ending. */
bool run_ends_in(const char *text, const char *ending);

/* Whether the text has nothing but blanks, tabs and line ends. */
bool run_is_blank(const char *text);

/* The list keeps the pointer. */
void run_words_add(run_words *words, const char *text);
void run_words_add_all(run_words *words, const run_words *more);
/* -1: it is not there. */
ptrdiff_t run_words_find(const run_words *words, const char *text);

/* Splits at blanks, tabs and line ends. */
void run_words_split(run_words *words, const char *text);

/* The words as a shell reads them: quoted where needed, with a blank between them. */
char *run_words_quoted(const run_words *words);
char *run_word_quoted(const char *word);

/* ---- variables: lists of "NAME=VALUE" ---- */

/* The value, or NULL. */
const char *run_variable_get(const run_words *variables, const char *name);
/* Adds the variable, or replaces its value. */
void run_variable_set(run_words *variables, const char *name, const char *value);

/* The whole file with a NUL behind it, or NULL with errno set. Files over limit_bytes: EFBIG. */
char *run_file_read(const char *path, size_t limit_bytes, size_t *bytes_out);
/* The names in a folder. None, too, if it cannot be read. */
run_words run_folder_names(const char *folder);

#endif
