/* A pool over time: the data of its curve, and the plot in a terminal. See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/internal.h"
#include "../analysis/memory.h"
#include "../base/display.h"
#include "../base/error.h"

/* ---- the curve of a pool ---- */

/* Its data, which the SVG draws too. */

enum { BYTES_TICKS_MAX = 6 };

static uint32_t time_column(const prof_i_memory_curve *curve, uint64_t ns) {
  if (ns <= curve->begin_ns) return 0;
  const double share = (double)(ns - curve->begin_ns) / (double)(curve->end_ns - curve->begin_ns);
  return share >= 1 ? curve->count - 1 : (uint32_t)(share * curve->count);
}

/* The pool's own peak is right whatever was lost. The curve is made of records, so it may be lower
   there. */
static void set_mark(const prof_i_memory_curve *curve, prof_i_memory_mark *mark, int64_t *columns,
                     int64_t bytes, uint64_t ns) {
  *mark = (prof_i_memory_mark){bytes, ns, time_column(curve, ns)};
  if (columns[mark->column] < mark->bytes) columns[mark->column] = mark->bytes;
}

static int64_t floor_to(int64_t bytes, int64_t step) {
  return bytes >= 0 ? bytes / step * step : -((-bytes + step - 1) / step * step);
}

static void curve_include_bytes(prof_i_memory_curve *curve, int64_t bytes) {
  if (bytes < curve->low) curve->low = bytes;
  if (bytes > curve->high) curve->high = bytes;
}

/* Over all that is drawn, and 0. */
static void set_axis(prof_i_memory_curve *curve) {
  curve->low = 0;
  curve->high = curve->step = 1;
  for (uint32_t i = 0; i < curve->count * 2; i++) curve_include_bytes(curve, curve->used[i]);
  curve_include_bytes(curve, curve->used_peak.bytes);
  curve_include_bytes(curve, curve->allocated_peak.bytes);
  while ((curve->high - curve->low) / curve->step >= BYTES_TICKS_MAX) curve->step *= 2;
  curve->low = floor_to(curve->low, curve->step);
  curve->high = -floor_to(-curve->high, curve->step);
}

int prof_i_memory_curve_init(prof_i_memory_curve *curve, const prof_memory *memory, uint32_t index,
                             uint32_t count) {
  *curve = (prof_i_memory_curve){
      .count = count, .begin_ns = prof_i_memory_begin_ns(memory, index), .end_ns = memory->end_ns};
  if (curve->end_ns <= curve->begin_ns)
    curve->begin_ns = curve->end_ns ? curve->end_ns - 1 : 0, curve->end_ns = curve->begin_ns + 1;
  curve->used = malloc((size_t)count * 2 * sizeof *curve->used);
  if (!curve->used) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for %u columns", count);
  curve->allocated = curve->used + count;
  const int status = prof_i_memory_series(memory, index, count, curve->used, curve->allocated);
  if (status) {
    prof_i_memory_curve_fini(curve);
    return status;
  }
  const prof_memory_info *const info = &memory->pools[index].info;
  set_mark(curve, &curve->used_peak, curve->used, info->peak_used.used_bytes, info->peak_used.ns);
  curve->has_allocated = info->peak_allocated.allocated_bytes > 0;
  set_mark(curve, &curve->allocated_peak, curve->allocated, info->peak_allocated.allocated_bytes,
           info->peak_allocated.ns);
  set_axis(curve);
  return 0;
}

void prof_i_memory_curve_fini(prof_i_memory_curve *curve) {
  free(curve->used);
  curve->used = curve->allocated = NULL;
}

uint64_t prof_i_memory_time_step(uint64_t span_ns, uint32_t ticks_max) {
  static const uint32_t of_ten[] = {1, 2, 5};
  for (uint64_t power = 1; power < UINT64_MAX / 100; power *= 10)
    for (uint32_t i = 0; i < 3; i++)
      if (span_ns / (power * of_ten[i]) < ticks_max) return power * of_ten[i];
  return UINT64_MAX;
}

