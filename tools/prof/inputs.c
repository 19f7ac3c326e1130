/* Opens the captures that words name, and imports traces. See inputs.h. */
#define _GNU_SOURCE
#include "inputs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/analysis/filter.h"
#include "../../src/format/layout.h"
#include "../../src/reader/capture.h"
#include "../../src/reader/internal.h"
#include "commands.h"
#include "shared_options.h"

static bool has_damage, tells_parts;
static input_contents opened;

void input_tell_parts(void) { tells_parts = true; }

bool input_was_damaged(void) { return has_damage; }
void input_set_damaged(void) { has_damage = true; }

/* The library's text names the file, and says what is wrong and what to do. */
static void say_refused(int status) {
  const char *const error = prof_last_error(), *const text = prof_status_text(status);
  const bool is_said = strcasestr(error, text) != NULL || status == PROF_E_INVALID;
  say("prof: %s%s%s%s%s", error, is_said ? "" : " (", is_said ? "" : text, is_said ? "" : ")",
      status == PROF_E_PERMISSION ? "; captures belong to the user whose process wrote them" : "");
}

prof_trace *open_capture_file(const char *path) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if (status == PROF_OK) return trace;
  say_refused(status);
  return NULL;
}

input_begin input_begin_read(const char *path) {
  input_begin begin = {.header = {0}};
  const int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return begin;
  if (pread(file, &begin.header, sizeof begin.header, 0) != sizeof begin.header ||
      pread(file, &begin.packed, sizeof begin.packed, PROF_I_PACKED_FIRST_OFFSET) !=
          sizeof begin.packed)
    begin.packed.magic = 0;
  close(file);
  return begin;
}

/* Is it JSON, compressed, or a database of SQLite? A file that is named as a capture is not taken
   for a trace. */
static bool begins_as_trace(const char *path) {
  unsigned char bytes[64];
  const size_t length = strlen(path);
  if (length >= 5 && strcmp(path + length - 5, ".prof") == 0) return false;
  FILE *const file = fopen(path, "rb");
  const size_t count = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file) fclose(file);
  size_t at = count >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
  while (at < count && memchr(" \t\r\n", bytes[at], 4)) at++;
  return (at < count && (bytes[at] == '{' || bytes[at] == '[')) ||
         (count >= 2 && memcmp(bytes, "\x1f\x8b", 2) == 0) ||
         (count >= 15 && memcmp(bytes, "SQLite format 3", 15) == 0);
}

/* The C libraries that wheels are built for have no getrandom(). */
static bool read_random(void *to, size_t bytes) {
  const int file = open("/dev/urandom", O_RDONLY | O_CLOEXEC);
  const bool is_read = file >= 0 && read(file, to, bytes) == (ssize_t)bytes;
  const int error = errno;
  if (file >= 0) close(file);
  errno = error;
  return is_read;
}

static void drop_passing(const char *path) {
  unlink(path);
  output_set_passing(NULL);
}

/* Removes the name of the capture right after opening it, unless `kept` receives the name. The name
   is random, so that no other user can create the file first. */
static prof_trace *import_capture(const char *path, char *kept) {
  static char output[PATH_MAX];
  uint64_t name[2];
  const char *const folder = getenv("TMPDIR");
  if (!read_random(name, sizeof name)) {
    say("prof: no random name for the capture of '%s': %s", path, strerror(errno));
    return NULL;
  }
  const int bytes = snprintf(output, sizeof output, "%s/prof-%016" PRIx64 "%016" PRIx64 ".prof",
                             folder && *folder ? folder : "/tmp", name[0], name[1]);
  if (bytes >= (int)sizeof output) {
    say("prof: TMPDIR is too long for a name in it: %s", folder);
    return NULL;
  }
  output_clean_up_if_killed();
  output_set_passing(output);
  const bool is_own_line = !progress_has_begun();
  if (is_own_line) {
    progress_begin("import", 0);
    progress_expect(path);
  }
  const uint64_t bytes_before = progress_bytes();
  prof_trace *trace = NULL;
  if (import_to_read(path, output, &has_damage)) {
    progress_imported(path, output, bytes_before);
    trace = open_capture_file(output);
  }
  if (is_own_line) progress_end();
  if (trace && kept)
    snprintf(kept, PATH_MAX, "%s", output);
  else
    drop_passing(output);
  return trace;
}

static bool thread_has_scopes(const prof_trace *trace, const prof_i_trace_thread *thread) {
  uint64_t count = thread->open_count;
  for (uint32_t i = 0; i < thread->segment_count; i++)
    count += trace->segments[thread->first_segment + i].scope_count;
  return count != 0;
}

