/* Folded stacks and the SVG of a flame graph. A frame has a title, so it can be read without the
   script. See internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/text.h"
#include "../sink/sink.h"

/* ---- the script ---- */

/* Zoom by a click, search by "/". It draws nothing new, and loads nothing. */

/* clang-format off */
static const char flame_script[] =
    "\"use strict\";\n"
    "(function () {\n"
    "  var LEFT = 10, WIDTH = 1180, LETTER = 7, EDGE = 0.0002;\n"
    "  var typed = null;\n"
    "  var find = document.getElementById(\"find\"), told = document.getElementById(\"told\");\n"
    "  var usual = find.textContent;\n"
    "  var frames = Array.prototype.map.call(document.querySelectorAll(\"g.f\"), function (g) {\n"
    "    var rect = g.querySelector(\"rect\");\n"
    "    return {\n"
    "      g: g, rect: rect, label: g.querySelector(\"text\"), name: g.getAttribute(\"data-n\"),\n"
    "      title: g.querySelector(\"title\").textContent, y: Number(rect.getAttribute(\"y\")),\n"
    "      x: Number(rect.getAttribute(\"x\")), w: Number(rect.getAttribute(\"width\"))\n"
    "    };\n"
    "  });\n"
    "  function cut(name, width) {\n"
    "    var columns = Math.floor((width - 6) / LETTER), used = 0, letters = Array.from(name);\n"
    "    if (columns < 3) return \"\";\n"
    "    for (var i = 0; i < letters.length; i++) {\n"
    "      used += letters[i].codePointAt(0) > 0x10ff ? 2 : 1;\n"
    "      if (used > columns) return letters.slice(0, Math.max(i - 2, 0)).join(\"\") + \"..\";\n"
    "    }\n"
    "    return name;\n"
    "  }\n"
    "  function zoom(to) {\n"
    "    var end = to.x + to.w, scale = WIDTH / to.w;\n"
    "    frames.forEach(function (f) {\n"
    "      var isBelow = f.y > to.y && f.x <= to.x + EDGE && f.x + f.w >= end - EDGE;\n"
    "      var isInside = f.y <= to.y && f.x >= to.x - EDGE && f.x + f.w <= end + EDGE;\n"
    "      var x = isBelow ? LEFT : LEFT + (f.x - to.x) * scale;\n"
    "      var w = isBelow ? WIDTH : f.w * scale;\n"
    "      f.g.style.display = isBelow || isInside ? \"\" : \"none\";\n"
    "      f.g.classList.toggle(\"d\", isBelow);\n"
    "      f.rect.setAttribute(\"x\", x);\n"
    "      f.rect.setAttribute(\"width\", w);\n"
    "      f.label.setAttribute(\"x\", x + 3);\n"
    "      f.label.textContent = cut(f.name, w);\n"
    "    });\n"
    "  }\n"
    "  function search(text) {\n"
    "    var wanted = text.toLowerCase();\n"
    "    var all = frames.length ? frames[0].w : 1, end = -1, sum = 0;\n"
    "    var found = frames.filter(function (f) {\n"
    "      var isFound = wanted !== \"\" && f.name.toLowerCase().includes(wanted);\n"
    "      f.g.classList.toggle(\"m\", isFound);\n"
    "      return isFound;\n"
    "    });\n"
    "    /* what lies in another one that was found does not count again */\n"
    "    found.sort(function (a, b) { return a.x - b.x || b.y - a.y; });\n"
    "    found.forEach(function (f) {\n"
    "      if (f.x + f.w <= end + EDGE) return;\n"
    "      sum += f.w;\n"
    "      end = f.x + f.w;\n"
    "    });\n"
    "    find.textContent = typed === null && wanted === \"\" ? usual\n"
    "      : \"/\" + text + (wanted ? \"  \" + found.length + \" found, \" +\n"
    "        (100 * sum / all).toFixed(1) + \"%\" : \"\");\n"
    "  }\n"
    "  frames.forEach(function (f) {\n"
    "    f.g.addEventListener(\"click\", function () { zoom(f); });\n"
    "    f.g.addEventListener(\"mouseover\", function () { told.textContent = f.title; });\n"
    "  });\n"
    "  document.addEventListener(\"keydown\", function (event) {\n"
    "    if (event.ctrlKey || event.metaKey || event.altKey) return;\n"
    "    if (event.key === \"Escape\") {\n"
    "      typed = null;\n"
    "      search(\"\");\n"
    "      if (frames.length) zoom(frames[0]);\n"
    "    } else if (typed === null) {\n"
    "      if (event.key !== \"/\") return;\n"
    "      typed = \"\";\n"
    "      search(typed);\n"
    "    } else if (event.key === \"Enter\") {\n"
    "      typed = null;\n"
    "    } else if (event.key === \"Backspace\") {\n"
    "      typed = typed.slice(0, -1);\n"
    "      search(typed);\n"
    "    } else if (Array.from(event.key).length === 1) {\n"
    "      typed += event.key;\n"
    "      search(typed);\n"
    "    } else {\n"
    "      return;\n"
    "    }\n"
    "    event.preventDefault();\n"
    "  });\n"
    "  /* FILE.svg#search=TEXT, FILE.svg#zoom=NUMBER of a frame */\n"
    "  function follow() {\n"
    "    var hash = decodeURIComponent(location.hash), frame;\n"
    "    if (hash.startsWith(\"#search=\")) search(hash.slice(8));\n"
    "    frame = hash.startsWith(\"#zoom=\") && frames[Number(hash.slice(6))];\n"
    "    if (frame) zoom(frame);\n"
    "  }\n"
    "  window.addEventListener(\"hashchange\", follow);\n"
    "  follow();\n"
    "})();\n";
