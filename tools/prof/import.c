/* prof import trace.json: a trace that torch.profiler, or another tool, exported becomes a capture;
   so does a database of rpd or rocprofv3. */
#define _GNU_SOURCE
#include "../import/import.h"

#include <getopt.h>
#include <inttypes.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "commands.h"

_Noreturn void import_fail(const char *format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  say("prof import: %s", text);
  exit(EXIT_FAILED);
}

/* trace.json.gz and trace.rpd become trace.prof. False: its name is too long. */
static bool name_output(const char *from, char to[PATH_MAX]) {
  static const char *const endings[] = {".gz", ".json", ".trace", ".pt", ".rpd", ".db"};
  if (snprintf(to, PATH_MAX - 8, "%s", from) >= PATH_MAX - 8) return false;
  for (size_t i = 0; i < sizeof endings / sizeof *endings; i++) {
    const size_t bytes = strlen(to), ending = strlen(endings[i]);
    if (bytes > ending && to[bytes - ending - 1] != '/' &&
        strcmp(to + bytes - ending, endings[i]) == 0)
      to[bytes - ending] = '\0';
  }
  memcpy(to + strlen(to), ".prof", sizeof ".prof");
  return true;
}

/* ---- what it says in the end ---- */

static void print_imported(const import_counts *c, const char *to) {
  fputs("written to ", stdout);
  print_text(stdout, to, strlen(to));
  printf(": %" PRIu64 " scope%s of %" PRIu64 " thread%s", c->scopes, plural_ending(c->scopes),
         c->threads, plural_ending(c->threads));
  if (c->device_scopes)
    printf(", %" PRIu64 " on %" PRIu64 " stream%s of devices", c->device_scopes, c->streams,
           plural_ending(c->streams));
  if (c->memory_events)
    printf(", %" PRIu64 " event%s of memory", c->memory_events, plural_ending(c->memory_events));
  if (c->step_marks) printf(", %" PRIu64 " step%s", c->step_marks, plural_ending(c->step_marks));
  printf(", %" PRIu64 " other\n", c->instants + c->counters + c->flow_ends);
}

static int print_input_end(const char *from, const import_result *r) {
  const char *const unpacked = r->was_packed ? " (unpacked)" : "";
  switch (r->end) {
    case IMPORT_WHOLE:
    case IMPORT_OPEN_ARRAY:
      return EXIT_OK;
    case IMPORT_CUT_SHORT:
      say("prof import: '%s' ends in the middle, behind %" PRIu64
          " bytes%s: what stands whole before is taken",
          from, r->at, unpacked);
      return EXIT_FAILED;
    case IMPORT_DAMAGED:
      say("prof import: '%s' is damaged near byte %" PRIu64
          "%s: %s; what stands whole before is taken",
          from, r->at, unpacked, r->error);
      return EXIT_FAILED;
    case IMPORT_NO_TRACE:
    case IMPORT_REFUSED:
    case IMPORT_CAPTURE:
      break;
  }
  return EXIT_FAILED;
}

/* Nothing was written. */
static int print_no_events(const char *from, const import_result *r) {
  if (r->end == IMPORT_CAPTURE)
    say("prof import: '%s' is a capture of prof's already, and needs no import; prof table and "
        "prof dump read it as it is, in Python prof.Trace.open()",
        from);
  else if (r->end == IMPORT_NO_TRACE)
    say("prof import: '%s' is JSON, but no trace: it has no traceEvents", from);
  else if (r->end == IMPORT_REFUSED)
    say("prof import: '%s' %s", from, r->error);
  else if (r->end == IMPORT_DAMAGED)
    say("prof import: '%s' is no JSON, or damaged before the first event, near byte %" PRIu64
        ": %s",
        from, r->at, r->error);
  else if (r->at == 0 && r->is_packing_cut)
    say("prof import: '%s' ends, or is damaged, before anything could be unpacked", from);
  else if (r->at == 0)
    say("prof import: '%s' is empty", from);
  else
    say("prof import: '%s' ends before the first event, behind %" PRIu64 " bytes", from, r->at);
  return EXIT_FAILED;
}

static int report_import(const char *from, const char *to, const import_result *r) {
  const import_counts *const c = &r->counts;
  char note[IMPORT_NOTE_BYTES];
  const uint64_t taken = c->scopes + c->device_scopes + c->instants + c->counters + c->flow_ends +
                         c->memory_events + c->step_marks;
  const bool is_written = r->end != IMPORT_NO_TRACE && r->end != IMPORT_REFUSED &&
                          (taken > 0 || r->end == IMPORT_WHOLE);
  if (is_written) print_imported(c, to);
  for (int i = 0; i < IMPORT_NOTES_MAX - 1; i++) /* the last one is said by print_input_end() */
    if (import_note(r, i, note)) say("  %s", note);
  return is_written ? print_input_end(from, r) : print_no_events(from, r);
}

bool import_to_read(const char *from, const char *to, bool *is_cut_out) {
  import_result result;
  char note[IMPORT_NOTE_BYTES];
  import_has_other_line(progress_has_line());
  import_run(from, to, true, &result);
  const bool is_written = access(to, F_OK) == 0;
  bool is_first = true;
  for (int i = 0; is_written && i < IMPORT_NOTES_MAX - 1; i++) {
    if (!import_note(&result, i, note)) continue;
    if (is_first) say("prof: '%s' is imported for this command:", from);
    is_first = false;
    say("  %s", note);
  }
  const int status = is_written ? print_input_end(from, &result) : print_no_events(from, &result);
  *is_cut_out |= status != EXIT_OK;
  return is_written;
}

static int execute_import(int argc, char **argv) {
  const char *output = NULL;
  char named[PATH_MAX];
  for (int c; (c = command_option_next(&command_import, argc, argv)) != -1;) {
    if (c != 'o') return EXIT_USAGE;
    output = optarg;
  }
  if (argc - optind != 1) return refuse_words("import", "takes one trace", NULL);
  const char *const from = argv[optind];
  if (!output && !name_output(from, named))
    return refuse_words("import",
                        "needs -o OUT.prof: the name is too long to make another of:", from);
  const char *to = output ? output : named;
  if (output_is_input(to, from))
    return refuse_words("import", "would write over the trace itself:", to);
  if (output_follow_link("import", &to) != EXIT_OK) return EXIT_FAILED;
  import_result result;
  progress_begin("import", 0);
  progress_expect(from);
  import_has_other_line(progress_has_line());
  import_run(from, to, !output, &result);
  progress_end();
  return report_import(from, to, &result);
}

static const command_option options_of_import[] = {
    {"output", 'o', "OUT.prof",
     .help = "the capture (default: beside the trace, if there is none yet)"},
    {0}};

static const command_example examples[] = {
    {"prof import trace.json -o imported.prof", "a trace that torch.profiler exported"}, {0}};

const prof_command command_import = {
    .name = "import",
    .summary = "makes a capture of a trace: Chrome JSON, AMD's rpd or rocprofv3",
    .words = "TRACE.json|TRACE.rpd|RESULTS.db [-o OUT.prof]",
    .about =
        "Makes a capture of a trace that torch.profiler exported, or another tool for "
        "chrome://tracing (.json or .json.gz), or of a database of AMD's rpd or rocprofv3.",
    .options = options_of_import,
    .examples = examples,
    .execute = execute_import};
