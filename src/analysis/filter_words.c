/* Reads the words of a filter. See filter.h. */
#include "filter.h"

#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/text.h"

enum {
  DEVICE_TYPES_MAX = 32,
  DEVICE_WORD_BYTES = 48,
  REASON_BYTES = 128,
  NAME_SIZE_MAX = 4096 /* regcomp() takes up to half a second */
};

/* ---- times ---- */

static const struct {
  const char *word;
  uint64_t ns;
} time_units[] = {{"ns", 1}, {"us", 1000}, {"ms", 1000000}, {"s", 1000000000}};

/* The digits at *text. Moves *text behind them. False: no digit, or past 64 bits. */
static bool read_digits(const char **text, uint64_t *value_out) {
  uint64_t value = 0;
  const char *at = *text;
  for (; prof_i_is_digit(*at); at++)
    if (__builtin_mul_overflow(value, 10, &value) ||
        __builtin_add_overflow(value, (uint64_t)(*at - '0'), &value))
      return false;
  const bool has_digits = at != *text;
  *text = at;
  *value_out = value;
  return has_digits;
}

/* Billionths behind a point; further digits are dropped. */
static uint64_t read_fraction(const char **text) {
  uint64_t billionths = 0, digit_value = 100000000;
  for (; prof_i_is_digit(**text); ++*text, digit_value /= 10)
    billionths += (uint64_t)(**text - '0') * digit_value;
  return billionths;
}

bool prof_i_filter_read_time(const char *text, uint64_t *ns_out) {
  uint64_t whole, billionths = 0;
  if (!read_digits(&text, &whole)) return false;
  if (*text == '.') {
    text++;
    if (!prof_i_is_digit(*text)) return false;
    billionths = read_fraction(&text);
  }
  if (*text == '\0' && whole == 0 && billionths == 0) {
    *ns_out = 0;
    return true;
  }
  for (size_t i = 0; i < sizeof time_units / sizeof *time_units; i++) {
    const uint64_t unit_ns = time_units[i].ns;
    if (strcmp(text, time_units[i].word) != 0) continue;
    if (__builtin_mul_overflow(whole, unit_ns, &whole)) return false;
    /* at most 1e18: both factors are below or at 1e9 */
    return !__builtin_add_overflow(whole, billionths * unit_ns / 1000000000, ns_out);
  }
  return false;
}

static int read_time_word(const char *option, const char *word, uint64_t *ns_out) {
  if (!word || prof_i_filter_read_time(word, ns_out)) return 0;
  return prof_i_fail(PROF_E_INVALID,
                     "%s: \"%s\" is not a time; write a number and ns, us, ms or s, as in 10us",
                     option, word);
}

/* ---- the size of a regular expression ---- */

/* a{1,250} makes 250 copies of a, and nested counts multiply. regcomp() of libc has no limit. Its
   time grows with the square of the size. */

enum { PATTERN_DEPTH_MAX = 200, PATTERN_SIZE_MOST = 1 << 30, PATTERN_COUNT_MOST = 1 << 20 };

/* The size of an open group so far. A following count repeats `last`. */
typedef struct group_size {
  uint32_t before, last;
} group_size;

static uint32_t size_clamped(uint64_t size) {
  return size < PATTERN_SIZE_MOST ? (uint32_t)size : PATTERN_SIZE_MOST;
}

static void group_put(group_size *to, uint32_t size) {
  to->before = size_clamped((uint64_t)to->before + to->last);
  to->last = size;
}

/* Returns the end of the bracket expression at `at`, such as [^]a-z[:space:]]. */
static const char *skip_bracket(const char *at) {
  at += at[1] == '^' ? 2 : 1;
  if (*at == ']') at++;
  while (*at && *at != ']') {
    const bool is_class = at[0] == '[' && at[1] && strchr(":.=", at[1]);
    const char ending[] = {at[1], ']', '\0'};
    const char *const end = is_class ? strstr(at + 2, ending) : NULL;
    at = end ? end + 2 : at + 1;
  }
  return *at ? at + 1 : at;
}

static uint32_t read_count(const char **at) {
  uint32_t count = 0;
  for (; **at >= '0' && **at <= '9'; ++*at)
    if (count < PATTERN_COUNT_MOST) count = count * 10 + (uint32_t)(**at - '0');
  return count;
}

/* The number of copies that {3}, {3,}, {3,5} or {,5} makes. Moves *at past it. 1: this is no
   count. */
static uint32_t copies_of_count(const char **at) {
  const char *to = *at + 1;
  uint32_t copies = read_count(&to);
  if (*to == ',') {
    to++;
    const bool is_open = *to == '}';
    const uint32_t most = read_count(&to);
    copies = is_open ? copies + 1 : most > copies ? most : copies;
  }
  if (*to != '}') return 1;
  *at = to;
  return copies ? copies : 1;
}

/* The group becomes one part of the group around it. */
static group_size *group_end(group_size *group) {
  group_put(group - 1, size_clamped((uint64_t)group->before + group->last));
  return group - 1;
}

