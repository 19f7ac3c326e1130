/* prof dump FILE -o OUT: a capture as a trace that viewers open. src/export/dump.c writes. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/text.h"
#include "../../src/export/exporter.h"
#include "../../src/export/merge.h"
#include "../run/output.h"
#include "commands.h"
#include "inputs.h"
#include "shared_options.h"

enum { PASSES = 3 };

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
    say("prof dump: no format has the ending of '%s'. The endings are %s, .parquet, .arrow; or "
        "give "
        "--format",
        output, format_endings_text());
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
static void warn_of_size(uint64_t event_count, const char *output, uint32_t format) {
  if (format == PROF_FORMAT_DEFAULT) format = PROF_FORMAT_CHROME;
  for (size_t i = 0; i < sizeof viewer_limits / sizeof *viewer_limits; i++) {
    const uint64_t mb = event_count * viewer_limits[i].event_bytes / 1000000;
    if ((uint32_t)viewer_limits[i].format == format && mb > viewer_limits[i].limit_mb)
      say("prof dump: %s will have about %llu MB without compression, and %s opens about %u MB; "
          "%s",
          output, (unsigned long long)mb, viewer_limits[i].viewer, viewer_limits[i].limit_mb,
          viewer_limits[i].instead);
  }
}

typedef struct dump_words {
  prof_dump_options options;
  const char *output;
  filter_options filter; /* without the times, which are options */
  bool is_packed;
} dump_words;

/* Checks --from and --to. They select the events that overlap that time. */
static int take_times(dump_words *w) {
  filter_options times = {.words = {.from = w->filter.words.from, .to = w->filter.words.to}};
  const int status = filter_options_finish("dump", &times);
  filter_options_free(&times);
  if (status != EXIT_OK) return status;
  if (times.words.from) prof_i_filter_read_time(times.words.from, &w->options.from_ns);
  if (times.words.to) prof_i_filter_read_time(times.words.to, &w->options.to_ns);
  w->filter.words.from = w->filter.words.to = NULL;
  return EXIT_OK;
}

static int read_dump_words(int argc, char **argv, dump_words *w) {
  for (int c; (c = command_option_next(&command_dump, argc, argv)) != -1;) {
    if (c == 'o')
      w->output = optarg;
    else if (c == 'P')
      w->is_packed = true;
    else if (c == 'f' ? choose_format("dump", optarg, true, &w->options.format) != EXIT_OK
                      : !filter_options_take(&w->filter, c))
      return EXIT_USAGE;
  }
  const int status = take_times(w);
  return status == EXIT_OK ? filter_options_finish("dump", &w->filter) : status;
}

/* Did the reader of the standard output go away, and is this where the output went? */
static bool is_reader_gone(const char *output) {
  struct stat to, standard;
  struct pollfd poll_of = {.fd = STDOUT_FILENO};
  return stat(output, &to) == 0 && fstat(STDOUT_FILENO, &standard) == 0 &&
         to.st_dev == standard.st_dev && to.st_ino == standard.st_ino &&
         poll(&poll_of, 1, 0) == 1 && (poll_of.revents & POLLERR);
}

/* If it were packed in place of its file, the other captures would be lost. */
static bool is_one_of_several(const char *input) { return input_file_of(input).part > 0; }