/* clang-format on */

/* Sizes in pixels. The script repeats LEFT, WIDTH and LETTER. */
enum {
  SVG_WIDTH = 1200,
  FRAMES_LEFT = 10,
  FRAMES_WIDTH = SVG_WIDTH - 2 * FRAMES_LEFT,
  FRAMES_TOP = 66,
  FOOT_HEIGHT = 34,
  FRAME_HEIGHT = 17,
  LETTER_WIDTH = 7,
  LABEL_GAP = 3,
  LABEL_COLUMNS_MIN = 3,
  DEPTH_MAX = 512, /* of drawn frames */
  LABEL_ROOM = 64,
  TEXT_BYTES_MAX = 1 << 30 /* of folded stacks */
};
static const double frame_width_min = 0.1;

typedef struct flame_node {
  double x, next_x; /* next_x: where the next child begins */
  bool is_drawn;
} flame_node;

typedef struct flame_page {
  const prof_i_paths *paths;
  const prof_i_flame_options *options;
  prof_i_text_buffer page;
  flame_node *nodes;
  prof_i_flame_sums *sums;
  uint32_t depth;        /* of drawn frames */
  uint32_t narrow, gone; /* frames that are not drawn */
  double scale;          /* pixels for a unit of the value */
  double change_max;
} flame_page;

/* ---- values ---- */

double prof_i_flame_value(const prof_i_paths *paths, uint32_t index,
                          const prof_i_flame_options *options, prof_i_side side) {
  const prof_i_path *const path = &paths->items[index];
  const prof_i_path_sums *const sums = &path->sums[side];
  const bool is_device = index && paths->rows[path->row].is_device;
  const double runs = options->is_difference ? options->runs_count[side] : 1;
  if (options->kind == PROF_I_FLAME_MEMORY) return (double)sums->allocated_bytes / runs;
  return is_device == (options->kind == PROF_I_FLAME_DEVICE) ? (double)sums->self_ns / runs : 0;
}

double prof_i_flame_total(const prof_i_paths *paths, const prof_i_flame_options *options) {
  double total = 0;
  for (uint32_t i = 0; i < paths->count; i++)
    for (uint32_t side = options->is_difference ? 0 : PROF_I_SIDE_NEW; side < PROF_I_SIDES; side++)
      total += prof_i_flame_value(paths, i, options, side);
  return total;
}

/* Paths are numbered parents first. */
double prof_i_flame_sum(const prof_i_paths *paths, const prof_i_flame_options *options,
                        prof_i_flame_sums *sums) {
  double change_max = 0;
  memset(sums, 0, paths->count * sizeof *sums);
  for (uint32_t i = paths->count; i-- > 0;) {
    prof_i_flame_sums *const sum = &sums[i], *const outer = &sums[paths->items[i].parent];
    for (uint32_t side = 0; side < PROF_I_SIDES; side++) {
      sum->own[side] = prof_i_flame_value(paths, i, options, side);
      sum->total[side] += sum->own[side];
      if (i) outer->total[side] += sum->total[side];
    }
    const double change = __builtin_fabs(sum->own[1] - sum->own[0]);
    if (change > change_max) change_max = change;
  }
  return change_max;
}

