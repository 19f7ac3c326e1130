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

#include "commands.h"
#include "filter_options.h"

/* The endings select a format without --format. lacks: what the command says of the file. */
static const struct {
  const char *word;
  prof_format format;
  const char *endings[2];
  const char *lacks;
} formats[] = {
    {"chrome", PROF_FORMAT_CHROME, {".json", ".json.gz"}, NULL},
    {"raf", PROF_FORMAT_RAF, {NULL, NULL}, "only scopes, in whole microseconds"},
    {"capture", PROF_FORMAT_CAPTURE, {".prof", NULL}, NULL},
    {"perfetto",
     PROF_FORMAT_PERFETTO,
     {".pftrace", ".pftrace.gz"},
     "no stacks of Python functions, no clocks of devices"},
    {"csv", PROF_FORMAT_CSV, {".csv", ".csv.gz"}, "no arguments, arrows or memory"},
    {"folded", PROF_FORMAT_FOLDED, {".folded", ".folded.gz"}, "only the self times of call paths"},
    {"speedscope",
     PROF_FORMAT_SPEEDSCOPE,
     {".speedscope.json", ".speedscope.json.gz"},
     "only the self times of call paths"},
    {"pprof", PROF_FORMAT_PPROF, {".pb.gz", ".pb"}, "only the calls and self times of call paths"}};
enum { FORMAT_COUNT = sizeof formats / sizeof *formats };

static bool ends_with(const char *path, const char *ending) {
  const size_t bytes = strlen(path), ending_bytes = strlen(ending);
  return bytes > ending_bytes && strcmp(path + bytes - ending_bytes, ending) == 0;
}

/* Devices and pipes need no ending, and get Chrome JSON. */
static bool is_special(const char *path) {
  struct stat status;
  return stat(path, &status) == 0 && !S_ISREG(status.st_mode);
}

/* Index in formats by the path's longest ending, or FORMAT_COUNT. */
static int format_of_path(const char *path) {
  int found = FORMAT_COUNT;
  size_t longest = 0;
  for (int i = 0; i < FORMAT_COUNT; i++)
    for (int k = 0; k < 2 && formats[i].endings[k]; k++)
      if (ends_with(path, formats[i].endings[k]) && strlen(formats[i].endings[k]) > longest) {
        found = i;
        longest = strlen(formats[i].endings[k]);
      }
  return found == FORMAT_COUNT && is_special(path) ? 0 : found;
}

static int refuse_ending(const char *output) {
  char text[256];
  size_t used = 0;
  for (int i = 0; i < FORMAT_COUNT; i++)
    for (int k = 0; k < 2 && formats[i].endings[k]; k++)
      used += (size_t)snprintf(text + used, sizeof text - used, "%s%s", used ? ", " : "",
                               formats[i].endings[k]);
  const char *const other = ends_with(output, ".svg")    ? "prof flame"
                            : ends_with(output, ".html") ? "prof report"
                                                         : NULL;
  if (other)
    say("prof dump: '%s': %s writes such a file", output, other);
  else
    say("prof dump: no format has the ending of '%s'. The endings are %s; or give --format", output,
        text);
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

/* What the written file cannot hold. */
static void say_what_lacks(const char *output, uint32_t format) {
  for (int i = 0; i < FORMAT_COUNT; i++)
    if ((uint32_t)formats[i].format == format && formats[i].lacks)
      say("prof dump: %s has %s", output, formats[i].lacks);
}

int choose_format(const char *command, const char *word, uint32_t *to) {
  command_choice choices[FORMAT_COUNT + 1] = {{NULL, 0}};
  for (int i = 0; i < FORMAT_COUNT; i++)
    choices[i] = (command_choice){formats[i].word, formats[i].format};
  return command_read_choice(command, "--format", word, choices, to);
}

/* What the words of the command say. */
typedef struct dump_words {
  prof_dump_options options;
  const char *output;
  bool is_packed;
} dump_words;

static int read_dump_words(int argc, char **argv, dump_words *to) {
  prof_dump_options *const options = &to->options;
  filter_options window = {0};
  for (int c; (c = command_option_next(&command_dump, argc, argv)) != -1;) {
    if (c == 'o')
      to->output = optarg;
    else if (c == 'P')
      to->is_packed = true;
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

/* The format by the words, or by the ending of OUT. */
static int select_format(dump_words *words) {
  uint32_t *const format = &words->options.format;
  if (*format == PROF_FORMAT_DEFAULT && strcmp(words->output, "-") != 0) {
    const int by_ending = format_of_path(words->output);
    if (by_ending == FORMAT_COUNT) return refuse_ending(words->output);
    *format = formats[by_ending].format;
  }
  if (!words->is_packed) return EXIT_OK;
  if (*format != PROF_FORMAT_CAPTURE)
    return refuse_words("dump", "--pack is for captures: give -o FILE.prof, not", words->output);
  *format = PROF_FORMAT_PACKED;
  return EXIT_OK;
}

static int execute_dump(int argc, char **argv) {
  dump_words words = {.options = {.size = sizeof words.options}};
  int words_status = read_dump_words(argc, argv, &words);
  const prof_dump_options *const options = &words.options;
  const char *const output = words.output;
  if (words_status != EXIT_OK) return words_status;
  if (argc - optind != 1)
    return refuse_words("dump", "takes one capture, and -o OUT for the file to write", NULL);
  if (!output) return refuse_words("dump", "needs -o OUT", NULL);
  words_status = select_format(&words);
  if (words_status != EXIT_OK) return words_status;
  struct stat from, to;
  if (stat(argv[optind], &from) == 0 && stat(output, &to) == 0 && from.st_dev == to.st_dev &&
      from.st_ino == to.st_ino)
    return refuse_words("dump", "would write over the capture itself:", output);
  if (strcmp(output, "-") == 0)
    return refuse_words("dump", "for the standard output give -o /dev/stdout, not", output);
  prof_trace *const trace = open_capture(argv[optind]);
  if (!trace) return EXIT_FAILED;
  warn_of_size(trace, output, options->format);
  const int status = prof_trace_dump(trace, output, options);
  prof_trace_destroy(trace);
  if (status == PROF_OK) {
    say_what_lacks(output, options->format);
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
    {.name = "pack",
     .id = 'P',
     .help = "with -o FILE.prof: a packed capture. Every command reads it, and it takes a tenth or "
             "less of the bytes. Needs zstd (libzstd.so.1)"},
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
    {"prof dump trace.prof -o small.prof --pack", "the same capture, in fewer bytes"},
    {0}};

const prof_command command_dump = {
    .name = "dump",
    .summary = "writes a capture as a trace for Perfetto and other viewers",
    .words = "FILE -o OUT [--format FORMAT] [--pack]",
    .about = "Writes a capture as a trace that viewers open.",
    .options = options_of_dump,
    .examples = examples,
    .execute = execute_dump,
    .reads_captures = true};