/* Checks options that are valid alone, but perhaps not together. */
static int check_words(dump_words *w, const char *input) {
  const char *const output = w->output;
  if (!output) return refuse_words("dump", "needs -o OUT", NULL);
  if (w->options.format == PROF_FORMAT_DEFAULT && strcmp(output, "-") != 0) {
    if (is_special(output)) w->options.format = PROF_FORMAT_CHROME;
    if (!prof_i_export_suffix_of(output, &w->options.format) &&
        !format_of_columns_by_path(output, &w->options.format) && !is_special(output))
      return refuse_ending(output);
  }
  if (w->is_packed && w->options.format != PROF_FORMAT_CAPTURE)
    return refuse_words("dump", "--pack is for captures: give -o FILE.prof, not", output);
  if (output_is_input(output, input) && (!w->is_packed || is_one_of_several(input)))
    return refuse_words("dump", "would write over the capture itself:", output);
  if (strcmp(output, "-") == 0)
    return refuse_words("dump", "for the standard output give -o /dev/stdout, not", output);
  if (w->filter.filter && w->options.format == PROF_FORMAT_CAPTURE)
    return refuse_words(
        "dump", "cannot filter a capture (.prof); with a filter, give another ending than that of",
        output);
  if (format_of_columns(w->options.format) && is_special(output))
    return refuse_words("dump", "writes Parquet and Arrow to regular files only, not to", output);
  if (w->is_packed) w->options.format = PROF_FORMAT_PACKED;
  w->options.gzip = prof_i_path_ends_in(output, ".gz"); /* a link's ending, not its file's */
  return EXIT_OK;
}

static int say_refusal(int status, const char *output) {
  if (is_reader_gone(output)) raise(SIGPIPE); /* as the other commands end */
  const char *const error = prof_last_error(), *const text = prof_status_text(status);
  if (!strcasestr(error, text)) return say_status("dump", status);
  say("prof dump: %s", error);
  return EXIT_FAILED;
}

/* Appends ", 2 of 3 arrows" unless the capture, or the format, has none. */
static void append_count(char *to, size_t room, const char *what, prof_i_filtered_count count) {
  const size_t used = strlen(to);
  const uint64_t all = count.written + count.left_out;
  if (all > 0)
    snprintf(to + used, room - used, "%s%" PRIu64 " of %" PRIu64 " %s", used > 0 ? ", " : "",
             count.left_out, all, what);
}

static void say_what_is_filtered(const char *output, const prof_i_export_filtered *filtered) {
  char text[256] = "";
  append_count(text, sizeof text, "scopes", filtered->scopes);
  append_count(text, sizeof text, "arrows", filtered->arrows);
  append_count(text, sizeof text, "allocations and frees", filtered->memory);
  append_count(text, sizeof text, "counters and instants", filtered->values);
  say("prof dump: %s is filtered. Left out: %s", output, text);
}

/* The outcome of an export: what the file holds and what it lacks. */
typedef struct dump_result {
  prof_i_export_filtered filtered; /* only with a filter */
  prof_i_export_lacks lacks;
  prof_i_export_facts facts;
} dump_result;

/* Says what the file does not have. */
static int say_what_lacks(const dump_words *w, const dump_result *result) {
  const bool has_filter = w->filter.filter != NULL;
  if (has_filter && result->filtered.event_count == 0) return filter_says_nothing("dump");
  if (has_filter) say_what_is_filtered(w->output, &result->filtered);
  dump_say_lacks(w->output, w->options.format, &result->lacks, &result->facts, has_filter);
  return EXIT_OK;
}

/* Whether an event is between --from and --to. True on an error, which the dump then reports. */
static bool has_events_in_time(const prof_trace *trace, const prof_dump_options *options) {
  const prof_i_window window = {options->from_ns, options->to_ns};
  prof_cursor *cursor;
  prof_event event = {0};
  if (prof_cursor_create(trace, &cursor) != PROF_OK) return true;
  int status = prof_cursor_skip_before(cursor, window.from_ns);
  while (status >= 0 && (status = prof_cursor_next(cursor, &event)) == 1)
    if (prof_i_window_contains(&window, event.start_ns, event.start_ns + event.duration_ns)) break;
  prof_cursor_destroy(cursor);
  return status != 0;
}

/* The process would go on to write into a file that has no name any more. */
static bool is_recorded_in_place(const prof_trace *trace, const char *input, const char *output) {
  prof_trace_info info = {.size = sizeof info};
  return output_is_input(output, input) && prof_trace_info_get(trace, &info) == PROF_OK &&
         !info.was_clean && (info.is_live || info.is_elsewhere);
}

