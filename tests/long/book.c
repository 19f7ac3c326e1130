/* book.c: the books of book.h, and the walk through what prof recorded. */
#define _GNU_SOURCE
#include "book.h"

#include <fcntl.h>
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static void *need(void *memory) {
  if (memory) return memory;
  fputs("failed: no memory for the host's own counts\n", stderr);
  exit(1);
}

/* ---- the host's own counts ---- */

static uint32_t hash_of(const char *name, const char *category) {
  uint32_t hash = 2166136261u;
  for (; *name; name++) hash = (hash ^ (unsigned char)*name) * 16777619u;
  for (; *category; category++) hash = (hash ^ (unsigned char)*category) * 16777619u;
  return hash;
}

static void place(book *b, size_t index) {
  size_t at = b->lines[index]->hash & (b->room * 2 - 1);
  while (b->places[at]) at = (at + 1) & (b->room * 2 - 1);
  b->places[at] = (uint32_t)index + 1;
}

static void grow(book *b) {
  b->room = b->room ? b->room * 2 : 256;
  b->lines = need(realloc(b->lines, b->room * sizeof(book_line *)));
  free(b->places);
  b->places = need(calloc(b->room * 2, sizeof *b->places));
  for (size_t i = 0; i < b->count; i++) place(b, i);
}

book_line *book_find(book *b, const char *name, const char *category, uint32_t level) {
  const uint32_t hash = hash_of(name, category);
  if (b->count == b->room) grow(b);
  for (size_t at = hash & (b->room * 2 - 1); b->places[at]; at = (at + 1) & (b->room * 2 - 1)) {
    book_line *const line = b->lines[b->places[at] - 1];
    if (line->hash == hash && !strcmp(line->name, name) && !strcmp(line->category, category))
      return line;
  }
  book_line *const line = need(calloc(1, sizeof *line));
  *line =
      (book_line){.name = need(strdup(name)), .category = category, .level = level, .hash = hash};
  b->lines[b->count] = line;
  place(b, b->count++);
  return line;
}

void book_add(book *to, const book *from) {
  for (size_t i = 0; i < from->count; i++) {
    const book_line *const other = from->lines[i];
    book_line *const line = book_find(to, other->name, other->category, other->level);
    line->begun += other->begun;
    line->ended += other->ended;
    line->jumped += other->jumped;
    line->open += other->open;
    line->marks += other->marks;
    line->live_bytes += other->live_bytes;
  }
}

void book_destroy(book *b) {
  for (size_t i = 0; i < b->count; i++) {
    free(b->lines[i]->name);
    free(b->lines[i]);
  }
  free(b->lines);
  free(b->places);
  *b = (book){0};
}

void book_account_alloc(book_account *account, uint64_t bytes) {
  account->used += bytes;
  account->alloc_count++;
  if (account->used > account->peak) account->peak = account->used;
}

void book_account_free(book_account *account, uint64_t bytes) {
  account->used -= bytes;
  account->free_count++;
}

/* ---- JSON ---- */

void book_put_text(FILE *to, const char *text, size_t bytes) {
  fputc('"', to);
  for (size_t i = 0; i < bytes; i++) {
    const unsigned char c = (unsigned char)text[i];
    if (c < 0x20 || c == '"' || c == '\\')
      fprintf(to, "\\u%04x", c);
    else
      fputc(c, to);
  }
  fputc('"', to);
}

static void put_name(FILE *to, const char *name, const char *category) {
  fputs("{\"name\": ", to);
  book_put_text(to, name, strlen(name));
  fputs(", \"category\": ", to);
  book_put_text(to, category, strlen(category));
}