void prof_i_memory_tick_bytes(char *to, size_t room, int64_t bytes) {
  prof_i_put_bytes(to, room, bytes);
  prof_i_trim_zeros(to);
  if (bytes == 0) memcpy(to, "0", 2);
}

void prof_i_memory_tick_time(char *to, size_t room, uint64_t ns) {
  prof_i_put_time(to, room, ns, 0);
  prof_i_trim_zeros(to);
  if (ns == 0) memcpy(to, "0", 2);
}

/* ---- the plot in a terminal ---- */

/* A value is drawn in the row that contains it, lower edge included. Each tick of the axis is the
   lower edge of a row. One more row is above the highest tick, for values at that tick. */

/* What a cell shows: by UTF-8, by ASCII. PART_1 to PART_7 are eighths of used. */
/* clang-format off */
#define PLOT_CELL_LIST(X)                    \
  X(BLANK, " ", " ")                    \
  X(PART_1, "\u2581", ".")              \
  X(PART_2, "\u2582", ".")              \
  X(PART_3, "\u2583", ".")              \
  X(PART_4, "\u2584", ":")              \
  X(PART_5, "\u2585", ":")              \
  X(PART_6, "\u2586", ":")              \
  X(PART_7, "\u2587", ":")              \
  X(FULL, "\u2588", "#")                \
  X(BOTH, "\u2593", "=") /* the line runs where used is */ \
  X(LINE, "\u2500", "-")                \
  X(UPRIGHT, "\u2502", "|")             \
  X(FROM_BELOW, "\u250c", "+")          \
  X(TO_ABOVE, "\u2518", "+")            \
  X(FROM_ABOVE, "\u2514", "+")          \
  X(TO_BELOW, "\u2510", "+")            \
  X(PEAK_USED, "\u25c6", "U")           \
  X(PEAK_ALLOCATED, "\u25c7", "A")      \
  X(AXIS, "\u2502", "|")                \
  X(AXIS_TICK, "\u2524", "+")           \
  X(CORNER, "\u2514", "+")              \
  X(TIME_TICK, "\u252c", "+")
/* clang-format on */

typedef enum plot_cell {
#define KIND(kind, utf8, ascii) CELL_##kind,
  PLOT_CELL_LIST(KIND)
#undef KIND
} plot_cell;

static const char glyphs[][2][4] = {
#define GLYPH(kind, utf8, ascii) {utf8, ascii},
    PLOT_CELL_LIST(GLYPH)
#undef GLYPH
};

enum { ROWS_WANTED = 14, ROWS_MAX = 20, LABEL_ROOM = 32 };

typedef struct plot {
  prof_i_text_buffer *page;
  prof_i_memory_curve curve;
  uint32_t rows, rows_a_tick;
  uint32_t gutter; /* columns left of the axis */
  bool is_ascii;
  unsigned char cells[ROWS_MAX + 1][PROF_I_PLOT_WIDTH_MAX];
} plot;

static void plot_put_cell(const plot *p, plot_cell which) {
  prof_i_text_buffer_append_text(p->page, glyphs[which][p->is_ascii]);
}

/* ---- cells ---- */

/* Eighths of a row above the axis's low end. */
static uint32_t bytes_eighths(const plot *p, int64_t bytes) {
  const double share = (double)(bytes - p->curve.low) / (double)(p->curve.high - p->curve.low);
  const uint32_t eighths = (uint32_t)(share * p->rows * 8);
  return eighths == 0 && bytes > p->curve.low ? 1 : eighths; /* a little is not nothing */
}

static void plot_fill_column(plot *p, uint32_t column) {
  const uint32_t eighths = bytes_eighths(p, p->curve.used[column]);
  for (uint32_t row = 0; row < eighths / 8; row++) p->cells[row][column] = CELL_FULL;
  if (eighths % 8) p->cells[eighths / 8][column] = (unsigned char)(CELL_BLANK + eighths % 8);
}