/* How many characters the regular expression has when its counts are expanded, as in regcomp(). At
   most PATTERN_SIZE_MOST. UINT32_MAX: more than PATTERN_DEPTH_MAX groups are nested. */
static uint32_t pattern_size(const char *pattern) {
  group_size groups[PATTERN_DEPTH_MAX + 1] = {{0}}, *group = groups;
  for (const char *at = pattern; *at; at++) {
    switch (*at) {
      case '(':
        if (group == groups + PATTERN_DEPTH_MAX) return UINT32_MAX;
        *++group = (group_size){0};
        break;
      case ')':
        if (group == groups) break; /* regcomp() refuses it, or takes it as it is */
        group_put(group, 1);
        group = group_end(group);
        break;
      case '{':
        group->last = size_clamped((uint64_t)group->last * copies_of_count(&at));
        break;
      case '+': /* one, and any number */
        group->last = size_clamped((uint64_t)group->last * 2);
        break;
      case '*':
      case '?':
        break;
      case '[':
        at = skip_bracket(at) - 1;
        group_put(group, 1);
        break;
      case '\\':
        at += at[1] != '\0';
        group_put(group, 1);
        break;
      default:
        group_put(group, 1);
    }
  }
  while (group > groups) group = group_end(group); /* regcomp() refuses them */
  return size_clamped((uint64_t)group->before + group->last);
}

/* ---- the other words ---- */

/* Refuses patterns on which regcomp() of libc crashes (thousands of nested groups) or takes hours
   (large counts). */
static int check_name_size(const char *word) {
  const uint32_t size = pattern_size(word);
  if (size == UINT32_MAX)
    return prof_i_fail(PROF_E_INVALID, "--name: more than %d groups are nested in \"%.40s...\"",
                       PATTERN_DEPTH_MAX, word);
  if (size <= NAME_SIZE_MAX || size <= strlen(word)) return 0;
  return prof_i_fail(PROF_E_INVALID,
                     "--name: \"%s\" is too large: written out, its counts make %u%s characters, "
                     "and at most %d are allowed; use smaller counts",
                     word, size, size < PATTERN_SIZE_MOST ? "" : " or more", NAME_SIZE_MAX);
}

static int read_name(prof_i_filter *filter, const char *word) {
  char reason[REASON_BYTES];
  if (!word) return 0;
  const int refused = check_name_size(word);
  if (refused) return refused;
  const int error = regcomp(&filter->name, word, REG_EXTENDED | REG_NOSUB);
  if (!error) {
    filter->has_name = true;
    return 0;
  }
  regerror(error, &filter->name, reason, sizeof reason);
  return prof_i_fail(error == REG_ESPACE ? PROF_E_NO_MEMORY : PROF_E_INVALID,
                     "--name: \"%s\" is not a regular expression: %s; put a backslash before a "
                     "character that stands for itself",
                     word, reason);
}

static int read_level(prof_i_filter *filter, const char *word) {
  if (!word || strcmp(word, "0") == 0) return 0;
  if (strcmp(word, "1") != 0 && strcmp(word, "2") != 0)
    return prof_i_fail(PROF_E_INVALID, "--level: \"%s\" is not 0 (both), 1 or 2", word);
  filter->level = (uint32_t)(*word - '0');
  return 0;
}

static int read_steps(prof_i_filter *filter, const char *word) {
  if (!word) return 0;
  const char *at = word;
  const bool has_first = read_digits(&at, &filter->first_step);
  const bool is_range = strncmp(at, "..", 2) == 0;
  if (is_range) at += 2;
  filter->last_step = is_range ? UINT64_MAX : filter->first_step;
  const bool has_last = is_range && read_digits(&at, &filter->last_step);
  if (is_range && !has_last) filter->last_step = UINT64_MAX;
  if (*at || (!has_first && !has_last))
    return prof_i_fail(PROF_E_INVALID,
                       "--step: \"%s\" is not a step or a range; write 3, 3..5, 3.. or ..5", word);
  if (filter->first_step > filter->last_step)
    return prof_i_fail(PROF_E_INVALID, "--step: \"%s\" ends before it begins", word);
  filter->has_steps = true;
  return 0;
}

static int read_rank(prof_i_filter *filter, const char *word) {
  uint64_t rank = 0;
  if (!word) return 0;
  const char *at = word;
  if (!read_digits(&at, &rank) || *at || rank > INT32_MAX)
    return prof_i_fail(PROF_E_INVALID, "--rank: \"%s\" is not a rank; write 0, 1, 2 and so on",
                       word);
  filter->rank = (int32_t)rank;
  return 0;
}

static int read_args(prof_i_filter *filter, const char *const *words, size_t count) {
  if (count > PROF_I_FILTER_ARGS_MAX)
    return prof_i_fail(PROF_E_INVALID, "--arg is given %zu times; at most %d are known", count,
                       PROF_I_FILTER_ARGS_MAX);
  for (size_t i = 0; i < count; i++) {
    const char *const equals = strchr(words[i], '=');
    if (!equals || equals == words[i])
      return prof_i_fail(PROF_E_INVALID, "--arg: \"%s\" is not KEY=VALUE", words[i]);
    filter->args[filter->arg_count++] = (prof_i_filter_arg){
        .key = words[i], .key_bytes = (size_t)(equals - words[i]), .value = equals + 1};
  }
  return 0;
}