static bool find_values(flame_page *p) {
  p->nodes = calloc(p->paths->count + 1, sizeof *p->nodes);
  p->sums = calloc(p->paths->count + 1, sizeof *p->sums);
  if (!p->nodes || !p->sums) return false;
  p->change_max = prof_i_flame_sum(p->paths, p->options, p->sums);
  return true;
}

/* Children stand side by side from the left of their parent, in the order of their first calls. */
static void place_frames(flame_page *p) {
  p->scale = p->sums[0].total[1] > 0 ? FRAMES_WIDTH / p->sums[0].total[1] : 0;
  p->nodes[0].is_drawn = true;
  for (uint32_t i = 1; i < p->paths->count; i++) {
    const prof_i_path *const path = &p->paths->items[i];
    flame_node *const node = &p->nodes[i], *const outer = &p->nodes[path->parent];
    const double *const total = p->sums[i].total;
    node->x = node->next_x = outer->next_x;
    outer->next_x += total[1];
    p->gone += total[1] <= 0 && total[0] > 0;
    if (total[1] <= 0) continue;
    node->is_drawn =
        outer->is_drawn && path->depth <= DEPTH_MAX && total[1] * p->scale >= frame_width_min;
    p->narrow += !node->is_drawn;
    if (node->is_drawn && path->depth > p->depth) p->depth = path->depth;
  }
}

static const char *frame_name(const prof_i_paths *paths, uint32_t path) {
  if (path == 0) return "all";
  const char *const name = paths->rows[paths->items[path].row].name;
  return name[0] ? name : "(unnamed)";
}

/* ---- folded stacks ---- */

/* `chain` has room for the depth of the path. */
static void put_folded_stack(prof_i_sink *sink, const prof_i_paths *paths, uint32_t path,
                             uint32_t *chain) {
  const uint32_t count = paths->items[path].depth;
  prof_i_paths_chain(paths, path, chain);
  for (uint32_t i = 0; i < count; i++) {
    const char *const name = frame_name(paths, chain[i]);
    if (i) prof_i_sink_text(sink, ";");
    prof_i_sink_frame(sink, name, strlen(name));
  }
  if (!count) prof_i_sink_text(sink, "(no scope)");
}

static unsigned long long rounded(double value) { return (unsigned long long)(value + 0.5); }

static int no_memory(const prof_i_paths *paths) {
  return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a flame graph of %u paths", paths->count);
}

static uint32_t depth_of(const prof_i_paths *paths) {
  uint32_t depth = 0;
  for (uint32_t i = 0; i < paths->count; i++)
    if (paths->items[i].depth > depth) depth = paths->items[i].depth;
  return depth;
}

int prof_i_flame_folded(const prof_i_paths *paths, const prof_i_flame_options *options,
                        char **text_out) {
  prof_i_sink sink;
  size_t bytes;
  uint32_t *const chain = malloc(((size_t)depth_of(paths) + 1) * sizeof *chain);
  const int status = chain ? prof_i_sink_open_memory(&sink, TEXT_BYTES_MAX) : no_memory(paths);
  for (uint32_t i = 0; i < paths->count && status == PROF_OK; i++) {
    const double base =
        options->is_difference ? prof_i_flame_value(paths, i, options, PROF_I_SIDE_BASE) : 0;
    const double value = prof_i_flame_value(paths, i, options, PROF_I_SIDE_NEW);
    if (base <= 0 && value <= 0) continue;
    put_folded_stack(&sink, paths, i, chain);
    prof_i_sink_text(&sink, " ");
    if (options->is_difference) {
      prof_i_sink_u64(&sink, rounded(base));
      prof_i_sink_text(&sink, " ");
    }
    prof_i_sink_u64(&sink, rounded(value));
    prof_i_sink_text(&sink, "\n");
  }
  free(chain);
  return status == PROF_OK ? prof_i_sink_take(&sink, text_out, &bytes) : status;
}

/* ---- the SVG ---- */

/* Ten thousandths of a pixel, without the locale's point. */
static void put_pixels(prof_i_text_buffer *page, double pixels) {
  const unsigned long long parts = (unsigned long long)(pixels * 10000 + 0.5);
  prof_i_text_buffer_printf(page, "%llu.%04llu", parts / 10000, parts % 10000);
}

