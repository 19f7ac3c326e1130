/* Writes a merged capture (../../src/format/merged.h). The bytes of each capture are copied as they
   are, so a packed one stays packed. What a process still records is copied as a snapshot. */
#define _GNU_SOURCE
#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "../../src/base/log.h"
#include "../../src/base/progress.h"
#include "../../src/export/exporter.h"
#include "../../src/live/parts.h"
#include "commands.h"
#include "inputs.h"

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

int merge_files_write_capture(const merge_files *list, const char *output, bool is_unaligned) {
  capture_writer w = {.at = 0};
  int status = prof_i_sink_open_file(&w.sink, output, false, false);
  if (status != PROF_OK) return status;
  status = copy_all(&w, list, is_unaligned || list->is_unaligned);
  if (status == PROF_OK) return prof_i_sink_commit(&w.sink);
  prof_i_sink_abandon(&w.sink);
  return status;
}