void book_write(FILE *to, const book *b, const book_account *accounts, size_t account_count) {
  fputs("\"scopes\": [", to);
  for (size_t i = 0; i < b->count; i++) {
    const book_line *const line = b->lines[i];
    fputs(i ? ",\n" : "\n", to);
    put_name(to, line->name, line->category);
    fprintf(to,
            ", \"level\": %u, \"begun\": %" PRIu64 ", \"ended\": %" PRIu64 ", \"jumped\": %" PRIu64
            ", \"open\": %" PRIu64 ", \"marks\": %" PRIu64 ", \"live_bytes\": %" PRId64 "}",
            line->level, line->begun, line->ended, line->jumped, line->open, line->marks,
            line->live_bytes);
  }
  fputs("],\n\"pools\": [", to);
  for (size_t i = 0; i < account_count; i++) {
    fputs(i ? ",\n{\"name\": " : "\n{\"name\": ", to);
    book_put_text(to, accounts[i].name, strlen(accounts[i].name));
    fprintf(to,
            ", \"used\": %" PRIu64 ", \"peak\": %" PRIu64 ", \"alloc_count\": %" PRIu64
            ", \"free_count\": %" PRIu64 "}",
            accounts[i].used, accounts[i].peak, accounts[i].alloc_count, accounts[i].free_count);
  }
  fputs("]", to);
}

/* ---- what prof says ---- */

/* Of one name, category and kind. */
typedef struct seen {
  uint64_t count, ns, self_ns;
} seen;

enum { SEEN_KINDS = 4 };
static const char *const seen_kinds[SEEN_KINDS] = {"scope", "skipped", "open", "mark"};

/* -1: of no interest here. */
static int kind_of(const prof_event *event) {
  if (event->kind == PROF_EVENT_OPEN) return 2;
  if (event->kind == PROF_EVENT_INSTANT || event->kind == PROF_EVENT_COUNTER) return 3;
  if (event->kind != PROF_EVENT_SCOPE) return -1;
  return event->flags & PROF_EVENT_SKIPPED ? 1 : 0;
}

typedef struct sums {
  book names; /* line i has seen[i] */
  seen (*seen)[SEEN_KINDS];
  size_t room;
} sums;

static void count(sums *s, const prof_event *event, int kind) {
  char name[20000], category[300];
  snprintf(name, sizeof name, "%.*s", (int)event->name_bytes, event->name);
  snprintf(category, sizeof category, "%.*s", (int)event->category_bytes, event->category);
  const size_t before = s->names.count;
  book_line *const line = book_find(&s->names, name, category, 0);
  if (s->names.count > before) {
    line->category = need(strdup(category)); /* lives as long as the process */
    line->begun = before;                    /* its index */
    if (before == s->room) {
      s->room = s->room ? s->room * 2 : 256;
      s->seen = need(realloc(s->seen, s->room * sizeof *s->seen));
    }
    memset(s->seen[before], 0, sizeof s->seen[before]);
  }
  seen *const to = &s->seen[line->begun][kind];
  to->count++;
  to->ns += event->duration_ns;
  to->self_ns += event->self_ns;
}

static int put_events(FILE *to, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_cursor *cursor;
  prof_event event;
  sums s = {0};
  int status;
  if (prof_trace_info_get(trace, &info) || prof_cursor_create(trace, &cursor)) return -1;
  uint64_t *const self = need(calloc(info.thread_count + 1, 2 * sizeof *self));
  uint64_t *const outermost = self + info.thread_count;
  while ((status = prof_cursor_next(cursor, &event)) == 1) {
    const int kind = kind_of(&event);
    if (kind < 0) continue;
    count(&s, &event, kind);
    if (kind == 3 || kind == 2) continue;
    self[event.thread] += event.self_ns;
    if (event.depth == 0) outermost[event.thread] += event.duration_ns;
  }
  prof_cursor_destroy(cursor);
  fputs("\"events\": [", to);
  const char *between = "\n";
  for (size_t i = 0; i < s.names.count; i++)
    for (int kind = 0; kind < SEEN_KINDS; kind++) {
      const seen *const what = &s.seen[i][kind];
      if (!what->count) continue;
      fputs(between, to);
      between = ",\n";
      put_name(to, s.names.lines[i]->name, s.names.lines[i]->category);
      fprintf(to,
              ", \"kind\": \"%s\", \"count\": %" PRIu64 ", \"ns\": %" PRIu64
              ", \"self_ns\": %" PRIu64 "}",
              seen_kinds[kind], what->count, what->ns, what->self_ns);
    }
  fputs("],\n\"threads\": [", to);
  for (uint32_t i = 0; i < info.thread_count; i++)
    fprintf(to, "%s{\"self_ns\": %" PRIu64 ", \"outermost_ns\": %" PRIu64 "}", i ? ", " : "",
            self[i], outermost[i]);
  fputs("],\n", to);
  free(self);
  free(s.seen);
  book_destroy(&s.names);
  return status;
}

