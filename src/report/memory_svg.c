/* Draws a pool over time as an SVG: used filled, allocated as a line, both peaks with their values
   and times. It needs no script, font or other file. So browsers show it, and a README can embed
   it. Its background is always white. Also has the text of any SVG. */
#include <inttypes.h>
#include <prof/memory.h>
#include <prof/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/memory.h"
#include "../base/display.h"
#include "../base/error.h"
#include "../base/port.h"
#include "../base/process.h"
#include "../sink/sink.h"
#include "internal.h"

/* ---- text ---- */

/* Escapes what XML does not take as it is. Controls have been spelt out before. Two code points
   that are no characters are left, and become U+FFFD. */
void prof_i_svg_put_escaped(prof_i_text_buffer *page, const char *text) {
  for (; *text; text++) {
    const unsigned char *const at = (const unsigned char *)text;
    if (*text == '&')
      prof_i_text_buffer_append_text(page, "&amp;");
    else if (*text == '<')
      prof_i_text_buffer_append_text(page, "&lt;");
    else if (*text == '>')
      prof_i_text_buffer_append_text(page, "&gt;");
    else if (*text == '"')
      prof_i_text_buffer_append_text(page, "&quot;");
    else if (*text == '\'')
      prof_i_text_buffer_append_text(page, "&#39;");
    else if (at[0] == 0xef && at[1] == 0xbf && (at[2] == 0xbe || at[2] == 0xbf))
      prof_i_text_buffer_append_text(page, "\xef\xbf\xbd"), text += 2;
    else
      prof_i_text_buffer_append(page, text, 1);
  }
}

