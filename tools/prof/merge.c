/* prof merge -o OUT FILE... makes one file of the captures of a program's processes or ranks. It is
   a capture, or a trace for Perfetto on one time line. merge_files.c finds the captures, and
   places them. */
#define _GNU_SOURCE
#include <errno.h>
#include <getopt.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../../src/base/error.h"
#include "../../src/base/text.h"
#include "../../src/export/exporter.h"
#include "../../src/export/merge.h"
#include "../../src/live/live.h"
#include "../../src/reader/internal.h"
#include "commands.h"
#include "inputs.h"

enum { PASSES_OF_CAPTURE = 1, PASSES_OF_TRACE = 4 };

typedef struct merge_words {
  const char *output;
  bool is_gzip, is_unaligned, is_capture;
  merge_files list;
} merge_words;

/* ---- the words ---- */

static int check_output(merge_words *w) {
  struct stat info;
  if (!w->output) return refuse_words("merge", "needs -o OUT.prof or -o OUT.pftrace", NULL);
  const int expanded = output_expand_for_several("merge", &w->output);
  if (expanded != EXIT_OK) return expanded;
  const bool is_there = stat(w->output, &info) == 0;
  for (uint32_t i = 0; is_there && i < w->list.count; i++)
    if (output_is_input(w->output, w->list.files[i].path))
      return refuse_words("merge", "would write over a capture:", w->output);
  w->is_gzip = prof_i_path_ends_in(w->output, ".pftrace.gz");
  w->is_capture = prof_i_path_ends_in(w->output, ".prof");
  if (w->is_gzip || w->is_capture || prof_i_path_ends_in(w->output, ".pftrace") ||
      (is_there && !S_ISREG(info.st_mode)))
    return output_follow_link("merge", &w->output);
  say("prof merge: '%s' must end in .prof, .pftrace or .pftrace.gz", w->output);
  return EXIT_USAGE;
}

static int read_words(int argc, char **argv, merge_words *w) {
  int status = EXIT_OK;
  for (int c; (c = command_option_next(&command_merge, argc, argv)) != -1;) {
    if (c == 'o')
      w->output = optarg;
    else if (c == 'u')
      w->is_unaligned = true;
    else
      return EXIT_USAGE;
  }
  if (argc == optind) return refuse_words("merge", "takes captures, or a folder of them", NULL);
  for (int i = optind; i < argc && status == EXIT_OK; i++)
    status = merge_files_add(&w->list, argv[i]);
  return status == EXIT_OK ? check_output(w) : status;
}

/* ---- a merged capture ---- */

/* As src/format/merged.h has it. The bytes of each capture are copied as they are, so a packed one
   stays packed. What a process still records is copied as a snapshot. */

enum { BLOCK_BYTES = 8 << 20 }; /* copied at once, for the progress line */

typedef struct capture_writer {
  prof_i_sink sink;
  uint64_t at;     /* offset in the file */
  uint32_t number; /* of the next part */
} capture_writer;

static const unsigned char zeros[PROF_I_MERGED_PAGE_BYTES];

static void put_page(capture_writer *w, const void *bytes, size_t count) {
  prof_i_sink_bytes(&w->sink, bytes, count);
  prof_i_sink_bytes(&w->sink, zeros, sizeof zeros - count);
  w->at += sizeof zeros;
}

static void begin_part(capture_writer *w, uint64_t bytes) {
  const prof_i_part_head head = prof_i_part_head_make(w->at, bytes, w->number++);
  put_page(w, &head, sizeof head);
}

static void end_part(capture_writer *w, uint64_t bytes) {
  const uint64_t end = prof_i_part_end(w->at, bytes);
  prof_i_sink_bytes(&w->sink, zeros, (size_t)(end - w->at - bytes));
  w->at = end;
}

/* The head already has the size, so a file that becomes shorter is an error. */
static int copy_bytes(capture_writer *w, const prof_i_capture_bytes *of, const char *path) {
  begin_part(w, of->bytes);
  for (uint64_t done = 0; done < of->bytes && w->sink.status == PROF_OK;) {
    const uint64_t left = of->bytes - done, block = left < BLOCK_BYTES ? left : BLOCK_BYTES;
    const uint64_t got = prof_i_sink_copy(&w->sink, of->fd, of->offset + done, block);
    prof_i_progress_add(got);
    done += got;
    if (got == block || w->sink.status != PROF_OK) continue;
    if (errno)
      return prof_i_fail(prof_i_status_of_errno(errno), "cannot read %s: %s", path,
                         strerror(errno));
    return prof_i_fail(PROF_E_IO, "%s became shorter while it was read: %llu of %llu bytes", path,
                       (unsigned long long)done, (unsigned long long)of->bytes);
  }
  end_part(w, of->bytes);
  return w->sink.status;
}

