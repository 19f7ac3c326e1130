/* prof dump FILE -o OUT: a capture as a trace that viewers open. */
#define _GNU_SOURCE
#include <getopt.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/path.h"
#include "../run/output.h"
#include "commands.h"
#include "filter_options.h"
#include "formats.h"

/* Devices and pipes need no ending, and get Chrome JSON. */
static bool is_special(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

static int refuse_ending(const char *output) {
  const char *const other = prof_i_path_ends_in(output, ".svg")    ? "prof flame"
                            : prof_i_path_ends_in(output, ".html") ? "prof report"
                                                                   : NULL;
  if (other)
    say("prof dump: '%s': %s writes such a file", output, other);
  else
    say("prof dump: no format has the ending of '%s'. The endings are %s; or give --format", output,
        format_endings_text());
  return EXIT_USAGE;
}

/* What viewers open, and what a plain scope takes at least. Chrome JSON becomes one string, which
   in Chrome has fewer than 2^29 characters. Perfetto's module has 2 GB, and a trace takes there
   several times its size. */
static const struct {
  prof_format format;
  uint32_t event_bytes, limit_mb;
  const char *viewer, *instead;
} viewer_limits[] = {
    {PROF_FORMAT_CHROME, 90, 512, "chrome://tracing", "a .pftrace has a quarter of that"},
    {PROF_FORMAT_PERFETTO, 22, 1000, "Perfetto in a browser", "trace_processor opens it all"}};

/* Before the file is written, because that may take long. */
static void warn_of_size(const prof_trace *trace, const char *output, uint32_t format) {
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_info_get(trace, &info) != PROF_OK) return;
  if (format == PROF_FORMAT_DEFAULT) format = PROF_FORMAT_CHROME;
  for (size_t i = 0; i < sizeof viewer_limits / sizeof *viewer_limits; i++) {
    const uint64_t mb = info.event_count * viewer_limits[i].event_bytes / 1000000;
    if ((uint32_t)viewer_limits[i].format == format && mb > viewer_limits[i].limit_mb)
      say("prof dump: %s will have about %llu MB without compression, and %s opens about %u MB; "
          "%s",
          output, (unsigned long long)mb, viewer_limits[i].viewer, viewer_limits[i].limit_mb,
          viewer_limits[i].instead);
  }
}

static int read_dump_words(int argc, char **argv, prof_dump_options *options,
                           const char **output_out) {
  filter_options window = {0};
  for (int c; (c = command_option_next(&command_dump, argc, argv)) != -1;) {
    if (c == 'o')
      *output_out = optarg;
    else if (c == 'f' ? choose_format("dump", optarg, &options->format) != EXIT_OK
                      : !filter_options_take(&window, c))
      return EXIT_USAGE;
  }
  const int status = filter_options_finish("dump", &window); /* checks both times */
  filter_options_free(&window);
  if (status != EXIT_OK) return status;
  if (window.words.from) prof_i_filter_read_time(window.words.from, &options->from_ns);
  if (window.words.to) prof_i_filter_read_time(window.words.to, &options->to_ns);
  return EXIT_OK;
}

/* Did the reader of the standard output go away, and is this where the output went? */
static bool is_reader_gone(const char *output) {
  struct stat to, standard;
  struct pollfd poll_of = {.fd = STDOUT_FILENO};
  return stat(output, &to) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
         to.st_dev == standard.st_dev && to.st_ino == standard.st_ino &&
         poll(&poll_of, 1, 0) == 1 && (poll_of.revents & POLLERR);
}

static int execute_dump(int argc, char **argv) {
  prof_dump_options options = {.size = sizeof options};
  const char *output = NULL;
  const int words_status = read_dump_words(argc, argv, &options, &output);
  if (words_status != EXIT_OK) return words_status;
  if (argc - optind != 1)
    return refuse_words("dump", "takes one capture, and -o OUT for the file to write", NULL);
  if (!output) return refuse_words("dump", "needs -o OUT", NULL);
  if (options.format == PROF_FORMAT_DEFAULT && strcmp(output, "-") != 0) {
    if (is_special(output)) options.format = PROF_FORMAT_CHROME;
    if (!format_ending(output, &options.format) && !is_special(output))
      return refuse_ending(output);
  }
  if (output_is_input(output, argv[optind]))
    return refuse_words("dump", "would write over the capture itself:", output);
  if (strcmp(output, "-") == 0)
    return refuse_words("dump", "for the standard output give -o /dev/stdout, not", output);
  const char *to = output;
  if (output_follow_link("dump", &to) != EXIT_OK) return EXIT_FAILED;
  options.gzip = prof_i_path_ends_in(output, ".gz"); /* a link's ending decides, not its file's */
  if (to != output) to = run_output_escaped(to);     /* a % of the file's name is no mark */
  prof_trace *const trace = open_capture(argv[optind]);
  if (!trace) return EXIT_FAILED;
  warn_of_size(trace, output, options.format);
  const int status = prof_trace_dump(trace, to, &options);
  prof_trace_destroy(trace);
  if (status == PROF_OK) {
    const char *const lacks = format_lacks(options.format);
    if (lacks) say("prof dump: %s has %s", output, lacks);
    return EXIT_OK;
  }
  if (is_reader_gone(output)) raise(SIGPIPE); /* as the other commands end */
  const char *const error = prof_last_error(), *const text = prof_status_text(status);
  if (strcasestr(error, text))
    say("prof dump: %s", error);
  else
    say("prof dump: %s: %s", text, error);
  return EXIT_FAILED;
}

static const command_option options_of_dump[] = {
    {"output", 'o', "OUT",
     .help = "the file to write; its ending selects the format: .json, .pftrace, .csv, .folded, "
             ".speedscope.json, each also with .gz behind it, .pb.gz, or .prof"},
    {"format", 'f', "FORMAT",
     .help = "chrome (chrome://tracing and Perfetto), perfetto, csv, folded (flame graphs), "
             "speedscope, pprof, raf, or capture (a copy); default by OUT's ending"},
    {.name = "from",
     .argument = "TIME",
     .id = FILTER_FROM,
     .help = "only events that end after this time of the capture, as 1.5s"},
    {.name = "to",
     .argument = "TIME",
     .id = FILTER_TO,
     .help = "only events that begin before this time, as 2s"},
    {0}};

static const command_example examples[] = {
    {"prof dump trace.prof -o trace.json.gz", "a trace for Perfetto, compressed"},
    {"prof dump trace.prof --from 2ms --to 5ms -o part.json", "a part of it"},
    {0}};

const prof_command command_dump = {
    .name = "dump",
    .summary = "writes a capture as a trace for Perfetto and other viewers",
    .words = "FILE -o OUT [--format FORMAT]",
    .about = "Writes a capture as a trace that viewers open.",
    .options = options_of_dump,
    .examples = examples,
    .execute = execute_dump,
    .reads_captures = true};
