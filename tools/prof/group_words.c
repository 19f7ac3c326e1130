/* See group_words.h. */
#define _GNU_SOURCE
#include "group_words.h"

#include <getopt.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "filter_options.h"

const command_choice group_choices[] = {{"name", PROF_GROUP_NAME},
                                        {"category", PROF_GROUP_CATEGORY},
                                        {"device", PROF_GROUP_DEVICE},
                                        {"thread", PROF_GROUP_THREAD},
                                        {"process", PROF_GROUP_PROCESS},
                                        {"rank", PROF_I_GROUP_RANK},
                                        {"shape", PROF_GROUP_SHAPE},
                                        {"stack", PROF_GROUP_STACK},
                                        {"scopes", PROF_GROUP_SCOPES},
                                        {"kernel", PROF_GROUP_KERNEL},
                                        {"line", PROF_I_GROUP_LINE},
                                        {"arg:KEY", PROF_I_GROUP_ARG},
                                        {NULL, 0}};

static const char arg_word[] = "arg:";

static bool is_arg_word(const char *word) { return strncmp(word, arg_word, strlen(arg_word)) == 0; }

/* "arg:KEY" */
static int add_arg(const char *command, group_words *to, const char *key) {
  if (!*key) return refuse_words(command, "--by arg:KEY needs the argument's key", NULL);
  if (to->arg_key && strcmp(to->arg_key, key) != 0)
    return refuse_words(command, "--by takes one argument, and not also", key);
  if (!to->arg_key) to->arg_key = strdup(key);
  to->group |= PROF_I_GROUP_ARG;
  return to->arg_key ? EXIT_OK : EXIT_FAILED;
}

int group_words_add(const char *command, group_words *to, const char *text) {
  char *const words = strdup(text);
  int status = words ? EXIT_OK : EXIT_FAILED;
  to->text = text;
  for (char *rest = words, *word; status == EXIT_OK && (word = strsep(&rest, ",")) != NULL;) {
    uint32_t bits = 0;
    if (is_arg_word(word))
      status = add_arg(command, to, word + strlen(arg_word));
    else
      status = command_read_choice(command, "--by", word, group_choices, &bits);
    to->group |= bits;
  }
  free(words);
  if (status == EXIT_OK && to->arg_key && (to->group & PROF_GROUP_SHAPE))
    status = refuse_words(command, "--by takes shape or arg:KEY, not both", NULL);
  /* its rows are kernels' names */
  if (to->group & PROF_GROUP_KERNEL) to->group |= PROF_GROUP_NAME | PROF_GROUP_CATEGORY;
  return status;
}

void group_words_free(group_words *words) {
  free(words->arg_key);
  words->arg_key = NULL;
}

/* ---- one or two keys ---- */

/* False: there is no room. */
static bool add_key(uint32_t key, uint32_t keys[GROUP_KEYS_MAX], uint32_t *count) {
  for (uint32_t i = 0; i < *count; i++)
    if (keys[i] == key) return true;
  if (*count == GROUP_KEYS_MAX) return false;
  keys[(*count)++] = key;
  return true;
}

/* A word that was taken before. */
static bool add_word_keys(const char *word, uint32_t keys[GROUP_KEYS_MAX], uint32_t *count) {
  if (is_arg_word(word)) return add_key(PROF_I_GROUP_ARG, keys, count);
  const command_choice *of = group_choices;
  while (strcmp(of->word, word) != 0) of++;
  if (of->value != PROF_GROUP_KERNEL) return add_key(of->value, keys, count);
  return add_key(PROF_GROUP_NAME, keys, count) && add_key(PROF_GROUP_CATEGORY, keys, count);
}

int group_words_read_keys(const char *command, group_words *to, uint32_t keys_out[GROUP_KEYS_MAX],
                          uint32_t *key_count_out) {
  if (to->text) return refuse_twice(command, "by");
  int status = group_words_add(command, to, optarg);
  char *const words = strdup(optarg);
  if (status == EXIT_OK && !words) status = EXIT_FAILED;
  *key_count_out = 0;
  for (char *rest = words, *word; status == EXIT_OK && (word = strsep(&rest, ",")) != NULL;)
    if (!add_word_keys(word, keys_out, key_count_out))
      status = refuse_words(command, "--by takes one key or two, and kernel is two, not", optarg);
  free(words);
  return status;
}

int group_words_says_nothing(const char *command, const group_words *words) {
  if (words->group & PROF_I_GROUP_ARG)
    say("prof %s: no scope has the argument '%s'%s", command, words->arg_key,
        words->group & PROF_I_GROUP_LINE ? " and a known file and line" : "");
  else
    say("prof %s: no scope has a known file and line", command);
  return EXIT_NO;
}
