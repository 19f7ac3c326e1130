/* prof info FILE: one screen about a capture. */
#define _GNU_SOURCE
#include <getopt.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "../../src/format/header.h"
#include "../../src/reader/capture.h"
#include "../../src/sink/sink.h"
#include "commands.h"
#include "inputs.h"

enum { THREADS_SHOWN_MAX = 64, OPEN_SHOWN_MAX = 64, LINES_SHOWN_MAX = 64, FOLD_INDENT = 13 };

/* Standard output, or what a terminal gets in lines that fit. */
static FILE *out;

static void put_line(const char *text) {
  fputs(text, out);
  fputc('\n', out);
}

static const char *policy_name(uint32_t policy) {
  static const char *const names[] = {"default", "keep", "ring", "stream"};
  return policy < sizeof names / sizeof *names ? names[policy] : "unknown";
}

static void print_time(uint64_t unix_ns) {
  const time_t seconds = (time_t)(unix_ns / 1000000000u);
  struct tm parts;
  char text[64] = "?";
  if (gmtime_r(&seconds, &parts)) strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S UTC", &parts);
  put_line(text);
}

/* A process without a launcher has the number 0, but no rank that --rank selects. */
static void print_rank(const prof_trace_info *info) {
  fputs("\nrank         ", out);
  if (info->rank < 0)
    put_line("not known");
  else if (!prof_i_world_has_ranks(info->world_size))
    put_line("none, the process is not one of several");
  else if (info->world_size < 0)
    fprintf(out, "%" PRId32 " of an unknown number\n", info->rank);
  else
    fprintf(out, "%" PRId32 " of %" PRId32 "\n", info->rank, info->world_size);
}

/* The times of other tools' traces may count from anything, as from the machine's start. */
static void print_start(uint64_t unix_ns) {
  static const uint64_t year_ns = UINT64_C(366) * 86400 * 1000000000;
  fputs("started      ", out);
  if (unix_ns < year_ns)
    put_line("not known");
  else
    print_time(unix_ns);
}

static const char *clock_name(uint32_t clock) {
  return clock == PROF_CLOCK_MONOTONIC ? "monotonic" : "time-stamp counter";
}

static void print_state(const prof_trace_info *info) {
  if (info->is_live)
    put_line("state        its process runs");
  else if (info->is_copy)
    put_line("state        a copy, made while it was being recorded");
  else if (info->is_elsewhere && !info->was_clean)
    put_line("state        recording, or dead: its process is of another host or container");
  else
    put_line(info->was_clean ? "state        stopped"
                             : "state        ended without a stop: it may have been killed");
}

static void print_limits(const prof_trace_info *info) {
  if (!info->memory_limit_bytes) return;
  fprintf(out, "limits       %" PRIu64 " MiB of memory", info->memory_limit_bytes >> 20);
  const uint64_t hundredths = (uint64_t)(info->cpu_limit * 100 + 0.5);
  if (info->cpu_limit > 0)
    fprintf(out, ", %" PRIu64 ".%02" PRIu64 " processors", hundredths / 100, hundredths % 100);
  put_line("");
}

/* Per cent by whole numbers: the locale may have another point. */
static void print_share(uint64_t part_ns, uint64_t whole_ns) {
  const uint64_t hundredths =
      whole_ns ? (uint64_t)((double)part_ns * 1e4 / (double)whole_ns + 0.5) : 0;
  fprintf(out, "%" PRIu64 ".%02" PRIu64 " %%", hundredths / 100, hundredths % 100);
}

static void print_ms(uint64_t ns) {
  const uint64_t us = ns / 1000 + (ns % 1000 >= 500);
  fprintf(out, "%" PRIu64 ".%03" PRIu64, us / 1000, us % 1000);
}

static void print_own_cost(const prof_trace_info *info) {
  const uint64_t tenths = (uint64_t)(info->scope_cost_ns * 10 + 0.5);
  if (!(info->scope_cost_ns > 0)) return;
  const bool is_apart = info->is_own_apart && info->is_own_sampled;
  fputs(info->is_own_sampled ? "recording    took " : "recording    took at least ", out);
  print_ms(is_apart || !info->is_own_sampled ? info->own_least_ns : info->own_ns);
  if (is_apart) {
    fputs(" to ", out);
    print_ms(info->own_most_ns);
  }
  fprintf(out, " ms of all threads together; a plain scope %" PRIu64 ".%" PRIu64 " ns%s\n",
          tenths / 10, tenths % 10, is_apart || !info->is_own_sampled ? " in warm caches" : "");
}