/* For a copy of a capture the library refuses --from and --to. */
static bool is_cut_to_nothing(const prof_trace *trace, const prof_dump_options *options) {
  const bool is_copy =
      options->format == PROF_FORMAT_CAPTURE || options->format == PROF_FORMAT_PACKED;
  return (options->from_ns || options->to_ns) && !is_copy && !has_events_in_time(trace, options);
}

static int say_no_event_in_time(void) {
  say("prof dump: the capture has nothing in that time");
  return EXIT_NO;
}

/* merged: placed, or NULL. path: expanded. Python opens the file of the capture again. */
static int execute_columns(const dump_words *w, const char *input, const merge_files *merged,
                           const prof_i_export_facts *facts, const char *path) {
  const prof_i_export_lacks none = {0};
  const int status = dump_columns(&(columns_request){.input = input,
                                                     .merged = merged,
                                                     .to = path,
                                                     .shown = w->output,
                                                     .format = format_of_columns(w->options.format),
                                                     .from_ns = w->options.from_ns,
                                                     .to_ns = w->options.to_ns,
                                                     .filter = &w->filter});
  if (status == EXIT_NO) return filter_says_nothing("dump");
  if (status == EXIT_OK) dump_say_lacks(w->output, w->options.format, &none, facts, false);
  return status;
}

/* ---- merged captures ---- */

/* What a file of several captures can be. */
static int check_merged(const dump_words *w, const char *input, uint32_t count) {
  const uint32_t format = w->options.format;
  if (format == PROF_FORMAT_CAPTURE || format == PROF_FORMAT_PACKED) {
    say("prof dump: '%s' has %u captures: prof merge copies them, and prof dump '%s#1' --pack "
        "packs one",
        input, count, input);
    return EXIT_USAGE;
  }
  if (format_of_columns(format) || (prof_i_exporter_of(format)->abilities & PROF_I_EXPORT_MERGED))
    return EXIT_OK;
  say("prof dump: '%s' has %u captures, and this format holds one: write another format, or give "
      "one capture, as '%s#1'",
      input, count, input);
  return EXIT_USAGE;
}

/* Whether an event of a capture is between --from and --to. */
static bool have_events_in_time(const dump_words *w, const merge_files *list) {
  bool has_events = !w->options.from_ns && !w->options.to_ns;
  for (uint32_t i = 0; i < list->count && !has_events; i++) {
    const prof_i_window window = {w->options.from_ns, w->options.to_ns},
                        own = prof_i_merge_window(list->captures, list->count, i, &window);
    const prof_dump_options options = {.from_ns = own.from_ns, .to_ns = own.to_ns};
    prof_trace *trace = NULL;
    has_events = prof_trace_open(list->files[i].path, &trace) != PROF_OK ||
                 has_events_in_time(trace, &options);
    prof_trace_destroy(trace);
  }
  return has_events;
}

/* The captures are placed. */
static int write_placed(const dump_words *w, const merge_files *list, const char *to) {
  const prof_i_merge_plan plan = {.format = w->options.format,
                                  .is_gzip = w->options.gzip == 1,
                                  .window = {w->options.from_ns, w->options.to_ns},
                                  .filter = w->filter.filter};
  dump_result result = {.facts = {0}};
  uint64_t event_count = 0;
  if (!have_events_in_time(w, list)) return say_no_event_in_time();
  for (uint32_t i = 0; i < list->count; i++) {
    event_count += list->captures[i].event_count;
    prof_i_export_facts_sum(&result.facts, &list->captures[i].facts);
  }
  if (format_of_columns(w->options.format)) {
    progress_end();
    return execute_columns(w, list->files[0].path, list, &result.facts, to);
  }
  warn_of_size(event_count, w->output, w->options.format);
  const int status = merge_files_write(list, to, &plan, &result.filtered, &result.lacks);
  progress_end();
  return status == PROF_OK ? say_what_lacks(w, &result) : say_refusal(status, w->output);
}

