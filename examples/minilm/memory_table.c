/* See memory_table.h. SPDX-License-Identifier: MIT */
#include "memory_table.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { ROWS_SHOWN = 8, TEXT_BYTES = 64, LABEL_WIDTH = 32 };

static int refuse(failure *why, const char *what, int status) {
  return failure_set(why, "%s: %s (%s)", what, prof_status_text(status), prof_last_error());
}

/* "12.34 MiB". The text is the caller's, of TEXT_BYTES. */
static const char *human(char *to, int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB"};
  double value = (double)bytes;
  int unit = 0;
  while ((value >= 1024 || value <= -1024) && unit < 4) {
    value /= 1024;
    unit++;
  }
  snprintf(to, TEXT_BYTES, "%.*f %s", unit == 0 ? 0 : 2, value, units[unit]);
  return to;
}

static double percent(uint64_t part, uint64_t whole) {
  return whole == 0 ? 0 : 100.0 * (double)part / (double)whole;
}

/* ---- the peaks ---- */

/* The last column compares exact with own alone. A query now and then misses what existed in
   between, so asked may differ and be right. */
static void print_bytes(const char *what, int64_t exact, int64_t asked, uint64_t own) {
  char texts[4][TEXT_BYTES];
  printf("  %-20s %12s %12s %12s   ", what, human(texts[0], exact), human(texts[1], asked),
         human(texts[2], (int64_t)own));
  if (exact == (int64_t)own)
    puts("equal");
  else
    printf("DIFFERS by %s\n", human(texts[3], exact - (int64_t)own));
}

static void print_times(const prof_memory_state *exact, const prof_memory_state *asked) {
  printf("  %-20s %10.3f s %10.3f s\n", "  after", (double)exact->ns / 1e9,
         (double)asked->ns / 1e9);
}

static void print_count(const char *what, uint64_t exact, uint64_t own) {
  printf("  %-20s %12" PRIu64 " %12s %12" PRIu64 "   %s\n", what, exact, "", own,
         exact == own ? "equal" : "DIFFERS");
}

static void print_peaks(const prof_memory_info *exact, const prof_memory_info *asked,
                        const pool_statistics *own) {
  printf(
      "\nMemory, seen in three ways\n\n"
      "  exact   prof's sums of each piece and block that the pool told\n"
      "  asked   what the pool answered when it was asked, %" PRIu64
      " times, once a layer: what comes and goes in between is missed\n"
      "  own     the account that the pool keeps itself: the last column says whether exact equals "
      "it\n\n",
      asked->sample_count);
  printf("  %-20s %12s %12s %12s   %s\n", "", "exact", "asked", "own", "exact and own");
  print_bytes("peak used", exact->peak_used.used_bytes, asked->peak_used.used_bytes,
              own->used_peak_bytes);
  print_times(&exact->peak_used, &asked->peak_used);
  print_bytes("peak allocated", exact->peak_allocated.allocated_bytes,
              asked->peak_allocated.allocated_bytes, own->reserved_peak_bytes);
  print_times(&exact->peak_allocated, &asked->peak_allocated);
  print_bytes("used at the end", exact->end.used_bytes, asked->end.used_bytes, own->used_bytes);
  print_bytes("allocated at the end", exact->end.allocated_bytes, asked->end.allocated_bytes,
              own->reserved_bytes);
  print_count("pieces handed out", exact->alloc_count, own->request_count - own->refused_count);
  print_count("pieces back", exact->free_count, own->release_count);
  print_count("blocks taken", exact->reserve_count, own->reserve_count);
  printf("  %-20s %12" PRIu64 "   in %.3f ms\n", "collections", exact->collection_count,
         (double)exact->collection_ns / 1e6);
}

/* ---- a moment ---- */

static void print_waste(const prof_memory_state *s) {
  char asked[TEXT_BYTES], given[TEXT_BYTES], waste[TEXT_BYTES];
  printf("  Asked for at the peak of used: %s in %" PRIu64
         " pieces; given: %s, so rounding up cost %s (%.3f %%)\n",
         human(asked, (int64_t)s->requested_bytes), s->live_count,
         human(given, (int64_t)s->live_bytes),
         human(waste, (int64_t)(s->live_bytes - s->requested_bytes)),
         percent(s->live_bytes - s->requested_bytes, s->live_bytes));
}

/* The block that made the peak is one free stretch then, and the longest: what is free besides
   could not serve, for no stretch of it was long enough. */