void input_contents_add(input_contents *contents, const prof_trace *trace,
                        const prof_i_filter *filter) {
  uint32_t taken_count = 0;
  for (uint32_t i = 0; i < trace->thread_count; i++) {
    if (!prof_i_filter_takes_thread(filter, trace, i)) continue;
    taken_count++;
    contents->has_scopes |= thread_has_scopes(trace, &trace->threads[i]);
  }
  if (taken_count != trace->thread_count) {
    contents->lacks_thread |= filter->words.thread != NULL;
    contents->lacks_process |= filter->words.thread == NULL;
  }
  if (taken_count == 0 && trace->thread_count != 0) return;
  contents->capture_count++;
  contents->has_memory |= trace->catalog.pool_count != 0;
  contents->has_events |= trace->event_count != 0;
}

const input_contents *input_contents_opened(void) { return &opened; }

static void look_at_part(const char *path, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  for (uint32_t note = 0; tells_parts && note < info.note_count; note++) {
    char *text;
    if (prof_i_trace_note_text(trace, note, &text) != PROF_OK) return;
    if (prof_i_is_part_note(text)) say("prof: '%s': %s", path, text);
    free(text);
  }
}

void input_look_at(const char *path, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace_info_get(trace, &info);
  look_at_part(path, trace);
  input_contents_add(&opened, trace, NULL);
  if (!info.bad_count) return;
  has_damage = true;
  say("prof: '%s' is damaged or cut off: %" PRIu64 " place%s could not be read", path,
      info.bad_count, info.bad_count == 1 ? "" : "s");
}

prof_trace *open_capture_alone(const char *path) {
  prof_trace *const trace = open_capture_file(path);
  if (trace) input_look_at(path, trace);
  return trace;
}

/* kept: NULL, or room of PATH_MAX for the path of the capture that an import made. It becomes ""
   if there was no import. */
static prof_trace *open_file(const char *path, char *kept) {
  prof_trace *trace = NULL;
  const int status = prof_trace_open(path, &trace);
  if ((status == PROF_E_NOT_CAPTURE || status == PROF_E_TRUNCATED) && begins_as_trace(path))
    return import_capture(path, kept);
  if (status != PROF_OK) say_refused(status);
  if (status == PROF_E_NOT_FOUND) input_say_left(path);
  if (trace) input_look_at(path, trace);
  return trace;
}

prof_trace *open_capture(const char *word) {
  char *const path = input_one_path(word);
  prof_trace *const trace = path ? open_file(path, NULL) : NULL;
  free(path);
  return trace;
}

/* Opens the capture that the word names. Refuses an output that is this capture. */
static prof_trace *open_for(const char *word, const char *output, input_named *named) {
  char *const path = input_one_path(word);
  prof_trace *trace = NULL;
  if (path && output && output_is_input(output, path)) {
    say("prof: '%s' is the capture itself; write another file", output);
  } else if (path) {
    progress_expect(path);
    trace = open_file(path, named ? named->imported : NULL);
    if (named)
      snprintf(named->path, sizeof named->path, "%s", *named->imported ? named->imported : path);
  }
  free(path);
  return trace;
}

prof_trace *open_capture_for(const char *word, const char *output) {
  return open_for(word, output, NULL);
}

prof_trace *input_named_open(const char *word, const char *output, input_named *named_out) {
  *named_out->path = *named_out->imported = '\0';
  return open_for(word, output, named_out);
}

void input_named_close(const input_named *named) {
  if (*named->imported) drop_passing(named->imported);
}

int input_captures_open(const char *command, size_t count, char **words, input_captures *to) {
  input_paths paths = {0};
  int status = EXIT_OK;
  for (size_t i = 0; i < count && status == EXIT_OK; i++)
    status = input_paths_add(command, &paths, words[i], false);
  for (size_t i = 0; i < paths.count; i++) progress_expect(paths.paths[i]);
  if (status == EXIT_OK) to->items = calloc(paths.count + 1, sizeof *to->items);
  for (size_t i = 0; i < paths.count && status == EXIT_OK; i++) {
    prof_trace *const trace = to->items ? open_capture(paths.paths[i]) : NULL;
    if (trace)
      to->items[to->count++] = trace;
    else
      status = EXIT_FAILED;
  }
  input_paths_free(&paths);
  return status;
}

void input_captures_close(input_captures *captures) {
  while (captures->count > 0) prof_trace_destroy(captures->items[--captures->count]);
  free(captures->items);
  *captures = (input_captures){0};
}

int input_says_nothing(const char *command, const input_contents *contents, bool has_filter) {
  if (has_filter && (contents->capture_count == 0 || contents->has_scopes))
    return filter_says_nothing(command);
  if (!contents->has_scopes)
    say("prof %s: %s; %s", command,
        contents->lacks_thread         ? "no thread that the filter takes has scopes"
        : contents->lacks_process      ? "no process that the filter takes has scopes"
        : contents->capture_count == 1 ? "the capture has no scopes"
                                       : "the captures have no scopes",
        contents->has_memory   ? "prof memory shows the memory, and prof view all that was recorded"
        : contents->has_events ? "prof view shows the counters, instants and steps"
                               : "prof info shows how it was recorded, and what was lost");
  return has_filter ? EXIT_NO : EXIT_OK;
}
