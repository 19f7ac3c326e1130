/* A filter of scopes, as the commands that read captures offer it. It is parsed once, and resolved
   once for each trace: to one byte for each call site and thread. So a plain scope costs one look.

   A filter decides which scopes are shown and counted. It does not change their numbers: the self
   time of a scope is without all its children, whether these are shown or not. Called by
   src/analysis and the command. */
#ifndef PROF_ANALYSIS_FILTER_H
#define PROF_ANALYSIS_FILTER_H

#include <prof/trace.h>
#include <stdbool.h>

/* The options as their user wrote them. NULL: not given. All that are given must hold. */
typedef struct prof_i_filter_words {
  const char *name;        /* a POSIX extended regular expression, found anywhere in the name */
  const char *category;    /* the whole category */
  const char *thread;      /* the whole name, or the kernel's number */
  const char *process;     /* the whole name, or the number */
  const char *rank;        /* "3": of the process */
  const char *device;      /* "cuda:0", or "cuda" for all of them */
  const char *level;       /* "1" or "2" */
  const char *min;         /* the least duration, "10us" */
  const char *from;        /* scopes that begin then or later, from the capture's start: "1.5s" */
  const char *to;          /* scopes that begin earlier */
  const char *step;        /* scopes that begin in these steps: "3", "3..5", "3..", "..5" */
  const char *const *args; /* "key=value" each */
  size_t arg_count;
} prof_i_filter_words;

/* Enumerates the options that have one word: returns the place of the word, and the option's name.
   NULL: no such index. --arg is not included, because it may have several. */
const char **prof_i_filter_word(prof_i_filter_words *words, size_t index, const char **name_out);

/* Reads "name=REGEX", "arg=KEY=VALUE" and so on. The texts must stay valid. args has room for
   `count` texts. PROF_E_INVALID: a text is not of an option. */
int prof_i_filter_words_read(prof_i_filter_words *words, const char *const *texts, size_t count,
                             const char **args);

typedef struct prof_i_filter prof_i_filter;

/* Reads the words, which must stay valid. PROF_E_INVALID: prof_last_error() has the option, its
   value and the reason. PROF_E_NO_MEMORY. */
int prof_i_filter_create(const prof_i_filter_words *words, prof_i_filter **filter_out);
void prof_i_filter_destroy(prof_i_filter *filter);

/* Whether --process and --rank take a process of this capture. filter NULL: true. */
bool prof_i_filter_takes_trace(const prof_i_filter *filter, const prof_trace *trace);

/* "10us", "1.5s", "0": a number with ns, us, ms or s. False: it is not one, or past 64 bits. */
bool prof_i_filter_read_time(const char *text, uint64_t *ns_out);

#endif
