/* prof dump FILE -o OUT: a capture as a trace that viewers open. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"

static const struct {
  const char *word;
  prof_format format;
} formats[] = {
    {"chrome", PROF_FORMAT_CHROME}, {"raf", PROF_FORMAT_RAF}, {"capture", PROF_FORMAT_CAPTURE}};

int choose_format(const char *command, const char *word, uint32_t *to) {
  for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
    if (strcmp(word, formats[i].word) == 0) {
      *to = formats[i].format;
      return EXIT_OK;
    }
  return refuse_words(command, "--format: no such format:", word);
}

int command_dump(int argc, char **argv) {
  static const struct option words[] = {{"output", 1, 0, 'o'}, {"format", 1, 0, 'f'}, {0, 0, 0, 0}};
  prof_dump_options options = {.size = sizeof options};
  const char *output = NULL;
  for (int c; (c = getopt_long(argc, argv, "o:", words, NULL)) != -1;) {
    if (c == 'o')
      output = optarg;
    else if (c != 'f')
      return refuse_option("dump", argc, argv);
    else if (choose_format("dump", optarg, &options.format) != EXIT_OK)
      return EXIT_USAGE;
  }
  if (argc - optind != 1) return refuse_words("dump", "takes one capture", NULL);
  if (!output) return refuse_words("dump", "needs -o OUT", NULL);
  struct stat from, to;
  if (stat(argv[optind], &from) == 0 && stat(output, &to) == 0 && from.st_dev == to.st_dev &&
      from.st_ino == to.st_ino)
    return refuse_words("dump", "would write over the capture itself:", output);
  if (strcmp(output, "-") == 0)
    return refuse_words("dump", "for the standard output give -o /dev/stdout, not", output);
  prof_trace *const trace = open_capture(argv[optind]);
  if (!trace) return EXIT_FAILED;
  const int status = prof_trace_dump(trace, output, &options);
  prof_trace_destroy(trace);
  if (status == PROF_OK) return EXIT_OK;
  const char *const error = prof_last_error(), *const text = prof_status_text(status);
  if (strcasestr(error, text))
    say("prof dump: %s", error);
  else
    say("prof dump: %s: %s", text, error);
  return EXIT_FAILED;
}
