/* Options that reading commands share: which scopes are taken (a filter), and what is one row. */
#ifndef PROF_TOOLS_SHARED_OPTIONS_H
#define PROF_TOOLS_SHARED_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>

#include "../../src/analysis/filter.h"
#include "../../src/analysis/internal.h"
#include "command_line.h"

/* ---- the filter ---- */

/* A command puts filter_option_list, or filter_option_list_of_table, into its options by `more`. */

/* Of the options; no letters of others. */
enum {
  FILTER_NAME = 2000,
  FILTER_CATEGORY,
  FILTER_THREAD,
  FILTER_PROCESS,
  FILTER_RANK,
  FILTER_DEVICE,
  FILTER_LEVEL,
  FILTER_MIN,
  FILTER_ARG,
  FILTER_FROM,
  FILTER_TO,
  FILTER_STEP
};

enum { FILTER_ARGS_MAX = 32 };

/* Begins as zeros. */
typedef struct filter_options {
  prof_i_filter_words words;
  const char *args[FILTER_ARGS_MAX];
  const char *twice;     /* an option that was given a second time; NULL: none */
  prof_i_filter *filter; /* NULL: no option was given */
} filter_options;

extern const command_option filter_option_list[];

/* `prof table` has --category and --level of its own. */
extern const command_option filter_option_list_of_table[];

/* The filter options of `prof dump`, which has other --from and --to: it writes all events that
   overlap that time. */
extern const command_option filter_option_list_of_dump[];

/* The filter options that apply to allocations. */
extern const command_option filter_option_list_of_memory[];

/* Takes optarg, if `option` is of a filter. False: it is not. */
bool filter_options_take(filter_options *to, int option);

/* Sets a word to optarg, for an option that may be given once. If it was given before,
   filter_options_finish() refuses it. */
void filter_options_set(filter_options *to, const char **word);

/* After the last option: makes the filter. EXIT_OK, or another status after it has said which value
   is wrong. */
int filter_options_finish(const char *command, filter_options *to);
void filter_options_free(filter_options *options);

/* Says that the option may be given once. Returns EXIT_USAGE. */
int refuse_twice(const char *command, const char *option);

/* Says that no scope passed the filter. Returns EXIT_NO. */
int filter_says_nothing(const char *command);

/* For `statuses` of a command. */
#define FILTER_STATUSES \
  "Exit status: 0 done, 1 it could not be done, 2 wrong words, 3 no scope passed the filter."

/* For `notes` of a command. */
#define FILTER_NOTES                                                                             \
  "A filter decides which scopes are shown and counted. All its options must hold. It does not " \
  "change a scope's numbers: the self time of a scope is without all its children, shown or not."

/* ---- --sort of `prof table`, `prof top` and `prof run` ---- */

extern const command_choice sort_choices[];

/* ---- --by of `prof table`, `prof diff` and `prof report` ---- */

extern const command_choice group_choices[];

/* Begins as zeros. */
typedef struct group_words {
  const char *text; /* as given last; NULL: --by was not given */
  uint32_t group;   /* bits of prof_group and of analysis/internal.h */
  uint32_t named;   /* of `group`, the bits of words; kernel adds others to `group` */
  /* The bits of `group` in the given order, without kernel, which adds name and category. */
  uint32_t keys[PROF_I_GROUP_KEYS_MAX];
  uint32_t key_count;
  char *arg_key; /* of PROF_I_GROUP_ARG */
} group_words;

/* Adds words with commas between them. A word that was named before is refused. EXIT_OK, or another
   status after it has said what is wrong. */
int group_words_add(const char *command, group_words *to, const char *text);
void group_words_free(group_words *words);

/* Sets the words to optarg, for a command that takes --by once. */
int group_words_set(const char *command, group_words *to);

/* Says that no scope has the argument or line by which rows are grouped. Returns EXIT_NO. */
int group_words_says_nothing(const char *command, const group_words *words);

#endif