static void value_text(const flame_page *p, char to[LABEL_ROOM], double value) {
  if (p->options->kind == PROF_I_FLAME_MEMORY)
    prof_i_put_bytes(to, LABEL_ROOM, (int64_t)(value + 0.5));
  else
    prof_i_put_time(to, LABEL_ROOM, rounded(value), 0);
}

/* Names of a colour family, the same for equal names. */
static void put_colour(flame_page *p, const char *name) {
  static const unsigned char families[3][6] = {
      {205, 50, 90, 130, 30, 50}, {60, 60, 165, 60, 120, 50}, {90, 60, 150, 60, 205, 45}};
  const unsigned char *const family = families[p->options->kind];
  uint32_t hash = prof_i_hash32(PROF_I_HASH32_SEED, name, strlen(name));
  hash ^= hash >> 15;
  prof_i_text_buffer_printf(&p->page, "#%02x%02x%02x", family[0] + hash % family[1],
                            family[2] + (hash >> 8) % family[3],
                            family[4] + (hash >> 20) % family[5]);
}

/* Red: more own time than in the base. Blue: less. The largest change has the strongest colour. */
static void put_change_colour(flame_page *p, uint32_t path) {
  const double change = p->sums[path].own[1] - p->sums[path].own[0];
  const double share = p->change_max > 0 ? __builtin_fabs(change) / p->change_max : 0;
  const unsigned rest = 238 - (unsigned)(share * 150);
  if (change > 0)
    prof_i_text_buffer_printf(&p->page, "#f0%02x%02x", rest, rest);
  else if (change < 0)
    prof_i_text_buffer_printf(&p->page, "#%02x%02xf4", rest, rest);
  else
    prof_i_text_buffer_append_text(&p->page, "#eeeeee");
}

static void put_share(flame_page *p, double part, double all) {
  const unsigned long long tenths = all > 0 ? rounded(part / all * 1000) : 0;
  prof_i_text_buffer_printf(&p->page, "%llu.%llu%%", tenths / 10, tenths % 10);
}

/* "conv2d: 1.5ms, 12.5%; own 1ms; base 1.2ms" */
static void put_frame_title(flame_page *p, uint32_t path) {
  const prof_i_flame_sums *const sums = &p->sums[path];
  char total[LABEL_ROOM], own[LABEL_ROOM], base[LABEL_ROOM];
  value_text(p, total, sums->total[1]);
  value_text(p, own, sums->own[1]);
  prof_i_svg_put_name(&p->page, frame_name(p->paths, path));
  prof_i_text_buffer_printf(&p->page, ": %s, ", total);
  put_share(p, sums->total[1], p->sums[0].total[1]);
  prof_i_text_buffer_printf(&p->page, "; own %s", own);
  if (!p->options->is_difference) return;
  value_text(p, base, sums->total[0]);
  value_text(p, own, sums->own[0]);
  prof_i_text_buffer_printf(&p->page, "; base %s, own %s", base, own);
}

/* As many letters as fit. */
static void put_label(flame_page *p, const char *name, double width) {
  char shown[PROF_I_SANITIZED_NAME_BYTES];
  const size_t columns =
      width > 2 * LABEL_GAP ? (size_t)((width - 2 * LABEL_GAP) / LETTER_WIDTH) : 0;
  const size_t bytes = prof_i_sanitize_name(shown, name);
  if (columns < LABEL_COLUMNS_MIN) return;
  const bool is_cut = prof_i_display_width(shown, bytes) > columns;
  if (is_cut) shown[prof_i_display_cut(shown, bytes, columns - 2)] = '\0';
  prof_i_svg_put_escaped(&p->page, shown);
  if (is_cut) prof_i_text_buffer_append_text(&p->page, "..");
}

static void put_frame(flame_page *p, uint32_t path) {
  const flame_node *const node = &p->nodes[path];
  const double x = FRAMES_LEFT + node->x * p->scale, width = p->sums[path].total[1] * p->scale;
  const uint32_t y = FRAMES_TOP + (p->depth - p->paths->items[path].depth) * FRAME_HEIGHT;
  prof_i_text_buffer_append_text(&p->page, "<g class=\"f\" data-n=\"");
  prof_i_svg_put_name(&p->page, frame_name(p->paths, path));
  prof_i_text_buffer_append_text(&p->page, "\"><title>");
  put_frame_title(p, path);
  prof_i_text_buffer_append_text(&p->page, "</title><rect x=\"");
  put_pixels(&p->page, x);
  prof_i_text_buffer_printf(&p->page, "\" y=\"%u\" width=\"", y);
  put_pixels(&p->page, width);
  prof_i_text_buffer_printf(&p->page, "\" height=\"%d\" rx=\"1\" fill=\"", FRAME_HEIGHT - 1);
  if (path == 0)
    prof_i_text_buffer_append_text(&p->page, "#dddddd");
  else if (p->options->is_difference)
    put_change_colour(p, path);
  else
    put_colour(p, frame_name(p->paths, path));
  prof_i_text_buffer_append_text(&p->page, "\"/><text x=\"");
  put_pixels(&p->page, x + LABEL_GAP);
  prof_i_text_buffer_printf(&p->page, "\" y=\"%u\">", y + 12);
  put_label(p, frame_name(p->paths, path), width);
  prof_i_text_buffer_append_text(&p->page, "</text></g>\n");
}