static int copy_snapshot(capture_writer *w, const char *path) {
  prof_trace *trace = NULL;
  uint64_t bytes = 0, count = 0;
  int status = prof_trace_open(path, &trace);
  if (status != PROF_OK) return status;
  while (prof_i_trace_bytes_at(trace, bytes, &count) && count) bytes += count;
  begin_part(w, bytes);
  status = prof_i_capture_exporter.copy(trace, &w->sink);
  end_part(w, bytes);
  prof_trace_destroy(trace);
  return status;
}

static int copy_capture(capture_writer *w, const char *path) {
  prof_i_capture_bytes of;
  prof_i_header header;
  bool is_finished = false;
  int status = prof_i_capture_bytes_open(path, &of);
  if (status != PROF_OK) return status;
  status = prof_i_capture_bytes_look(&of, path, &header, &is_finished);
  if (status == PROF_OK) status = is_finished ? copy_bytes(w, &of, path) : copy_snapshot(w, path);
  close(of.fd);
  return status;
}

static int copy_all(capture_writer *w, const merge_files *list, bool is_unaligned) {
  const prof_i_merged_header header =
      prof_i_merged_header_make(list->count, is_unaligned ? PROF_I_MERGED_UNALIGNED : 0);
  int status = PROF_OK;
  prof_i_sink_keep_private(&w->sink);
  put_page(w, &header, sizeof header);
  for (uint32_t i = 0; i < list->count && status == PROF_OK; i++)
    status = copy_capture(w, list->files[i].path);
  return status;
}

/* Copies the bytes of all captures into one merged capture. Returns PROF_OK or a status with its
   text, and says nothing. */
static int write_merged_capture(const merge_files *list, const char *output, bool is_unaligned) {
  capture_writer w = {.at = 0};
  int status = prof_i_sink_open_file(&w.sink, output, false, false);
  if (status != PROF_OK) return status;
  status = copy_all(&w, list, is_unaligned || list->is_unaligned);
  if (status == PROF_OK) return prof_i_sink_commit(&w.sink);
  prof_i_sink_abandon(&w.sink);
  return status;
}

/* ---- the command ---- */

static int write_file(const merge_words *w) {
  const prof_i_merge_plan plan = {.format = PROF_FORMAT_PERFETTO, .is_gzip = w->is_gzip};
  const int status = w->is_capture ? write_merged_capture(&w->list, w->output, w->is_unaligned)
                                   : merge_files_write(&w->list, w->output, &plan, NULL, NULL);
  return status == PROF_OK ? EXIT_OK : say_status("merge", status);
}

/* A capture keeps all clocks. So its captures are placed only to see whether that will work, and of
   one host it will. Placing opens each capture, which finds damage. */
static int try_placing(merge_words *w) {
  bool is_one_host = false;
  const int status = w->is_capture ? merge_files_look(&w->list, &is_one_host) : EXIT_OK;
  if (status != EXIT_OK) return status;
  if (is_one_host) return command_is_strict() ? merge_files_check(&w->list) : EXIT_OK;
  return merge_files_place(&w->list, w->is_unaligned, "--unaligned lets all hosts start together");
}

static int execute_merge(int argc, char **argv) {
  merge_words w = {.list.command = "merge"};
  int status = read_words(argc, argv, &w);
  progress_begin("merge", w.is_capture ? PASSES_OF_CAPTURE : PASSES_OF_TRACE);
  for (uint32_t i = 0; i < w.list.count; i++) progress_expect(w.list.files[i].path);
  if (status == EXIT_OK) status = try_placing(&w);
  if (status == EXIT_OK) status = write_file(&w);
  if (status == EXIT_OK) merge_files_say_places(&w.list, w.is_unaligned);
  merge_files_free(&w.list);
  return status;
}

static const command_option options[] = {
    {"output", 'o', "OUT", .help = "the file to write: .prof, .pftrace or .pftrace.gz"},
    {.name = "unaligned",
     .help = "accept hosts that did not record at the same time, and let them start together",
     .id = 'u'},
    {0}};

static const command_example examples[] = {
    {"prof merge -o all.prof trace-0.prof trace-1.prof", "one capture of two ranks"},
    {"prof merge -o all.pftrace trace-0.prof trace-1.prof", "two ranks on one time line"},
    {"prof merge -o all.pftrace.gz out", "all captures in out and in out/rank-N"},
    {0}};

const prof_command command_merge = {
    .name = "merge",
    .summary = "makes one file of captures of several processes or ranks",
    .words = "-o OUT [--unaligned] FILE... | FOLDER",
    .about =
        "Writes captures of a program's processes or ranks into one file: a capture (.prof), or a "
        "trace for Perfetto (.pftrace). Each keeps its process and rank.\n\n"
        "Commands read a merged capture as they read its captures together. all.prof#2 is the "
        "second one alone.\n\n"
        "Captures of one host are placed by its monotonic clock. Hosts are placed by their "
        "wall clocks.",
    .options = options,
    .examples = examples,
    .execute = execute_merge,
    .reads_captures = true};