static int put_rows(FILE *to, const prof_trace *trace) {
  const prof_aggregate_options options = {.size = sizeof options, .rows_limit = UINT32_MAX};
  prof_rows *rows;
  if (prof_trace_aggregate(trace, &options, &rows)) return -1;
  fputs("\"rows\": [", to);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    const prof_row *const row = &rows->rows[i];
    prof_row_more more = {.size = sizeof more};
    if (prof_rows_more(rows, i, &more)) return -1;
    fputs(i ? ",\n" : "\n", to);
    put_name(to, row->name, row->category);
    fprintf(to,
            ", \"calls\": %" PRIu64 ", \"total_ns\": %" PRIu64 ", \"self_ns\": %" PRIu64
            ", \"all_ns\": %" PRIu64 ", \"open\": %" PRIu64 ", \"skipped\": %" PRIu64
            ", \"memory\": %" PRId64 ", \"self_memory\": %" PRId64 "}",
            row->calls_count, row->total_ns, row->self_ns, more.calls_ns, more.open_count,
            more.skipped_count, row->memory_bytes, row->self_memory_bytes);
  }
  fprintf(to,
          "],\n\"rows_self_ns\": %" PRIu64 ", \"rows_calls\": %" PRIu64 ", \"rows_open\": %" PRIu64
          ",\n",
          rows->total_self_ns, rows->calls_count, rows->open_count);
  prof_rows_destroy(rows);
  return 0;
}

static int put_live(FILE *to, const prof_memory *memory, uint32_t index) {
  prof_memory_rows *rows;
  if (prof_memory_live(memory, index, PROF_MEMORY_AT_END, 0, PROF_MEMORY_BY_SCOPE, &rows))
    return -1;
  fputs(", \"live_by_scope\": [", to);
  for (uint64_t i = 0; i < rows->row_count; i++) {
    fputs(i ? ", {\"scope\": " : "{\"scope\": ", to);
    book_put_text(to, rows->rows[i].label, strlen(rows->rows[i].label));
    fprintf(to, ", \"count\": %" PRIu64 ", \"bytes\": %" PRIu64 "}", rows->rows[i].count,
            rows->rows[i].bytes);
  }
  fputs("]", to);
  prof_free(rows);
  return 0;
}