static void plot_put_line(plot *p, uint32_t row, uint32_t column, plot_cell which) {
  unsigned char *const at = &p->cells[row][column];
  *at = (unsigned char)(*at == CELL_BLANK ? which : CELL_BOTH);
}

/* The line goes up or down where its column begins. */
static void plot_draw_line(plot *p, uint32_t column, uint32_t *row) {
  const uint32_t to = bytes_eighths(p, p->curve.allocated[column]) / 8, from = column ? *row : to;
  *row = to;
  if (from == to) {
    plot_put_line(p, to, column, CELL_LINE);
    return;
  }
  plot_put_line(p, to, column, from < to ? CELL_FROM_BELOW : CELL_FROM_ABOVE);
  for (uint32_t r = (from < to ? from : to) + 1; r < (from < to ? to : from); r++)
    if (p->cells[r][column] == CELL_BLANK) p->cells[r][column] = CELL_UPRIGHT;
  if (p->cells[from][column] == CELL_BLANK)
    p->cells[from][column] = from < to ? CELL_TO_ABOVE : CELL_TO_BELOW;
}

/* Where they fall on one cell, the peak of allocated goes a row up. */
static void plot_mark_peaks(plot *p) {
  const prof_i_memory_mark *const used = &p->curve.used_peak, *const allocated =
                                                                  &p->curve.allocated_peak;
  const uint32_t eighths = bytes_eighths(p, used->bytes);
  /* the top of what is filled */
  const uint32_t used_row = eighths % 8 || !eighths ? eighths / 8 : eighths / 8 - 1;
  uint32_t allocated_row = bytes_eighths(p, allocated->bytes) / 8;
  if (allocated_row == used_row && allocated->column == used->column) allocated_row++;
  p->cells[used_row][used->column] = CELL_PEAK_USED;
  if (p->curve.has_allocated) p->cells[allocated_row][allocated->column] = CELL_PEAK_ALLOCATED;
}

/* ---- lines of text ---- */

static void plot_put_row(const plot *p, uint32_t row) {
  char label[LABEL_ROOM] = "";
  const bool has_tick = row % p->rows_a_tick == 0;
  if (has_tick)
    prof_i_memory_tick_bytes(label, sizeof label,
                             p->curve.low + (int64_t)(row / p->rows_a_tick) * p->curve.step);
  prof_i_text_buffer_printf(p->page, "%*s ", (int)p->gutter, label);
  plot_put_cell(p, has_tick ? CELL_AXIS_TICK : CELL_AXIS);
  for (uint32_t column = 0; column < p->curve.count; column++)
    plot_put_cell(p, (plot_cell)p->cells[row][column]);
  prof_i_text_buffer_end_line(p->page);
}

static uint32_t axis_gutter(const prof_i_memory_curve *curve) {
  char label[LABEL_ROOM];
  size_t most = 0;
  for (int64_t bytes = curve->low; bytes <= curve->high; bytes += curve->step) {
    prof_i_memory_tick_bytes(label, sizeof label, bytes);
    if (strlen(label) > most) most = strlen(label);
  }
  return (uint32_t)most;
}

