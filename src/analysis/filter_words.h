/* A parsed filter: what filter_words.c makes of the words, and filter.c resolves. */
#ifndef PROF_ANALYSIS_FILTER_WORDS_H
#define PROF_ANALYSIS_FILTER_WORDS_H

#include <regex.h>

#include "filter.h"

enum { PROF_I_FILTER_ARGS_MAX = 16 };

typedef struct prof_i_filter_arg {
  const char *key, *value;
  size_t key_bytes;
} prof_i_filter_arg;

struct prof_i_filter {
  prof_i_filter_words words;
  regex_t name;
  bool has_name;
  uint32_t level; /* 0: both */
  int32_t rank;   /* with words.rank */
  uint64_t min_ns, from_ns;
  uint64_t to_ns; /* UINT64_MAX: to the end */
  bool has_steps;
  uint64_t first_step, last_step;
  prof_i_filter_arg args[PROF_I_FILTER_ARGS_MAX];
  uint32_t arg_count;
};

/* pattern_size.c: how many characters the regular expression has when its counts are expanded, as
   in regcomp(). At most PROF_I_PATTERN_SIZE_MOST.
   UINT32_MAX: more than PROF_I_PATTERN_DEPTH_MAX groups are nested. */
enum { PROF_I_PATTERN_DEPTH_MAX = 200, PROF_I_PATTERN_SIZE_MOST = 1 << 30 };
uint32_t prof_i_pattern_size(const char *pattern);

/* "cuda:0" is of "cuda:0" and of "cuda". */
bool prof_i_filter_takes_device(const char *word, prof_device device);

#endif