void prof_i_svg_put_name(prof_i_text_buffer *page, const char *name) {
  char shown[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(shown, name);
  prof_i_svg_put_escaped(page, shown);
}

/* ---- the picture ---- */

/* Pixels. A column of the curve is one wide. */
enum {
  SVG_WIDTH = 960,
  SVG_HEIGHT = 420,
  PLOT_LEFT = 92,
  PLOT_RIGHT = 932,
  PLOT_TOP = 84,
  PLOT_BOTTOM = 372,
  PLOT_COLUMNS = PLOT_RIGHT - PLOT_LEFT,
  LABEL_ROOM = 64,
  LABEL_GAP = 18
};

#define USED_COLOUR "#1a5fd0"
#define ALLOCATED_COLOUR "#d9480f"
#define HALO " stroke=\"#fff\" stroke-width=\"4\" stroke-linejoin=\"round\" paint-order=\"stroke\""

typedef struct memory_svg {
  prof_i_text_buffer page;
  prof_i_memory_curve curve;
  const prof_memory *memory;
  const prof_memory_info *info;
} memory_svg;

/* ---- places ---- */

/* Tenths of a pixel from the top. */
static int bytes_y(const memory_svg *p, int64_t bytes) {
  const double share = (double)(bytes - p->curve.low) / (double)(p->curve.high - p->curve.low);
  return PLOT_BOTTOM * 10 - (int)(share * (PLOT_BOTTOM - PLOT_TOP) * 10 + 0.5);
}

static int time_x(const memory_svg *p, uint64_t ns) {
  const double share =
      (double)(ns - p->curve.begin_ns) / (double)(p->curve.end_ns - p->curve.begin_ns);
  return PLOT_LEFT + (int)(share * PLOT_COLUMNS + 0.5);
}

/* ---- parts ---- */

static void svg_put_head(memory_svg *p) {
  prof_trace_info trace = {.size = sizeof trace};
  char device[LABEL_ROOM];
  prof_trace_info_get(p->memory->trace, &trace);
  prof_i_put_device(device, sizeof device, p->info->device);
  prof_i_text_buffer_printf(
      &p->page,
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %d\" width=\"%d\" "
      "height=\"%d\" role=\"img\"",
      SVG_WIDTH, SVG_HEIGHT, SVG_WIDTH, SVG_HEIGHT);
  prof_i_text_buffer_append_text(
      &p->page,
      " font-family=\"system-ui, 'Segoe UI', Helvetica, Arial, sans-serif\" "
      "font-size=\"13\">\n<title>Memory of ");
  prof_i_svg_put_name(&p->page, p->info->name);
  prof_i_text_buffer_printf(
      &p->page, " on %s over time</title>\n<rect width=\"%d\" height=\"%d\" fill=\"#fff\"/>\n",
      device, SVG_WIDTH, SVG_HEIGHT);
  prof_i_text_buffer_printf(
      &p->page, "<text x=\"%d\" y=\"30\" font-size=\"17\" font-weight=\"bold\" fill=\"#222\">",
      PLOT_LEFT);
  prof_i_svg_put_name(&p->page, p->info->name);
  prof_i_text_buffer_printf(&p->page, " on %s</text>\n<text x=\"%d\" y=\"50\" fill=\"#666\">",
                            device, PLOT_LEFT);
  prof_i_svg_put_name(&p->page, trace.process_name);
  prof_i_text_buffer_printf(
      &p->page, " (pid %u), session %u, %s</text>\n", trace.pid, p->info->session,
      p->info->source == PROF_MEMORY_QUERY ? "asked by PROFILE_MEMORY()" : "exact, piece by piece");
}

static void svg_put_legend(memory_svg *p) {
  prof_i_text_buffer_printf(
      &p->page,
      "<rect x=\"%d\" y=\"18\" width=\"16\" height=\"12\" fill=\"%s\" fill-opacity=\"0.35\"/>",
      PLOT_RIGHT - 160, USED_COLOUR);
  prof_i_text_buffer_printf(&p->page, "<text x=\"%d\" y=\"29\" fill=\"#222\">used</text>\n",
                            PLOT_RIGHT - 138);
  if (!p->curve.has_allocated) return;
  prof_i_text_buffer_printf(&p->page, "<path d=\"M%d 24h16\" stroke=\"%s\" stroke-width=\"2\"/>",
                            PLOT_RIGHT - 88, ALLOCATED_COLOUR);
  prof_i_text_buffer_printf(&p->page, "<text x=\"%d\" y=\"29\" fill=\"#222\">allocated</text>\n",
                            PLOT_RIGHT - 66);
}

static void svg_put_axes(memory_svg *p) {
  char label[LABEL_ROOM];
  const prof_i_memory_curve *const c = &p->curve;
  for (int64_t bytes = c->low; bytes <= c->high; bytes += c->step) {
    const int y = bytes_y(p, bytes);
    prof_i_memory_tick_bytes(label, sizeof label, bytes);
    prof_i_text_buffer_printf(&p->page, "<path d=\"M%d %d.%dh%d\" stroke=\"#e4e4e4\"/>", PLOT_LEFT,
                              y / 10, y % 10, PLOT_COLUMNS);
    prof_i_text_buffer_printf(
        &p->page, "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" fill=\"#444\">%s</text>\n",
        PLOT_LEFT - 8, y / 10 + 4, label);
  }
  const uint64_t step = prof_i_memory_time_step(c->end_ns - c->begin_ns, 10);
  for (uint64_t ns = c->begin_ns + (step - c->begin_ns % step) % step;
       ns <= c->end_ns && ns >= c->begin_ns; ns += step) {
    prof_i_memory_tick_time(label, sizeof label, ns);
    prof_i_text_buffer_printf(&p->page, "<path d=\"M%d %dv5\" stroke=\"#444\"/>", time_x(p, ns),
                              PLOT_BOTTOM);
    prof_i_text_buffer_printf(
        &p->page, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\" fill=\"#444\">%s</text>\n",
        time_x(p, ns), PLOT_BOTTOM + 20, label);
  }
}

/* Steps: along, and up or down where the value is another. Returns the last y. */
static void svg_put_steps(memory_svg *p, const int64_t *values) {
  int y = bytes_y(p, values[0]);
  prof_i_text_buffer_printf(&p->page, "V%d.%d", y / 10, y % 10);
  for (int column = 1; column < PLOT_COLUMNS; column++) {
    const int next = bytes_y(p, values[column]);
    if (next == y) continue;
    y = next;
    prof_i_text_buffer_printf(&p->page, "H%dV%d.%d", PLOT_LEFT + column, y / 10, y % 10);
  }
  prof_i_text_buffer_printf(&p->page, "H%d", PLOT_RIGHT);
}

static void svg_put_curves(memory_svg *p) {
  const int allocated = bytes_y(p, p->curve.allocated[0]);
  prof_i_text_buffer_printf(&p->page, "<path d=\"M%d %d", PLOT_LEFT, PLOT_BOTTOM);
  svg_put_steps(p, p->curve.used);
  prof_i_text_buffer_printf(&p->page, "V%dZ\" fill=\"%s\" fill-opacity=\"0.35\"/>\n", PLOT_BOTTOM,
                            USED_COLOUR);
  if (p->curve.has_allocated) {
    prof_i_text_buffer_printf(&p->page, "<path d=\"M%d %d.%d", PLOT_LEFT, allocated / 10,
                              allocated % 10);
    svg_put_steps(p, p->curve.allocated);
    prof_i_text_buffer_printf(&p->page, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\"/>\n",
                              ALLOCATED_COLOUR);
  }
  prof_i_text_buffer_printf(&p->page, "<path d=\"M%d %dV%dH%d\" fill=\"none\" stroke=\"#444\"/>\n",
                            PLOT_LEFT, PLOT_TOP, PLOT_BOTTOM, PLOT_RIGHT);
}

static void svg_put_peak(memory_svg *p, const prof_i_memory_mark *mark, const char *what,
                         const char *colour, int label_y) {
  char bytes[LABEL_ROOM], time[LABEL_ROOM];
  const int x = PLOT_LEFT + (int)mark->column, y = bytes_y(p, mark->bytes);
  const bool is_right = (int)mark->column > PLOT_COLUMNS / 2;
  prof_i_put_bytes(bytes, sizeof bytes, mark->bytes);
  prof_i_put_time(time, sizeof time, mark->ns, 0);
  prof_i_text_buffer_printf(
      &p->page,
      "<circle cx=\"%d.5\" cy=\"%d.%d\" r=\"5\" fill=\"%s\" stroke=\"#fff\" stroke-width=\"1.5\"/>",
      x, y / 10, y % 10, colour);
  prof_i_text_buffer_printf(
      &p->page,
      "<text x=\"%d\" y=\"%d\" text-anchor=\"%s\" fill=\"%s\"%s>peak of %s: %s at %s</text>\n",
      is_right ? x - 8 : x + 9, label_y, is_right ? "end" : "start", colour, HALO, what, bytes,
      time);
}

/* Each label above its mark; where they would meet, that of used below. */
static void svg_put_peaks(memory_svg *p) {
  const int used_y = bytes_y(p, p->curve.used_peak.bytes) / 10,
            allocated_y = bytes_y(p, p->curve.allocated_peak.bytes) / 10;
  const int above = 9, apart = used_y - allocated_y;
  const bool would_meet = p->curve.has_allocated && apart < LABEL_GAP + above && apart > -LABEL_GAP;
  if (p->curve.has_allocated)
    svg_put_peak(p, &p->curve.allocated_peak, "allocated", ALLOCATED_COLOUR, allocated_y - above);
  svg_put_peak(p, &p->curve.used_peak, "used", USED_COLOUR,
               would_meet ? used_y + LABEL_GAP : used_y - above);
}

static void svg_put_foot(memory_svg *p) {
  if (p->info->missing_count)
    prof_i_text_buffer_printf(
        &p->page,
        "<text x=\"%d\" y=\"%d\" text-anchor=\"end\" font-size=\"11\" fill=\"#a00\">%" PRIu64
        " events lost: the curves have gaps, the peaks are right</text>\n",
        PLOT_RIGHT, SVG_HEIGHT - 6, p->info->missing_count);
  prof_i_text_buffer_append_text(&p->page, "</svg>\n");
}

static int make_svg(const prof_memory *memory, uint32_t index, char **text_out) {
  if (!memory || !text_out)
    return prof_i_fail(PROF_E_INVALID, "prof_memory_svg: %s is NULL",
                       memory ? "text_out" : "memory");
  if (index >= prof_memory_pool_count(memory))
    return prof_i_fail(PROF_E_INVALID, "prof_memory_svg: index is %u; there are %u pools", index,
                       prof_memory_pool_count(memory));
  memory_svg p = {.memory = memory, .info = &memory->pools[index].info};
  const int status = prof_i_memory_curve_init(&p.curve, memory, index, PLOT_COLUMNS);
  if (status) return status;
  svg_put_head(&p);
  svg_put_legend(&p);
  svg_put_axes(&p);
  svg_put_curves(&p);
  svg_put_peaks(&p);
  svg_put_foot(&p);
  prof_i_memory_curve_fini(&p.curve);
  if (!p.page.is_out_of_memory) {
    *text_out = p.page.text;
    return PROF_OK;
  }
  free(p.page.text);
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a picture of %zu bytes", p.page.count);
}

int prof_memory_svg(const prof_memory *memory, uint32_t index, char **text_out) {
  PROF_I_DEFAULT_FP;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  return make_svg(memory, index, text_out);
}

int prof_memory_svg_dump(const prof_memory *memory, uint32_t index, const char *path) {
  PROF_I_DEFAULT_FP;
  PROF_I_DISABLE_CANCEL;
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  PROF_I_INSIDE;
  char *text = NULL;
  prof_i_sink sink;
  if (!path) return prof_i_fail(PROF_E_INVALID, "path is NULL");
  int status = make_svg(memory, index, &text);
  if (!text) return status;
  status = prof_i_sink_open_file(&sink, path, false, false);
  if (!status) {
    prof_i_sink_text(&sink, text);
    status = prof_i_sink_commit(&sink);
  }
  free(text);
  return status;
}