static uint32_t shown_count(uint32_t count) {
  return count < LINES_SHOWN_MAX ? count : LINES_SHOWN_MAX;
}

static void print_rest_count(uint32_t count) {
  if (count > LINES_SHOWN_MAX)
    fprintf(out, "  ... and %" PRIu32 " more\n", count - LINES_SHOWN_MAX);
}

/* Steps of the budget, and mutes. */
static void print_changes(const prof_trace *trace, uint32_t count, uint64_t untold) {
  if (count || untold) fprintf(out, "changes      %" PRIu32, count);
  if (untold) fprintf(out, ", and %" PRIu64 " for which the capture had no room", untold);
  if (count || untold) put_line("");
  for (uint32_t i = 0; i < shown_count(count); i++) {
    char *text = NULL;
    if (prof_trace_change_text(trace, i, &text) == PROF_OK) fprintf(out, "  %s\n", text);
    prof_free(text);
  }
  print_rest_count(count);
}

/* Only where something happened to it. */
static void print_clock(const prof_trace_info *info) {
  if (info->clock_segments_count > 1)
    fprintf(out,
            "clock        changed %" PRIu32 " time%s, jumped %" PRIu32
            " time%s; between the readings around a jump, %" PRIu64
            " us at most, times are not known better\n",
            info->clock_segments_count - 1, plural_ending(info->clock_segments_count - 1),
            info->clock_jump_count, plural_ending(info->clock_jump_count),
            info->clock_gap_ns / 1000);
  if (info->clock_back_count)
    fprintf(out,
            "clock        %" PRIu64 " scope%s ended before %s began: processors' counters differ\n",
            info->clock_back_count, plural_ending(info->clock_back_count),
            info->clock_back_count == 1 ? "it" : "they");
  if (info->wall_step_count)
    fprintf(out,
            "wall clock   set, or the machine slept, %" PRIu32 " time%s: %+" PRId64
            " ms together; times here count from the start\n",
            info->wall_step_count, plural_ending(info->wall_step_count),
            info->wall_step_ns / 1000000);
}

static void print_devices(const prof_trace *trace, uint32_t count) {
  if (count) fprintf(out, "devices      %" PRIu32 "\n", count);
  for (uint32_t i = 0; i < shown_count(count); i++) {
    char *text = NULL;
    if (prof_trace_device_text(trace, i, &text) == PROF_OK) fprintf(out, "  %s\n", text);
    prof_free(text);
  }
  print_rest_count(count);
}

/* What the capture's writer says of it. */
static void print_notes(const prof_trace *trace, uint32_t count) {
  if (count) fprintf(out, "notes        %" PRIu32 "\n", count);
  for (uint32_t i = 0; i < count; i++) {
    char *text = NULL;
    if (prof_trace_note_text(trace, i, &text) != PROF_OK) continue;
    fputs("  ", out);
    print_text(out, text, strlen(text));
    fputc('\n', out);
    prof_free(text);
  }
}

static uint32_t count_streams(const prof_trace *trace, uint32_t count) {
  prof_trace_thread thread = {.size = sizeof thread};
  uint32_t streams = 0;
  for (uint32_t i = 0; i < count; i++)
    streams += prof_trace_thread_get(trace, i, &thread) == PROF_OK && thread.is_stream;
  return streams;
}

static uint64_t sum_of_losses(const uint64_t *counts) {
  uint64_t sum = 0;
  for (int r = 0; r < PROF_LOSS_COUNT; r++) sum += counts[r];
  return sum;
}

static void print_threads(const prof_trace *trace, uint32_t count, uint64_t duration_ns) {
  const uint32_t streams = count_streams(trace, count);
  fprintf(out, "threads      %" PRIu32, count - streams);
  if (streams)
    fprintf(out, ", and %" PRIu32 " stream%s of devices", streams, plural_ending(streams));
  fputc('\n', out);
  for (uint32_t i = 0; i < count && i < THREADS_SHOWN_MAX; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    if (prof_trace_thread_get(trace, i, &thread) != PROF_OK) continue;
    const uint64_t lost = sum_of_losses(thread.lost_count);
    fprintf(out, "  %8" PRIu64 "  %10" PRIu64 " event%s  %8" PRIu64 " lost  recording ", thread.tid,
            thread.event_count, thread.event_count == 1 ? " " : "s", lost);
    print_share(thread.own_ns, duration_ns);
    fputs("  ", out);
    print_text(out, thread.name, strnlen(thread.name, sizeof thread.name));
    const char *const fiber = thread.is_fiber ? "  (a fiber)" : "";
    const char *const kind = thread.is_stream ? "  (a device's)" : fiber;
    put_line(thread.is_main ? "  (main)" : kind);
  }
  if (count > THREADS_SHOWN_MAX)
    fprintf(out, "  ... and %" PRIu32 " more\n", count - THREADS_SHOWN_MAX);
}

