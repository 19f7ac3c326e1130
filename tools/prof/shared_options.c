/* The options of filters, and --by. See shared_options.h. */
#define _GNU_SOURCE
#include "shared_options.h"

#include <getopt.h>
#include <prof/profiler.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"

/* ---- the filter ---- */

static const command_choice levels[] = {{"0", 0}, {"1", 1}, {"2", 2}, {0}};

/* clang-format off */
#define NAME_OPTION \
  {.name = "name", .argument = "REGEX", .id = FILTER_NAME, .group = "Filter", \
   .help = "scopes whose name has a match of this POSIX extended regular expression"}
#define CATEGORY_OPTIONS \
  {.name = "category", .argument = "C", .help = "scopes of this category", .id = FILTER_CATEGORY}, \
  {.name = "level", .argument = "N", .help = "scopes of this level, 1 or 2; 0: of both", \
   .id = FILTER_LEVEL, .choices = levels}
#define PLACE_OPTIONS \
  {.name = "thread", .argument = "T", .help = "scopes of threads of this name or number", \
   .id = FILTER_THREAD}, \
  {.name = "process", .argument = "P", .help = "scopes of processes of this name or number", \
   .id = FILTER_PROCESS}, \
  {.name = "rank", .argument = "N", .help = "scopes of processes of this rank", \
   .id = FILTER_RANK}, \
  {.name = "device", .argument = "D", \
   .help = "scopes of this device: cpu, cuda, hip, opencl, or one of them, as cuda:0", \
   .id = FILTER_DEVICE}
#define SCOPE_OPTIONS \
  {.name = "min", .argument = "TIME", .help = "scopes that took this time or longer, as 10us", \
   .id = FILTER_MIN}, \
  {.name = "arg", .argument = "KEY=VALUE", \
   .help = "scopes with this argument; given more than once, with all of them", \
   .id = FILTER_ARG}
#define TIME_OPTIONS \
  {.name = "from", .argument = "TIME", \
   .help = "scopes that began at this time of the capture or later, as 1.5s", .id = FILTER_FROM}, \
  {.name = "to", .argument = "TIME", .help = "scopes that began before this time, as 2s", \
   .id = FILTER_TO}
#define STEP_OPTION \
  {.name = "step", .argument = "STEPS", \
   .help = "scopes that began in these steps: 3, 3..5, 3.. or ..5", .id = FILTER_STEP}
#define OTHER_OPTIONS PLACE_OPTIONS, SCOPE_OPTIONS, TIME_OPTIONS, STEP_OPTION
/* clang-format on */

const command_option filter_option_list[] = {NAME_OPTION, CATEGORY_OPTIONS, OTHER_OPTIONS, {0}};
const command_option filter_option_list_of_table[] = {NAME_OPTION, OTHER_OPTIONS, {0}};
const command_option filter_option_list_of_dump[] = {NAME_OPTION,   CATEGORY_OPTIONS, PLACE_OPTIONS,
                                                     SCOPE_OPTIONS, STEP_OPTION,      {0}};

/* What allocations have. */
const command_option filter_option_list_of_memory[] = {
    NAME_OPTION, PLACE_OPTIONS, TIME_OPTIONS, STEP_OPTION, {0}};

void filter_options_set(filter_options *to, const char **word) {
  if (*word && !to->twice) to->twice = command_option_found()->name;
  *word = optarg;
}

/* The place for the word of a filter option. NULL: the option is --arg, or not of a filter. */
static const char **word_of(prof_i_filter_words *words, int option) {
  switch (option) {
    case FILTER_NAME:
      return &words->name;
    case FILTER_CATEGORY:
      return &words->category;
    case FILTER_THREAD:
      return &words->thread;
    case FILTER_PROCESS:
      return &words->process;
    case FILTER_RANK:
      return &words->rank;
    case FILTER_DEVICE:
      return &words->device;
    case FILTER_LEVEL:
      return &words->level;
    case FILTER_MIN:
      return &words->min;
    case FILTER_FROM:
      return &words->from;
    case FILTER_TO:
      return &words->to;
    case FILTER_STEP:
      return &words->step;
    default:
      return NULL;
  }
}

bool filter_options_take(filter_options *to, int option) {
  const char **const word = word_of(&to->words, option);
  if (word)
    filter_options_set(to, word);
  else if (option != FILTER_ARG)
    return false;
  else if (to->words.arg_count < FILTER_ARGS_MAX) /* the filter refuses more than it knows */
    to->args[to->words.arg_count++] = optarg;
  return true;
}

int refuse_twice(const char *command, const char *option) {
  char text[64];
  snprintf(text, sizeof text, "accepts --%s only once", option);
  return refuse_words(command, text, NULL);
}

static bool has_word(const prof_i_filter_words *w) {
  return w->name || w->category || w->thread || w->process || w->rank || w->device || w->level ||
         w->min || w->arg_count || w->from || w->to || w->step;
}