static int put_pools(FILE *to, const prof_trace *trace) {
  prof_memory *memory;
  if (prof_memory_read(trace, &memory)) return -1;
  fputs("\"pools\": [", to);
  for (uint32_t i = 0; i < prof_memory_pool_count(memory); i++) {
    prof_memory_info pool = {.size = sizeof pool};
    if (prof_memory_pool_get(memory, i, &pool)) return -1;
    uint64_t wrong = 0;
    for (int j = 0; j < PROF_MEMORY_WRONG_COUNT; j++) wrong += pool.wrong_count[j];
    fputs(i ? ",\n{\"name\": " : "\n{\"name\": ", to);
    book_put_text(to, pool.name, strlen(pool.name));
    fprintf(
        to,
        ", \"used\": %" PRId64 ", \"peak\": %" PRId64
        ", \"peak_is_exact\": %u, \"alloc_count\": %" PRIu64 ", \"free_count\": %" PRIu64
        ", \"live_count\": %" PRIu64 ", \"live_bytes\": %" PRIu64 ", \"peak_live_bytes\": %" PRIu64
        ", \"missing\": %" PRIu64 ", \"wrong\": %" PRIu64 ", \"unsure\": %" PRIu64,
        pool.end.used_bytes, pool.peak_used.used_bytes, pool.peak_used.is_exact, pool.alloc_count,
        pool.free_count, pool.end.live_count, pool.end.live_bytes, pool.peak_used.live_bytes,
        pool.missing_count, wrong, pool.unsure_count + pool.unchecked_count + pool.refused_count);
    if (put_live(to, memory, i)) return -1;
    fputs("}", to);
  }
  fputs("],\n", to);
  prof_memory_destroy(memory);
  prof_memory_max most = {.size = sizeof most};
  if (prof_memory_max_get(PROF_HOST, PROF_MEMORY_POOL, &most) == PROF_OK)
    fprintf(to, "\"max_used\": %" PRIu64 ", \"now_used\": %" PRIu64 ",\n", most.max_used_bytes,
            most.used_bytes);
  return 0;
}

static void put_losses(FILE *to, const uint64_t lost[PROF_LOSS_COUNT]) {
  fputs("\"lost\": {", to);
  for (int i = 0; i < PROF_LOSS_COUNT; i++)
    fprintf(to, "%s\"%s\": %" PRIu64, i ? ", " : "", prof_loss_name(i), lost[i]);
  fputs("}", to);
}

static int put_counts(FILE *to, const prof_trace *trace) {
  prof_trace_info info = {.size = sizeof info};
  prof_health health = {.size = sizeof health};
  if (prof_trace_info_get(trace, &info) || prof_health_get(&health)) return -1;
  fprintf(to,
          "\"info\": {\"scope_count\": %" PRIu64 ", \"open_count\": %" PRIu64
          ", \"open_below_count\": %" PRIu64 ", \"bad_count\": %" PRIu64
          ", \"stray_count\": %" PRIu64 ", ",
          info.scope_count, info.open_count, info.open_below_count, info.bad_count,
          info.stray_count);
  put_losses(to, info.lost_count);
  fprintf(to,
          "},\n\"health\": {\"recorded_count\": %" PRIu64 ", \"open_count\": %" PRIu64
          ", \"stray_count\": %" PRIu64 ", \"deep_count\": %" PRIu64
          ", \"cut_text_count\": %" PRIu64 ", \"capture\": ",
          health.recorded_count, health.open_count, health.stray_count, health.deep_count,
          health.cut_text_count);
  book_put_text(to, health.capture_path, strlen(health.capture_path));
  fputs(", ", to);
  put_losses(to, health.lost_count);
  fputs("}}\n", to);
  return 0;
}

int book_write_prof(const char *path) {
  prof_trace *trace;
  FILE *const to = fopen(path, "w");
  if (!to || prof_get(&trace)) return 1;
  fputs("{", to);
  const int status =
      put_events(to, trace) || put_rows(to, trace) || put_pools(to, trace) || put_counts(to, trace);
  prof_trace_destroy(trace);
  const int dumped = prof_dump(NULL);
  if (status || dumped)
    fprintf(stderr, "failed: reading %d, prof_dump() %d: %s\n", status, dumped, prof_last_error());
  return fclose(to) || status || dumped ? 1 : 0;
}

bool book_progress(size_t bytes, void **to) {
  const char *const path = getenv("PROGRESS");
  if (!path) return true;
  const int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (fd < 0 || ftruncate(fd, (off_t)bytes)) return false;
  void *const at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
  if (at == MAP_FAILED) return false;
  *to = at;
  return true;
}