/* Of records that were overwritten or cleared nobody knows any more which thread wrote them. */
static void print_separate_threads(const prof_trace *trace, const prof_trace_info *info) {
  uint64_t told = 0;
  for (uint32_t i = 0; i < info->thread_count; i++) {
    prof_trace_thread thread = {.size = sizeof thread};
    if (prof_trace_thread_get(trace, i, &thread) == PROF_OK)
      told += sum_of_losses(thread.lost_count);
  }
  const uint64_t all = sum_of_losses(info->lost_count);
  if (all > told)
    fprintf(out,
            "  %" PRIu64 " of the %" PRIu64
            " lost are not told by thread: their records are gone\n",
            all - told, all);
}

/* What each thread was inside of. */
static void print_open_scopes(const prof_trace *trace, uint64_t open_count) {
  prof_cursor *cursor;
  prof_event *const event = calloc(1, sizeof *event);
  if (!event || prof_cursor_create(trace, &cursor) != PROF_OK) {
    free(event);
    return;
  }
  const uint64_t most = open_count < OPEN_SHOWN_MAX ? open_count : OPEN_SHOWN_MAX;
  uint64_t shown = 0;
  while (shown < most && prof_cursor_next(cursor, event) == 1) {
    if (event->kind != PROF_EVENT_OPEN) continue;
    if (shown++ == 0) put_line("open scopes");
    prof_trace_thread thread = {.size = sizeof thread};
    prof_trace_thread_get(trace, event->thread, &thread);
    fprintf(out, "  %8" PRIu64 "  %*s", thread.tid,
            (int)(event->depth < 32 ? event->depth * 2 : 64), "");
    print_text(out, event->name, event->name_bytes);
    fprintf(out, "  begun %.3f ms before %s\n", (double)event->duration_ns / 1e6,
            flush_words(trace));
  }
  if (open_count > most) fprintf(out, "  ... and %" PRIu64 " more\n", open_count - most);
  prof_cursor_destroy(cursor);
  free(event);
}

/* Only of a packed capture. */
static void print_packing(const prof_i_packing *packing) {
  if (!packing->file_bytes) return;
  const uint64_t tenths = packing->unpacked_bytes * 10 / packing->file_bytes;
  fprintf(out,
          "packed       %" PRIu32 " extent%s packed, %" PRIu32 " plain; %" PRIu64
          " bytes, unpacked %" PRIu64 ": %" PRIu64 ".%" PRIu64 " times as many\n",
          packing->packed_count, plural_ending(packing->packed_count), packing->plain_count,
          packing->file_bytes, packing->unpacked_bytes, tenths / 10, tenths % 10);
}

/* The host of an import may not be known. */
static void print_host(const prof_trace_info *info) {
  if (!*info->host) return;
  fputs(" on ", out);
  print_text(out, info->host, strnlen(info->host, sizeof info->host));
}

static void print_info(const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  char *loss = NULL;
  prof_trace_info_get(trace, &info);
  fputs("process      ", out);
  print_text(out, info.process_name, strnlen(info.process_name, sizeof info.process_name));
  fprintf(out, " (pid %" PRIu32 ")", info.pid);
  print_host(&info);
  print_rank(&info);
  print_start(info.start_unix_ns);
  print_limits(&info);
  print_state(&info);
  print_packing(&trace->source.packing);
  fprintf(out, "duration     %.6f s, clock %s, error %" PRIu64 " ns, %" PRIu32 " segment%s\n",
          (double)info.duration_ns / 1e9, clock_name(info.clock), info.clock_error_ns,
          info.clock_segments_count, plural_ending(info.clock_segments_count));
  print_clock(&info);
  fprintf(out, "level        %" PRIu32 "%s, policy %s\n", info.level,
          info.is_live && info.level_now == 0 ? " at the start, off now" : "",
          policy_name(info.policy));
  fprintf(out,
          "events       %" PRIu64 ": %" PRIu64 " scope%s, %" PRIu64 " open, %" PRIu64
          " marks, counters, flows, steps and events of memory\n",
          info.event_count, info.scope_count, plural_ending(info.scope_count), info.open_count,
          info.event_count - info.scope_count - info.open_count);
  if (info.skipped_count)
    fprintf(out, "skipped      %" PRIu64 " of the scopes: a jump left %s, and when is not known\n",
            info.skipped_count, info.skipped_count == 1 ? "it" : "them");
  if (info.bad_count)
    fprintf(out, "damage       %" PRIu64 " place%s could not be read\n", info.bad_count,
            plural_ending(info.bad_count));
  if (prof_trace_loss_text(trace, &loss) == PROF_OK) fprintf(out, "loss         %s\n", loss);
  prof_free(loss);
  print_notes(trace, info.note_count);
  print_own_cost(&info);
  print_changes(trace, info.change_count, info.untold_change_count);
  print_devices(trace, info.device_count);
  print_threads(trace, info.thread_count, info.duration_ns);
  print_separate_threads(trace, &info);
  if (info.open_count) print_open_scopes(trace, info.open_count);
}

