/* prof dump FILE -o OUT: a capture as a trace that viewers open. */
#define _GNU_SOURCE
#include <getopt.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "commands.h"

static const command_choice formats[] = {{"chrome", PROF_FORMAT_CHROME},
                                         {"raf", PROF_FORMAT_RAF},
                                         {"capture", PROF_FORMAT_CAPTURE},
                                         {NULL, 0}};

int choose_format(const char *command, const char *word, uint32_t *to) {
  return command_read_choice(command, "--format", word, formats, to);
}

static int execute_dump(int argc, char **argv) {
  prof_dump_options options = {.size = sizeof options};
  const char *output = NULL;
  for (int c; (c = command_option_next(&command_dump, argc, argv)) != -1;) {
    if (c == 'o')
      output = optarg;
    else if (c != 'f' || choose_format("dump", optarg, &options.format) != EXIT_OK)
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

static const command_option options_of_dump[] = {
    {"output", 'o', "OUT", .help = "the file to write; OUT.gz is compressed"},
    {"format", 'f', "FORMAT",
     .help = "chrome (chrome://tracing and Perfetto), raf, or capture (a copy); default chrome"},
    {0}};

static const command_example examples[] = {
    {"prof dump trace.prof -o trace.json.gz", "a trace for Perfetto, compressed"}, {0}};

const prof_command command_dump = {
    .name = "dump",
    .summary = "writes a capture as a trace for chrome://tracing and Perfetto",
    .words = "FILE -o OUT [--format FORMAT]",
    .about = "Writes a capture as a trace that viewers open.",
    .options = options_of_dump,
    .examples = examples,
    .execute = execute_dump};
