/* prof report FILE...: one HTML file with a table, a time line and flame graphs.
   src/report/html.c writes it. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/report/html.h"
#include "commands.h"
#include "sides.h"

typedef struct report_words {
  prof_i_html_options html;
  const char *output;
} report_words;

static int read_words(int argc, char **argv, report_words *w) {
  for (int c; (c = command_option_next(&command_report, argc, argv)) != -1;) {
    if (c == 'o')
      w->output = optarg;
    else if (c == 't')
      w->html.title = optarg;
    else
      return EXIT_USAGE;
  }
  return EXIT_OK;
}

/* The report must not take the place of a capture that it is of. */
static int check_output(const command_sides *sides, const char *output) {
  struct stat from, to;
  if (stat(output, &to) != 0) return EXIT_OK;
  for (size_t i = 0; i < sides->sides[0].count; i++)
    if (stat(sides->sides[0].paths[i], &from) == 0 && from.st_dev == to.st_dev &&
        from.st_ino == to.st_ino)
      return refuse_words("report", "would write over the capture itself:", output);
  return EXIT_OK;
}

static int write_report(const command_sides *sides, const report_words *w) {
  const side_captures *const captures = &sides->sides[0];
  prof_trace **const traces = calloc(captures->count, sizeof *traces);
  size_t opened = 0;
  int result = EXIT_FAILED;
  while (traces && opened < captures->count &&
         (traces[opened] = open_capture(captures->paths[opened])) != NULL)
    opened++;
  if (traces && opened == captures->count) {
    const int status =
        prof_i_html_write((const prof_trace *const *)traces, opened, &w->html, w->output);
    result = status == PROF_OK ? EXIT_OK : EXIT_FAILED;
    if (status == PROF_OK)
      say("prof report: %s written", w->output);
    else
      say("prof report: %s: %s", prof_status_text(status), prof_last_error());
  }
  while (opened > 0) prof_trace_destroy(traces[--opened]);
  free(traces);
  return result;
}

static int execute(int argc, char **argv) {
  report_words w = {.output = "report.html"};
  command_sides sides = {.command = "report"};
  int status = read_words(argc, argv, &w);
  if (status == EXIT_OK && argc == optind) status = refuse_words("report", "takes captures", NULL);
  for (int i = optind; status == EXIT_OK && i < argc; i++) status = sides_add(&sides, 0, argv[i]);
  if (status == EXIT_OK) status = check_output(&sides, w.output);
  if (status == EXIT_OK) status = write_report(&sides, &w);
  sides_free(&sides);
  return status;
}

static const command_option options[] = {
    {.name = "output", .letter = 'o', .argument = "FILE", .help = "(default report.html)"},
    {.name = "title", .argument = "TEXT", .help = "of the page (default: the process)", .id = 't'},
    {0}};

static const command_example examples[] = {
    {"prof report -o trace.html trace.prof", "then open trace.html in a browser"}, {0}};

const prof_command command_report = {
    .name = "report",
    .summary = "writes one HTML file with table, time line and flame graphs",
    .words = "[OPTION]... FILE...",
    .about =
        "The file needs no network and no other file. Several captures, or those of a folder, "
        "are shown together.",
    .options = options,
    .examples = examples,
    .execute = execute};