bool prof_i_filter_takes_device(const char *word, prof_device device) {
  char text[DEVICE_WORD_BYTES];
  prof_i_put_device(text, sizeof text, device);
  if (strcmp(text, word) == 0) return true;
  char *const colon = strchr(text, ':');
  *colon = '\0';
  return strcmp(text, word) == 0;
}

/* Any index is fine: the captures have their own. */
static int read_device(const char *word) {
  if (!word) return 0;
  const size_t type_bytes = strcspn(word, ":");
  const char *const index = word + type_bytes + 1;
  for (int32_t type = 0; type < DEVICE_TYPES_MAX; type++) {
    char text[DEVICE_WORD_BYTES];
    prof_i_put_device(text, sizeof text, (prof_device){type, 0});
    if (strcspn(text, ":") != type_bytes || strncmp(text, word, type_bytes) != 0) continue;
    if (!word[type_bytes] || (*index && strspn(index, "0123456789") == strlen(index))) return 0;
  }
  return prof_i_fail(PROF_E_INVALID,
                     "--device: \"%s\" is not a device; write cpu, cuda, hip or opencl, with an "
                     "index behind it for one device, as in cuda:0",
                     word);
}

static int check_window(const prof_i_filter *filter) {
  if (!filter->words.to || filter->to_ns > filter->from_ns) return 0;
  return prof_i_fail(PROF_E_INVALID, "--to: \"%s\" is not after --from, \"%s\"", filter->words.to,
                     filter->words.from ? filter->words.from : "0");
}

static int read_words(prof_i_filter *filter) {
  const prof_i_filter_words *const words = &filter->words;
  filter->to_ns = UINT64_MAX;
  int status = read_name(filter, words->name);
  if (!status) status = read_level(filter, words->level);
  if (!status) status = read_time_word("--min", words->min, &filter->min_ns);
  if (!status) status = read_time_word("--from", words->from, &filter->from_ns);
  if (!status) status = read_time_word("--to", words->to, &filter->to_ns);
  if (!status) status = check_window(filter);
  if (!status) status = read_steps(filter, words->step);
  if (!status) status = read_rank(filter, words->rank);
  if (!status) status = read_device(words->device);
  if (!status) status = read_args(filter, words->args, words->arg_count);
  return status;
}

const char **prof_i_filter_word(prof_i_filter_words *words, size_t index, const char **name_out) {
  static const struct {
    const char *name;
    size_t offset;
  } list[] = {{"name", offsetof(prof_i_filter_words, name)},
              {"category", offsetof(prof_i_filter_words, category)},
              {"thread", offsetof(prof_i_filter_words, thread)},
              {"process", offsetof(prof_i_filter_words, process)},
              {"device", offsetof(prof_i_filter_words, device)},
              {"level", offsetof(prof_i_filter_words, level)},
              {"min", offsetof(prof_i_filter_words, min)},
              {"from", offsetof(prof_i_filter_words, from)},
              {"to", offsetof(prof_i_filter_words, to)},
              {"step", offsetof(prof_i_filter_words, step)}};
  if (index >= sizeof list / sizeof *list) return NULL;
  *name_out = list[index].name;
  return (const char **)((char *)words + list[index].offset);
}

/* The value behind "NAME=". NULL: the text is of another option. */
static const char *value_of(const char *text, const char *name) {
  const size_t bytes = strlen(name);
  return strncmp(text, name, bytes) == 0 && text[bytes] == '=' ? text + bytes + 1 : NULL;
}

static bool read_option(prof_i_filter_words *words, const char *text) {
  const char *name, **word;
  for (size_t i = 0; (word = prof_i_filter_word(words, i, &name)) != NULL; i++) {
    const char *const value = value_of(text, name);
    if (!value) continue;
    *word = value;
    return true;
  }
  return false;
}

int prof_i_filter_words_read(prof_i_filter_words *words, const char *const *texts, size_t count,
                             const char **args) {
  *words = (prof_i_filter_words){.args = args};
  for (size_t i = 0; i < count; i++) {
    const char *const arg = value_of(texts[i], "arg");
    if (arg)
      args[words->arg_count++] = arg;
    else if (!read_option(words, texts[i]))
      return prof_i_fail(PROF_E_INVALID, "\"%s\" is not NAME=VALUE of a filter", texts[i]);
  }
  return PROF_OK;
}

int prof_i_filter_create(const prof_i_filter_words *words, prof_i_filter **filter_out) {
  prof_i_filter *const filter = calloc(1, sizeof *filter);
  if (!filter) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a filter");
  filter->words = *words;
  const int status = read_words(filter);
  if (status)
    prof_i_filter_destroy(filter);
  else
    *filter_out = filter;
  return status;
}

void prof_i_filter_destroy(prof_i_filter *filter) {
  if (!filter) return;
  if (filter->has_name) regfree(&filter->name);
  free(filter);
}