/* Below the plot: ticks, and what they say, as far as it has room. */
static void put_time_axis(const plot *p) {
  const prof_i_memory_curve *const curve = &p->curve;
  const uint64_t span = curve->end_ns - curve->begin_ns,
                 step = prof_i_memory_time_step(span, curve->count / 12);
  char ticks[PROF_I_PLOT_WIDTH_MAX], labels[PROF_I_PLOT_WIDTH_MAX + LABEL_ROOM + 1],
      label[LABEL_ROOM];
  memset(ticks, 0, sizeof ticks);
  memset(labels, ' ', sizeof labels);
  size_t next = 0, end = 0;
  for (uint64_t ns = curve->begin_ns + (step - curve->begin_ns % step) % step;
       ns <= curve->end_ns && ns >= curve->begin_ns; ns += step) {
    const uint32_t column =
        (uint32_t)((double)(ns - curve->begin_ns) / (double)span * (curve->count - 1));
    prof_i_memory_tick_time(label, sizeof label, ns);
    const size_t bytes = strlen(label), at = column > bytes / 2 ? column - bytes / 2 : 0;
    ticks[column] = 1;
    if (at < next || at + bytes > curve->count + 2) continue;
    memcpy(labels + at, label, bytes);
    end = at + bytes;
    next = end + 1;
  }
  prof_i_text_buffer_repeat(p->page, ' ', p->gutter + 1);
  plot_put_cell(p, CELL_CORNER);
  for (uint32_t column = 0; column < curve->count; column++)
    plot_put_cell(p, ticks[column] ? CELL_TIME_TICK : CELL_LINE);
  prof_i_text_buffer_end_line(p->page);
  prof_i_text_buffer_repeat(p->page, ' ', p->gutter + 2);
  prof_i_text_buffer_append(p->page, labels, end);
  prof_i_text_buffer_end_line(p->page);
}

static void plot_put_peak(const plot *p, plot_cell which, const char *title,
                          const prof_i_memory_mark *peak) {
  char bytes[LABEL_ROOM], time[LABEL_ROOM];
  prof_i_put_bytes(bytes, sizeof bytes, peak->bytes);
  prof_i_put_time(time, sizeof time, peak->ns, 0);
  prof_i_text_buffer_repeat(p->page, ' ', p->gutter + 2);
  plot_put_cell(p, which);
  prof_i_text_buffer_printf(p->page, " %s %s at %s\n", title, bytes, time);
}

static void plot_put_legend(const plot *p) {
  static const struct {
    plot_cell which;
    const char *title;
  } parts[] = {{CELL_FULL, " used   "}, {CELL_LINE, " allocated   "}, {CELL_BOTH, " both"}};
  prof_i_text_buffer_repeat(p->page, ' ', p->gutter + 2);
  for (size_t i = 0; i < (p->curve.has_allocated ? sizeof parts / sizeof *parts : 1); i++) {
    plot_put_cell(p, parts[i].which);
    prof_i_text_buffer_append_text(p->page, parts[i].title);
  }
  prof_i_text_buffer_end_line(p->page);
  plot_put_peak(p, CELL_PEAK_USED, "peak of used", &p->curve.used_peak);
  if (p->curve.has_allocated)
    plot_put_peak(p, CELL_PEAK_ALLOCATED, "peak of allocated", &p->curve.allocated_peak);
}

int prof_i_memory_plot(prof_i_text_buffer *page, const prof_memory *memory, uint32_t index,
                       uint32_t width, bool is_ascii) {
  enum { GUTTER_MAX = 11 }; /* "-1023.5 MiB" */
  plot p = {.page = page, .is_ascii = is_ascii};
  const int status = prof_i_memory_curve_init(&p.curve, memory, index, width - GUTTER_MAX - 3);
  if (status) return status;
  const uint32_t ticks = (uint32_t)((p.curve.high - p.curve.low) / p.curve.step);
  p.rows_a_tick = ticks < ROWS_WANTED ? ROWS_WANTED / ticks : 1;
  p.rows = ticks * p.rows_a_tick;
  p.gutter = axis_gutter(&p.curve);
  uint32_t row_of_line = 0;
  for (uint32_t column = 0; column < p.curve.count; column++) {
    plot_fill_column(&p, column);
    if (p.curve.has_allocated) plot_draw_line(&p, column, &row_of_line);
  }
  plot_mark_peaks(&p);
  for (uint32_t row = p.rows + 1; row-- > 0;) plot_put_row(&p, row);
  put_time_axis(&p);
  plot_put_legend(&p);
  prof_i_memory_curve_fini(&p.curve);
  return 0;
}