static void put_head(flame_page *p, uint32_t height) {
  static const char *const kinds[] = {"host self time", "device time by launch",
                                      "allocated bytes by scope"};
  const char *const kind = kinds[p->options->kind];
  prof_i_text_buffer_printf(&p->page,
                            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
                            "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %u\" "
                            "width=\"%d\" height=\"%u\">\n<title>",
                            SVG_WIDTH, height, SVG_WIDTH, height);
  prof_i_svg_put_name(&p->page, p->options->title);
  prof_i_text_buffer_printf(
      &p->page,
      ": %s</title>\n<style>text{font:12px ui-monospace,Menlo,Consolas,monospace;fill:#111}"
      ".h{font:bold 17px system-ui,sans-serif}.s{fill:#555}.f{cursor:pointer}"
      ".f text{pointer-events:none;white-space:pre}.f:hover rect{stroke:#000;stroke-width:1}"
      ".m rect{fill:#e23ee2}.d{opacity:.5}</style>\n"
      "<rect width=\"100%%\" height=\"100%%\" fill=\"#fff\"/>\n"
      "<text class=\"h\" x=\"%d\" y=\"26\">",
      kind, FRAMES_LEFT);
  prof_i_svg_put_name(&p->page, p->options->title);
  prof_i_text_buffer_printf(
      &p->page, "</text>\n<text class=\"s\" x=\"%d\" y=\"48\">%s%s</text>\n", FRAMES_LEFT, kind,
      p->options->is_difference ? "; red: more own than in the base, blue: less; widths are new"
                                : "");
  prof_i_text_buffer_printf(
      &p->page,
      "<text class=\"s\" id=\"find\" x=\"%d\" y=\"26\" text-anchor=\"end\">click: zoom; /: search; "
      "Esc: reset</text>\n",
      SVG_WIDTH - FRAMES_LEFT);
}

static void put_foot(flame_page *p, uint32_t height) {
  prof_i_text_buffer_printf(&p->page, "<text id=\"told\" x=\"%d\" y=\"%u\"> </text>\n", FRAMES_LEFT,
                            height - 12);
  if (p->narrow || p->gone) {
    prof_i_text_buffer_printf(&p->page,
                              "<text class=\"s\" x=\"%d\" y=\"48\" text-anchor=\"end\">not drawn: "
                              "%u too small",
                              SVG_WIDTH - FRAMES_LEFT, p->narrow);
    if (p->gone) prof_i_text_buffer_printf(&p->page, ", %u with nothing in the new side", p->gone);
    prof_i_text_buffer_append_text(&p->page, "</text>\n");
  }
  prof_i_text_buffer_append_text(&p->page, "<script><![CDATA[\n");
  prof_i_text_buffer_append_text(&p->page, flame_script);
  prof_i_text_buffer_append_text(&p->page, "]]></script>\n</svg>\n");
}

int prof_i_flame_svg(const prof_i_paths *paths, const prof_i_flame_options *options,
                     char **text_out) {
  flame_page p = {.paths = paths, .options = options};
  const bool is_made = find_values(&p);
  if (is_made) {
    place_frames(&p);
    const uint32_t height = FRAMES_TOP + (p.depth + 1) * FRAME_HEIGHT + FOOT_HEIGHT;
    put_head(&p, height);
    for (uint32_t i = 0; i < paths->count; i++)
      if (p.nodes[i].is_drawn) put_frame(&p, i);
    put_foot(&p, height);
  }
  free(p.nodes);
  free(p.sums);
  if (is_made && !p.page.is_out_of_memory) {
    *text_out = p.page.text;
    return PROF_OK;
  }
  free(p.page.text);
  return no_memory(paths);
}