static int write_merged(const dump_words *w, const char *input, const char *to) {
  merge_files list = {.command = "dump"};
  progress_begin("dump", PASSES);
  int status = merge_files_add(&list, input);
  for (uint32_t i = 0; i < list.count; i++) progress_expect(list.files[i].path);
  if (status == EXIT_OK)
    status =
        merge_files_place(&list, false, "prof merge --unaligned makes a file that can be read");
  if (status == EXIT_OK) status = write_placed(w, &list, to);
  if (status == EXIT_OK) merge_files_say_places(&list, false);
  merge_files_free(&list);
  return status;
}

/* Expands a pattern as the library does: %p. The process is known only now, and so is whether the
   pattern names the capture. */
static int expand_output(const prof_trace *trace, const dump_words *w, const char *input,
                         const char *pattern, char path_out[PROF_I_PATH_BYTES]) {
  prof_trace_info info = {.size = sizeof info};
  int status = prof_trace_info_get(trace, &info);
  const prof_i_path_words words = {info.pid, info.rank, info.host};
  if (status == PROF_OK) status = prof_i_expand_path(pattern, &words, path_out, PROF_I_PATH_BYTES);
  if (status != PROF_OK) return say_status("dump", status);
  if (!output_is_input(w->output, input) && output_is_input(path_out, input))
    return refuse_words("dump", "would write over the capture itself:", path_out);
  return EXIT_OK;
}

/* Writes Parquet or Arrow. */
static int write_columns(const dump_words *w, const char *input, const char *to) {
  input_named named;
  prof_i_export_facts facts = {0};
  char path[PROF_I_PATH_BYTES];
  progress_begin("dump", PASSES);
  prof_trace *const trace = input_named_open(input, w->output, &named);
  progress_end();
  if (!trace) return EXIT_FAILED;
  const bool has_events = !is_cut_to_nothing(trace, &w->options);
  int status = expand_output(trace, w, input, to, path);
  prof_i_export_facts_add(&facts, trace);
  prof_trace_destroy(trace);
  if (status == EXIT_OK)
    status =
        has_events ? execute_columns(w, named.path, NULL, &facts, path) : say_no_event_in_time();
  input_named_close(&named);
  return status;
}

static int write_dump(const dump_words *w, const char *input, const char *to) {
  dump_result result = {.facts = {0}};
  char path[PROF_I_PATH_BYTES];
  progress_begin("dump", PASSES);
  prof_trace *const trace = open_capture_for(input, w->is_packed ? NULL : w->output);
  if (!trace) return EXIT_FAILED;
  const int expanded = expand_output(trace, w, input, to, path);
  if (expanded != EXIT_OK) {
    prof_trace_destroy(trace);
    progress_end();
    return expanded;
  }
  if (is_recorded_in_place(trace, input, w->output)) {
    prof_trace_destroy(trace);
    progress_end();
    say("prof dump: '%s' cannot be packed in place: its process runs, or may run; name another "
        "file",
        input);
    return EXIT_FAILED;
  }
  if (is_cut_to_nothing(trace, &w->options)) {
    prof_trace_destroy(trace);
    progress_end();
    return say_no_event_in_time();
  }
  prof_trace_info info = {.size = sizeof info};
  if (prof_trace_info_get(trace, &info) == PROF_OK)
    warn_of_size(info.event_count, w->output, w->options.format);
  prof_i_export_facts_add(&result.facts, trace);
  const int status = prof_i_dump_filtered(trace, to, &w->options, w->filter.filter,
                                          &result.filtered, &result.lacks);
  prof_trace_destroy(trace);
  progress_end();
  return status == PROF_OK ? say_what_lacks(w, &result) : say_refusal(status, w->output);
}

/* to: the output, or the target if it is a link. The target of a link is not a pattern, so its %
   is escaped. */