int filter_options_finish(const char *command, filter_options *to) {
  to->words.args = to->args;
  if (to->twice) return refuse_twice(command, to->twice);
  if (!has_word(&to->words)) return EXIT_OK;
  const int status = prof_i_filter_create(&to->words, &to->filter);
  if (status == PROF_OK) return EXIT_OK;
  say("prof %s: %s", command, prof_last_error());
  return status == PROF_E_INVALID ? EXIT_USAGE : EXIT_FAILED;
}

void filter_options_free(filter_options *options) {
  prof_i_filter_destroy(options->filter);
  options->filter = NULL;
}

int filter_says_nothing(const char *command) {
  say("prof %s: no scope passed the filter", command);
  return EXIT_NO;
}

/* ---- --by ---- */

const command_choice sort_choices[] = {{"total", PROF_SORT_TOTAL},
                                       {"self", PROF_SORT_SELF},
                                       {"calls", PROF_SORT_CALLS},
                                       {"mean", PROF_SORT_MEAN},
                                       {"median", PROF_SORT_MEDIAN},
                                       {"p99", PROF_SORT_P99},
                                       {"max", PROF_SORT_MAX},
                                       {"name", PROF_SORT_NAME},
                                       {"first", PROF_SORT_FIRST},
                                       {"memory", PROF_SORT_MEMORY},
                                       {"self-memory", PROF_SORT_SELF_MEMORY},
                                       {"device", PROF_SORT_DEVICE},
                                       {"self-device", PROF_SORT_SELF_DEVICE},
                                       {"device-mean", PROF_SORT_DEVICE_MEAN},
                                       {"self-net", PROF_SORT_SELF_NET},
                                       {"total-net", PROF_SORT_TOTAL_NET},
                                       {"open", PROF_SORT_OPEN},
                                       {"open-for", PROF_SORT_OPEN_FOR},
                                       {"skipped", PROF_SORT_SKIPPED},
                                       {NULL, 0}};

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

/* Each but kernel has a place among the keys. */
_Static_assert(sizeof group_choices / sizeof *group_choices - 2 == PROF_I_GROUP_KEYS_MAX,
               "keys has room for each group");

static const char arg_word[] = "arg:";

static bool is_arg_word(const char *word) { return strncmp(word, arg_word, strlen(arg_word)) == 0; }

/* "arg:KEY" */
static int set_arg_key(const char *command, group_words *to, const char *key) {
  if (!*key) return refuse_words(command, "--by arg:KEY needs the argument's key", NULL);
  if (to->arg_key && strcmp(to->arg_key, key) != 0)
    return refuse_words(command, "--by takes one argument, and not also", key);
  if (!to->arg_key) to->arg_key = strdup(key);
  return to->arg_key ? EXIT_OK : EXIT_FAILED;
}

static void add_key(group_words *to, uint32_t key) {
  if (!(to->group & key)) to->keys[to->key_count++] = key;
  to->group |= key;
}

static int add_word(const char *command, group_words *to, const char *word) {
  uint32_t bit = PROF_I_GROUP_ARG;
  const int status = is_arg_word(word)
                         ? set_arg_key(command, to, word + strlen(arg_word))
                         : command_read_choice(command, "--by", word, group_choices, &bit);
  if (status != EXIT_OK) return status;
  if (to->named & bit) return refuse_words(command, "--by takes a group once, and has twice", word);
  to->named |= bit;
  if (bit != PROF_GROUP_KERNEL) {
    add_key(to, bit);
  } else { /* its rows are kernels' names */
    to->group |= bit;
    add_key(to, PROF_GROUP_NAME);
    add_key(to, PROF_GROUP_CATEGORY);
  }
  return EXIT_OK;
}

int group_words_add(const char *command, group_words *to, const char *text) {
  char *const words = strdup(text);
  int status = words ? EXIT_OK : EXIT_FAILED;
  to->text = text;
  for (char *rest = words, *word; status == EXIT_OK && (word = strsep(&rest, ",")) != NULL;)
    status = add_word(command, to, word);
  free(words);
  if (status == EXIT_OK && to->arg_key && (to->group & PROF_GROUP_SHAPE))
    status = refuse_words(command, "--by takes shape or arg:KEY, not both", NULL);
  return status;
}

void group_words_free(group_words *words) {
  free(words->arg_key);
  words->arg_key = NULL;
}

int group_words_set(const char *command, group_words *to) {
  return to->text ? refuse_twice(command, "by") : group_words_add(command, to, optarg);
}

int group_words_says_nothing(const char *command, const group_words *words) {
  if (words->group & PROF_I_GROUP_ARG)
    say("prof %s: no scope has the argument '%s'%s", command, words->arg_key,
        words->group & PROF_I_GROUP_LINE ? " and a known file and line" : "");
  else
    say("prof %s: no scope has a known file and line", command);
  return EXIT_NO;
}
