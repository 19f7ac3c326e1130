/* The option --by of `prof table`, `prof diff` and `prof report`: what is one row. */
#ifndef PROF_TOOLS_GROUP_WORDS_H
#define PROF_TOOLS_GROUP_WORDS_H

#include <stdint.h>

#include "../../src/analysis/internal.h"
#include "command_line.h"

enum { GROUP_KEYS_MAX = PROF_I_GROUP_KEYS_MAX };

extern const command_choice group_choices[];

/* Begins as zeros. */
typedef struct group_words {
  const char *text; /* as given last; NULL: --by was not given */
  uint32_t group;   /* bits of prof_group and of analysis/internal.h */
  char *arg_key;    /* of PROF_I_GROUP_ARG */
} group_words;

/* Adds words with commas between them. EXIT_OK, or another status after it has said what is
   wrong. */
int group_words_add(const char *command, group_words *to, const char *text);
void group_words_free(group_words *words);

/* For a command that shows one or two keys. Reads optarg, and puts the bit of each key into
   keys_out in the given order. Refuses a second --by. */
int group_words_read_keys(const char *command, group_words *to, uint32_t keys_out[GROUP_KEYS_MAX],
                          uint32_t *key_count_out);

/* Says that no scope has the argument or line by which rows are grouped. Returns EXIT_NO. */
int group_words_says_nothing(const char *command, const group_words *words);

#endif
