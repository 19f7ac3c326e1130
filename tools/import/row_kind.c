/* See state.h. On a GPU, JAX and TensorFlow derive rows from the streams of the same process. A
   TPU has no streams, and its ops are only on a row. nsys2json puts the host's rows into the
   process of the device that the host uses. */
#include "state.h"

#include "event.h"

static bool text_is_listed(import_text text, const char *const *words) {
  while (*words && !import_text_is(text, *words)) words++;
  return *words != NULL;
}

static import_row_kind kind_of_xla(const import_process *process, import_text name) {
  static const char *const ops[] = {"XLA Ops", "Sparse Core Ops", NULL};
  static const char *const sides[] = {"Steps",
                                      "Sparse Core Steps",
                                      "XLA Modules",
                                      "Sparse Core Modules",
                                      "Async XLA Ops",
                                      "Framework Name Scope",
                                      "Framework Ops",
                                      "TensorFlow Name Scope",
                                      "TensorFlow Ops",
                                      "XLA TraceMe",
                                      "Source code",
                                      "Launch Stats",
                                      NULL};
  if (text_is_listed(name, sides)) return IMPORT_ROW_SIDE;
  if (text_is_listed(name, ops) && process->has_stream_rows) return IMPORT_ROW_SIDE;
  return IMPORT_ROW_WORK;
}

static import_row_kind kind_of_mixed(import_text name, import_text category) {
  int64_t number;
  bool is_whole;
  if (import_text_is(category, "nvtx-kernel")) return IMPORT_ROW_SIDE;
  if (import_text_is(category, "cuda")) return IMPORT_ROW_WORK;
  return import_text_begins(name, "Stream ") && import_row_read_stream(name, &number, &is_whole)
             ? IMPORT_ROW_WORK
             : IMPORT_ROW_HOST;
}

import_row_kind import_row_kind_of(const import_state *state, const import_process *process,
                                   import_thread_id row, import_text category) {
  if (import_devices_is_summary(&state->devices, process)) return IMPORT_ROW_SIDE;
  if (!process->is_device) return IMPORT_ROW_HOST;
  if (!process->is_xla && !process->is_mixed) return IMPORT_ROW_WORK;
  const import_text name = import_threads_name_of(&state->threads, row);
  return process->is_xla ? kind_of_xla(process, name) : kind_of_mixed(name, category);
}

bool import_row_read_stream(import_text name, int64_t *number_out, bool *is_whole_out) {
  static const char *const begins[] = {"Stream #", "Stream ", "stream ", "CUDA API ", NULL};
  const char *const *begin = begins;
  while (*begin && !import_text_begins(name, *begin)) begin++;
  if (!*begin) return false;
  const size_t from = strlen(*begin);
  size_t bytes = 0;
  while (from + bytes < name.bytes && name.data[from + bytes] >= '0' &&
         name.data[from + bytes] <= '9')
    bytes++;
  *is_whole_out = from + bytes == name.bytes;
  return import_number_i64((import_text){name.data + from, bytes}, number_out);
}

int64_t import_row_stream(import_state *state, const import_process *process,
                          import_thread_id row) {
  enum { MADE_FIRST = 1000000 }; /* exports have room for numbers up to ten times that */
  const bool is_summary = import_devices_is_summary(&state->devices, process);
  const int64_t said = import_threads_number_of(&state->threads, row, -1);
  int64_t number;
  bool is_whole;
  if (said >= 0) return said;
  if (row.tid >= 0 && !is_summary) return row.tid;
  const import_thread *const known = import_threads_stream_of(&state->threads, row);
  if (known) return known->key.id.tid;
  const import_text name = import_threads_name_of(&state->threads, row);
  if (!is_summary && import_row_read_stream(name, &number, &is_whole)) return number;
  return MADE_FIRST + state->made_stream_count++;
}