static void print_fragmentation(const prof_memory_info *exact) {
  const prof_memory_state *s = &exact->peak_allocated;
  char a[TEXT_BYTES], b[TEXT_BYTES], c[TEXT_BYTES];
  if (!s->has_ranges || !s->is_exact) return;
  printf(
      "  Fragmentation cost %s: so much was free in the other blocks, in stretches too short, when "
      "the pool took the block that made the\n"
      "  peak of allocated. With the new block %s were free\n",
      human(a, (int64_t)(s->free_bytes - s->largest_free_bytes)), human(b, (int64_t)s->free_bytes));
  printf("  At the peak of used %s were free, the longest stretch %s: fragmentation %.0f %%\n",
         human(a, (int64_t)exact->peak_used.free_bytes),
         human(b, (int64_t)exact->peak_used.largest_free_bytes),
         100 * exact->peak_used.fragmentation);
  printf("  Taken from the system beyond what was ever in use: %s\n",
         human(c, exact->peak_allocated.allocated_bytes - exact->peak_used.used_bytes));
}

static void print_row(const char *label, uint64_t count, uint64_t bytes, uint64_t all_bytes) {
  char text[TEXT_BYTES];
  printf("  %-*.*s %8" PRIu64 " %12s %8.2f %%\n", LABEL_WIDTH, LABEL_WIDTH, label, count,
         human(text, (int64_t)bytes), percent(bytes, all_bytes));
}

static int print_live(const prof_memory *memory, uint32_t index, prof_memory_by by,
                      const char *title, int64_t used, failure *why) {
  prof_memory_rows *rows = NULL;
  const int status = prof_memory_live(memory, index, PROF_MEMORY_AT_PEAK_USED, 0, by, &rows);
  if (status != PROF_OK) return refuse(why, "what was live", status);
  prof_memory_row rest = {.label = "others"};
  printf("\n  %-*s %8s %12s %10s\n", LABEL_WIDTH, title, "pieces", "bytes", "share");
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_memory_row *row = &rows->rows[i];
    if (i < ROWS_SHOWN) {
      print_row(row->label[0] == '\0' ? "(none)" : row->label, row->count, row->bytes, rows->bytes);
      continue;
    }
    rest.count += row->count;
    rest.bytes += row->bytes;
  }
  if (rest.count > 0) print_row(rest.label, rest.count, rest.bytes, rows->bytes);
  print_row((int64_t)rows->bytes == used ? "all, equal to the peak" : "all, which is NOT the peak",
            rows->count, rows->bytes, rows->bytes);
  prof_free(rows);
  return 0;
}

static void print_faults(const prof_memory_info *exact) {
  uint64_t wrong_count = 0;
  for (int i = 0; i < PROF_MEMORY_WRONG_COUNT; i++) wrong_count += exact->wrong_count[i];
  printf("\n  The account: %" PRIu64 " events missing, %" PRIu64 " wrong calls, %" PRIu64
         " refused\n",
         exact->missing_count, wrong_count, exact->refused_count);
}

/* ---- which pools ---- */

/* The last of a source: its last session. */
static int find(const prof_memory *memory, uint32_t source, prof_memory_info *info_out,
                uint32_t *index_out, failure *why) {
  for (uint32_t i = prof_memory_pool_count(memory); i-- > 0;) {
    prof_memory_info info = {.size = sizeof info};
    const int status = prof_memory_pool_get(memory, i, &info);
    if (status != PROF_OK) return refuse(why, "a pool of the trace", status);
    if (info.source != source) continue;
    *info_out = info;
    *index_out = i;
    return 0;
  }
  return failure_set(why, "the trace holds no %s", source == PROF_MEMORY_POOL ? "pool" : "query");
}

static int print_all(const prof_memory *memory, const pool_statistics *own, failure *why) {
  static const struct {
    prof_memory_by by;
    const char *title;
  } tables[] = {{PROF_MEMORY_BY_SCOPE, "Live at the peak, by instruction"},
                {PROF_MEMORY_BY_TAG, "By operator (tag)"},
                {PROF_MEMORY_BY_SIZE, "By size asked for"}};
  prof_memory_info exact = {.size = sizeof exact}, asked = {.size = sizeof asked};
  uint32_t index = 0, unused = 0;
  if (find(memory, PROF_MEMORY_POOL, &exact, &index, why) != 0 ||
      find(memory, PROF_MEMORY_QUERY, &asked, &unused, why) != 0)
    return -1;
  print_peaks(&exact, &asked, own);
  puts("");
  print_waste(&exact.peak_used);
  print_fragmentation(&exact);
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    if (print_live(memory, index, tables[i].by, tables[i].title, exact.peak_used.used_bytes, why) !=
        0)
      return -1;
  print_faults(&exact);
  return 0;
}

int memory_table_print(const prof_trace *trace, const pool_statistics *own, failure *why) {
  prof_memory *memory = NULL;
  const int status = prof_memory_read(trace, &memory);
  if (status != PROF_OK) return refuse(why, "memory", status);
  const int result = print_all(memory, own, why);
  prof_memory_destroy(memory);
  return result;
}