static int write_output(const dump_words *w, const char *input, const char *to) {
  const char *const pattern = to == w->output ? to : run_output_escaped(to);
  uint32_t part_count = 1;
  if (prof_trace_part_count(input, &part_count) == PROF_OK && part_count > 1) {
    int status = check_merged(w, input, part_count);
    if (status == EXIT_OK && to == w->output) status = output_expand_for_several("dump", &to);
    if (status == EXIT_OK && output_is_input(to, input))
      return refuse_words("dump", "would write over the capture itself:", to);
    return status == EXIT_OK ? write_merged(w, input, to) : status;
  }
  return format_of_columns(w->options.format) ? write_columns(w, input, pattern)
                                              : write_dump(w, input, pattern);
}

static int execute_dump(int argc, char **argv) {
  dump_words w = {.options = {.size = sizeof w.options}};
  int status = read_dump_words(argc, argv, &w);
  if (status == EXIT_OK && argc - optind != 1)
    status = refuse_words("dump", "takes one capture, and -o OUT for the file to write", NULL);
  if (status == EXIT_OK) status = check_words(&w, argv[optind]);
  const char *to = w.output;
  if (status == EXIT_OK) status = output_follow_link("dump", &to);
  if (status == EXIT_OK) status = write_output(&w, argv[optind], to);
  filter_options_free(&w.filter);
  return status;
}

static const command_option options_of_dump[] = {
    {"output", 'o', "OUT",
     .help = "the file to write; its ending selects the format: .json, .pftrace, .csv, .folded, "
             ".speedscope.json, each also followed by .gz, .pb.gz, .db, .rpd, .parquet, .arrow, or "
             ".prof"},
    {"format", 'f', "FORMAT",
     .help = "chrome (chrome://tracing and Perfetto), perfetto, csv, folded (flame graphs), "
             "speedscope, pprof, sqlite, rpd (AMD's rocmProfileData), raf, or capture (a copy); "
             "default by OUT's ending. Tables: parquet and arrow; they need Python with "
             "libprof[arrow]"},
    {.name = "pack",
     .id = 'P',
     .help = "with -o FILE.prof: compresses the capture, usually to less than a tenth of its size. "
             "Every command reads it. FILE.prof may be the capture itself, if its process has "
             "ended. Needs zstd (libzstd.so.1)"},
    {.name = "from",
     .argument = "TIME",
     .id = FILTER_FROM,
     .help = "only events that end after this time of the capture, as 1.5s"},
    {.name = "to",
     .argument = "TIME",
     .id = FILTER_TO,
     .help = "only events that begin before this time, as 2s"},
    {.more = filter_option_list_of_dump},
    {0}};

static const command_example examples[] = {
    {"prof dump trace.prof -o trace.json.gz", "a trace for Perfetto, compressed"},
    {"prof dump trace.prof --from 2ms --to 5ms -o part.json", "a part of it"},
    {"prof dump trace.prof --name 'load|inner' -o some.pftrace", "some scopes"},
    {"prof dump trace.prof -o trace.db", "SQLite tables with views, for queries"},
    {"prof dump trace.prof -o trace.parquet", "a table for pandas, polars and DuckDB"},
    {"prof dump trace.prof -o small.prof --pack", "the same capture, in fewer bytes"},
    {"prof dump small.prof -o small.prof --pack", "pack a capture in place"},
    {0}};

const prof_command command_dump = {
    .name = "dump",
    .summary = "writes a capture as a trace for Perfetto and other viewers",
    .words = "FILE -o OUT [--format FORMAT] [--pack]",
    .about =
        "Writes a capture as a trace that viewers open. All captures of a merged capture go into "
        "one file, each with its process.",
    .notes = FILTER_NOTES
    " An arrow is written if both its ends are inside of scopes that pass. An allocation is "
    "written if it is inside of such a scope, and its free with it. Counters, instants and graphs "
    "of memory are written if they are of the process, device and steps. A capture (.prof) cannot "
    "be filtered.",
    .statuses = FILTER_STATUSES,
    .options = options_of_dump,
    .examples = examples,
    .execute = execute_dump,
    .reads_captures = true};