/* ---- merged captures ---- */

/* Prints one line: the process, its events, losses and duration. */
static int print_part(void *user, const char *path) {
  prof_trace_info info = {.size = sizeof info};
  prof_trace *const trace = open_capture(path);
  (void)user;
  if (!trace) return EXIT_FAILED;
  prof_trace_info_get(trace, &info);
  fprintf(out, "  %-5s ", strrchr(path, '#'));
  if (prof_i_world_has_ranks(info.world_size) && info.rank >= 0)
    fprintf(out, "rank %" PRId32 ": ", info.rank);
  print_text(out, info.process_name, strnlen(info.process_name, sizeof info.process_name));
  fprintf(out, " (pid %" PRIu32 ")", info.pid);
  print_host(&info);
  fprintf(out, ", %" PRIu64 " event%s, %" PRIu64 " lost, %.6f s%s\n", info.event_count,
          plural_ending(info.event_count), sum_of_losses(info.lost_count),
          (double)info.duration_ns / 1e9, info.bad_count ? ", damaged" : "");
  prof_trace_destroy(trace);
  return EXIT_OK;
}

static int print_parts(const char *path, uint32_t count) {
  fprintf(out, "merged       %" PRIu32 " captures; prof info '%s#1' shows one\n", count, path);
  return input_each_capture("info", path, print_part, NULL);
}

static int print_file(const char *word) {
  uint32_t count = 1;
  if (prof_trace_part_count(word, &count) == PROF_OK && count > 1) return print_parts(word, count);
  prof_trace *const trace = open_capture(word);
  if (!trace) return EXIT_FAILED;
  print_info(trace);
  prof_trace_destroy(trace);
  return EXIT_OK;
}

/* ---- JSON ---- */

static void put_text(prof_i_sink *sink, const char *key, const char *text, size_t bytes) {
  prof_i_sink_key(sink, key);
  prof_i_sink_string(sink, text, bytes);
}

static void put_process(prof_i_sink *sink, const prof_trace_info *info) {
  prof_i_sink_text(sink, "{\"process\":");
  prof_i_sink_string(sink, info->process_name,
                     strnlen(info->process_name, sizeof info->process_name));
  prof_i_sink_key_u64(sink, "pid", info->pid);
  put_text(sink, "host", info->host, strnlen(info->host, sizeof info->host));
  prof_i_sink_key(sink, "rank");
  if (info->rank < 0)
    prof_i_sink_text(sink, "null");
  else
    prof_i_sink_i64(sink, info->rank);
}

static void put_losses(prof_i_sink *sink, const prof_trace_info *info) {
  bool is_first = true;
  prof_i_sink_key(sink, "lost");
  prof_i_sink_text(sink, "{");
  for (int i = 0; i < PROF_LOSS_COUNT; i++) {
    if (!info->lost_count[i]) continue;
    prof_i_sink_text(sink, is_first ? "" : ",");
    prof_i_sink_string(sink, prof_loss_name(i), strlen(prof_loss_name(i)));
    prof_i_sink_text(sink, ":");
    prof_i_sink_u64(sink, info->lost_count[i]);
    is_first = false;
  }
  prof_i_sink_text(sink, "}");
}

static void put_packing(prof_i_sink *sink, const prof_i_packing *packing) {
  prof_i_sink_key(sink, "packed");
  if (!packing->file_bytes) {
    prof_i_sink_text(sink, "null");
    return;
  }
  prof_i_sink_text(sink, "{\"packed_extents\":");
  prof_i_sink_u64(sink, packing->packed_count);
  prof_i_sink_key_u64(sink, "plain_extents", packing->plain_count);
  prof_i_sink_key_u64(sink, "file_bytes", packing->file_bytes);
  prof_i_sink_key_u64(sink, "unpacked_bytes", packing->unpacked_bytes);
  prof_i_sink_key(sink, "ratio");
  prof_i_sink_double(sink, (double)packing->unpacked_bytes / (double)packing->file_bytes);
  prof_i_sink_text(sink, "}");
}

static const char *state_word(const prof_trace_info *info) {
  if (info->is_live) return "running";
  if (info->is_copy) return "copy";
  if (info->was_clean) return "stopped";
  return info->is_elsewhere ? "unknown" : "ended without a stop";
}

/* One line. */
static int print_json(void *user, const char *path) {
  enum { TEXT_BYTES_MAX = 1 << 20 };
  prof_trace *const trace = open_capture(path);
  prof_trace_info info = {.size = sizeof info};
  data_printer printer = {{0}, 0};
  prof_i_sink sink;
  char *text;
  size_t bytes;
  (void)user;
  if (!trace) return EXIT_FAILED;
  prof_trace_info_get(trace, &info);
  int status = prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX);
  if (status != PROF_OK) {
    prof_trace_destroy(trace);
    return say_status("info", status);
  }
  put_process(&sink, &info);
  put_text(&sink, "state", state_word(&info), strlen(state_word(&info)));
  put_text(&sink, "policy", policy_name(info.policy), strlen(policy_name(info.policy)));
  put_text(&sink, "clock", clock_name(info.clock), strlen(clock_name(info.clock)));
  prof_i_sink_key_u64(&sink, "start_unix_ns", info.start_unix_ns);
  prof_i_sink_key_u64(&sink, "duration_ns", info.duration_ns);
  prof_i_sink_key_u64(&sink, "clock_error_ns", info.clock_error_ns);
  prof_i_sink_key_u64(&sink, "level", info.level);
  prof_i_sink_key_u64(&sink, "events", info.event_count);
  prof_i_sink_key_u64(&sink, "scopes", info.scope_count);
  prof_i_sink_key_u64(&sink, "open", info.open_count);
  prof_i_sink_key_u64(&sink, "skipped", info.skipped_count);
  prof_i_sink_key_u64(&sink, "damaged", info.bad_count);
  prof_i_sink_key_u64(&sink, "threads", info.thread_count);
  prof_i_sink_key_u64(&sink, "devices", info.device_count);
  put_losses(&sink, &info);
  put_packing(&sink, &trace->source.packing);
  prof_i_sink_text(&sink, "}\n");
  prof_trace_destroy(trace);
  status = prof_i_sink_take(&sink, &text, &bytes);
  if (status != PROF_OK) return say_status("info", status);
  print_data(&printer, text, bytes);
  prof_free(text);
  return EXIT_OK;
}

static int execute_info(int argc, char **argv) {
  bool is_json = false;
  for (int c; (c = command_option_next(&command_info, argc, argv)) != -1;) {
    if (c != 'j') return EXIT_USAGE;
    is_json = true;
  }
  if (argc - optind != 1) return refuse_words("info", "takes one capture", NULL);
  if (is_json) return input_each_capture("info", argv[optind], print_json, NULL);
  const unsigned columns = terminal_columns(STDOUT_FILENO);
  char *text = NULL;
  size_t bytes = 0;
  FILE *const memory = columns ? open_memstream(&text, &bytes) : NULL;
  out = memory ? memory : stdout;
  const int status = print_file(argv[optind]);
  const bool is_whole = !memory || fclose(memory) == 0;
  if (!is_whole)
    say("prof info: no memory for its text");
  else if (memory)
    print_folded(text, columns, FOLD_INDENT);
  free(text);
  return is_whole ? status : EXIT_FAILED;
}

static const command_option options_of_info[] = {
    {.name = "json", .help = "the main facts as one JSON object a capture; times in ns", .id = 'j'},
    {0}};

static const command_example examples[] = {
    {"prof info trace.prof", "what the capture holds, and what it lost"}, {0}};

const prof_command command_info = {
    .name = "info",
    .summary = "what a capture holds, what it lost, what was open",
    .words = "FILE [--json]",
    .about =
        "Prints one screen about a capture: its process, time, events, losses, devices and "
        "threads, and the scopes that were open at its end. For a merged file, prints a line for "
        "each of its captures.",
    .options = options_of_info,
    .examples = examples,
    .execute = execute_info,
    .reads_captures = true};
