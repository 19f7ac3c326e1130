/* Children are below their parent, in the order of the options. A path without calls that pass a
   filter is shown only if one below it has some: it has no numbers of its own then. See
   internal.h. */
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../base/display.h"
#include "../base/error.h"
#include "../base/text.h"
#include "../sink/sink.h"

enum {
  LEVELS_DRAWN = 24, /* of a deeper path the last ones, behind their number */
  CELL_ROOM = 64,
  CALLS_WIDTH = 10,
  TIME_WIDTH = 10,
  SHARE_WIDTH = 7,
  NAME_WIDTH_MIN = 16,
  TEXT_BYTES_MAX = 1 << 30
};

typedef struct tree_node {
  /* of its calls; without any, of what is below it */
  uint64_t total_ns, self_ns;
  uint64_t calls_below_count;
  uint32_t first, next; /* shown children, in order; 0: none */
  bool is_hidden;
} tree_node;

/* Comes before a path with a smaller number, then before one with a later name. */
typedef struct ranked_path {
  uint64_t number;
  const char *name; /* NULL: not in the order of names */
  uint32_t path;
} ranked_path;

typedef struct tree_page {
  const prof_i_paths *paths;
  const prof_i_tree_options *options;
  tree_node *nodes;
  ranked_path *order; /* scratch */
  bool is_last[LEVELS_DRAWN];
  uint64_t all_ns[2]; /* of the host, of devices */
  uint32_t shown_count, hidden_count;
  prof_i_text_buffer text, name; /* name: scratch */
  prof_i_sink json;
} tree_page;

static const prof_i_path_sums *path_sums(const tree_page *p, uint32_t path) {
  return &p->paths->items[path].sums[PROF_I_SIDE_NEW];
}

static bool is_device(const tree_page *p, uint32_t path) {
  return p->paths->rows[p->paths->items[path].row].is_device;
}

/* ---- which paths ---- */

/* Paths are numbered parents first. Time of a device is no part of the host's above it. */
static void add_totals(tree_page *p) {
  for (uint32_t i = p->paths->count; i-- > 1;) {
    const prof_i_path_sums *const sums = path_sums(p, i);
    const uint32_t parent = p->paths->items[i].parent;
    tree_node *const node = &p->nodes[i], *const outer = &p->nodes[parent];
    if (sums->calls_count) {
      node->total_ns = sums->total_ns;
      node->self_ns = sums->self_ns;
    }
    node->calls_below_count += sums->calls_count;
    outer->calls_below_count += node->calls_below_count;
    if (!parent || is_device(p, parent) == is_device(p, i)) {
      outer->total_ns += node->total_ns;
      outer->self_ns += node->self_ns;
    }
    if (is_device(p, i)) p->all_ns[1] += sums->self_ns;
  }
  p->all_ns[0] = p->paths->host_self_ns[PROF_I_SIDE_NEW];
}

static double path_share(const tree_page *p, uint32_t path) {
  const uint64_t all_ns = p->all_ns[is_device(p, path)];
  return all_ns ? (double)p->nodes[path].total_ns / (double)all_ns : 0;
}

/* A path stays if it is long enough, or one below it is: a device's work may be longer. */
static void hide_paths(tree_page *p) {
  const prof_i_tree_options *const options = p->options;
  for (uint32_t i = 1; i < p->paths->count; i++) p->nodes[i].is_hidden = true;
  for (uint32_t i = p->paths->count; i-- > 1;) {
    tree_node *const node = &p->nodes[i];
    if (!node->calls_below_count) continue; /* counts as none */
    const bool is_deep = options->depth && p->paths->items[i].depth > options->depth;
    if (!is_deep && path_share(p, i) >= options->min_share) node->is_hidden = false;
    if (!node->is_hidden)
      p->nodes[p->paths->items[i].parent].is_hidden = false;
    else
      p->hidden_count += path_sums(p, i)->calls_count != 0;
  }
}

/* The last one first, because each is linked before the one that was linked last. */
static int compare_ranked(const void *x, const void *y) {
  const ranked_path *const a = x, *const b = y;
  const int by_name = a->name ? strcmp(b->name, a->name) : 0;
  if (by_name) return by_name;
  if (a->number != b->number) return a->number < b->number ? -1 : 1;
  return (a->path < b->path) - (a->path > b->path);
}

/* What decides the place of a path among its siblings. */
static ranked_path rank_path(const tree_page *p, uint32_t path) {
  const tree_node *const node = &p->nodes[path];
  ranked_path ranked = {.number = node->total_ns, .path = path};
  switch (p->options->order) {
    case PROF_I_TREE_BY_TOTAL:
      break;
    case PROF_I_TREE_BY_SELF:
      ranked.number = node->self_ns;
      break;
    case PROF_I_TREE_BY_CALLS: {
      const uint64_t calls_count = path_sums(p, path)->calls_count;
      ranked.number = calls_count ? calls_count : node->calls_below_count;
      break;
    }
    case PROF_I_TREE_BY_NAME:
      ranked.name = p->paths->rows[p->paths->items[path].row].name;
      break;
  }
  return ranked;
}

static void link_children(tree_page *p) {
  uint32_t count = 0;
  for (uint32_t i = 1; i < p->paths->count; i++)
    if (!p->nodes[i].is_hidden) p->order[count++] = rank_path(p, i);
  qsort(p->order, count, sizeof *p->order, compare_ranked);
  for (uint32_t i = 0; i < count; i++) {
    const uint32_t path = p->order[i].path;
    tree_node *const outer = &p->nodes[p->paths->items[path].parent];
    p->nodes[path].next = outer->first;
    outer->first = path;
  }
  p->shown_count = count;
}

/* The path after this one in the tree, from the top; 0: the last. */
static uint32_t next_path(const tree_page *p, uint32_t path) {
  if (p->nodes[path].first) return p->nodes[path].first;
  while (path && !p->nodes[path].next) path = p->paths->items[path].parent;
  return path ? p->nodes[path].next : 0;
}

/* ---- text ---- */

static void put_number(tree_page *p, const char *cell, int width) {
  prof_i_text_buffer_printf(&p->text, "%*s  ", width, cell);
}

static void put_numbers(tree_page *p, uint32_t path) {
  const prof_i_path_sums *const sums = path_sums(p, path);
  char calls[CELL_ROOM] = "-", total[CELL_ROOM] = "-", share[CELL_ROOM] = "", self[CELL_ROOM] = "-";
  const uint64_t all_ns = p->all_ns[is_device(p, path)];
  if (sums->calls_count) {
    snprintf(calls, sizeof calls, "%llu", (unsigned long long)sums->calls_count);
    prof_i_put_time(total, sizeof total, sums->total_ns, 0);
    prof_i_put_time(self, sizeof self, sums->self_ns, 0);
    /* calls that overlap may exceed the time that passed */
    if (all_ns && sums->total_ns <= all_ns)
      prof_i_put_share(share, sizeof share, sums->total_ns, all_ns);
  }
  put_number(p, calls, CALLS_WIDTH);
  put_number(p, total, TIME_WIDTH);
  put_number(p, share, SHARE_WIDTH);
  put_number(p, self, TIME_WIDTH);
}

/* Lines from the parents. Returns their columns. */
static size_t put_branches(tree_page *p, uint32_t path) {
  const uint32_t level = p->paths->items[path].depth - 1; /* 0: at the top */
  const bool is_ascii = p->options->is_ascii;
  size_t used = 0;
  if (level == 0) return 0;
  p->is_last[level % LEVELS_DRAWN] = !p->nodes[path].next;
  const uint32_t first = level >= LEVELS_DRAWN ? level - LEVELS_DRAWN + 1 : 1;
  if (first > 1) {
    char number[CELL_ROOM];
    used = (size_t)snprintf(number, sizeof number, "[%u] ", level);
    prof_i_text_buffer_append_text(&p->text, number);
  }
  for (uint32_t i = first; i <= level; i++, used += 3) {
    const bool is_last = p->is_last[i % LEVELS_DRAWN];
    const char *const branch = i < level  ? is_last    ? "   "
                                            : is_ascii ? "|  "
                                                       : "\xe2\x94\x82  "
                               : is_ascii ? is_last ? "`- " : "|- "
                               : is_last  ? "\xe2\x94\x94\xe2\x94\x80 "
                                          : "\xe2\x94\x9c\xe2\x94\x80 ";
    prof_i_text_buffer_append_text(&p->text, branch);
  }
  return used;
}

static void put_name(tree_page *p, uint32_t path, size_t used) {
  prof_i_text_buffer *const name = &p->name;
  const char *const text = p->paths->rows[p->paths->items[path].row].name;
  const char *const device = is_device(p, path) ? " (device)" : "";
  name->count = 0;
  prof_i_text_buffer_append_plain(name, *text ? text : "(unnamed)",
                                  strlen(*text ? text : "(unnamed)"));
  if (name->is_out_of_memory) p->text.is_out_of_memory = true;
  if (!name->text) return;
  size_t bytes = name->count;
  const size_t before = CALLS_WIDTH + 2 * TIME_WIDTH + SHARE_WIDTH + 4 * 2 + used,
               wanted = before + NAME_WIDTH_MIN, all = p->options->width;
  const size_t room = (all > wanted ? all - before : NAME_WIDTH_MIN) - strlen(device);
  const bool is_cut = all && prof_i_display_width(name->text, bytes) > room;
  if (is_cut) bytes = prof_i_display_cut(name->text, bytes, room - 3);
  prof_i_text_buffer_append(&p->text, name->text, bytes);
  prof_i_text_buffer_append_text(&p->text, is_cut ? "..." : "");
  prof_i_text_buffer_append_text(&p->text, device);
  prof_i_text_buffer_end_line(&p->text);
}

static void put_text(tree_page *p) {
  put_number(p, "Calls", CALLS_WIDTH);
  put_number(p, "Total", TIME_WIDTH);
  put_number(p, "Total %", SHARE_WIDTH);
  put_number(p, "Self", TIME_WIDTH);
  prof_i_text_buffer_append_text(&p->text, "Name\n");
  for (uint32_t path = p->nodes[0].first; path; path = next_path(p, path)) {
    put_numbers(p, path);
    put_name(p, path, put_branches(p, path));
  }
  prof_i_text_buffer_printf(&p->text, "%u path%s", p->shown_count, p->shown_count == 1 ? "" : "s");
  if (p->hidden_count)
    prof_i_text_buffer_printf(&p->text, ", and %u deeper or shorter ones not shown: --depth, --min",
                              p->hidden_count);
  prof_i_text_buffer_append_text(&p->text, "\n");
}

/* ---- JSON ---- */

static void put_json_path(tree_page *p, uint32_t path) {
  const prof_i_path *const item = &p->paths->items[path];
  const prof_i_path_row *const row = &p->paths->rows[item->row];
  const prof_i_path_sums *const sums = path_sums(p, path);
  prof_i_sink *const sink = &p->json;
  for (uint32_t i = item->depth, at = path; i-- > 0; at = p->paths->items[at].parent)
    p->order[i].path = p->paths->items[at].row;
  prof_i_sink_text(sink, "{\"path\":[");
  for (uint32_t i = 0; i < item->depth; i++) {
    const char *const name = p->paths->rows[p->order[i].path].name;
    prof_i_sink_text(sink, i ? "," : "");
    prof_i_sink_string(sink, name, strlen(name));
  }
  prof_i_sink_text(sink, "]");
  prof_i_sink_key(sink, "category");
  prof_i_sink_string(sink, row->category, strlen(row->category));
  prof_i_sink_text(sink, row->is_device ? ",\"on\":\"device\"" : ",\"on\":\"host\"");
  prof_i_sink_key_u64(sink, "depth", item->depth - 1);
  prof_i_sink_key_u64(sink, "calls", sums->calls_count);
  prof_i_sink_key_u64(sink, "total_ns", sums->total_ns);
  prof_i_sink_key_u64(sink, "self_ns", sums->self_ns);
  prof_i_sink_key_u64(sink, "all_ns", p->all_ns[row->is_device]);
  prof_i_sink_text(sink, "}\n");
}

static int put_json(tree_page *p, char **text_out) {
  size_t bytes;
  int status = prof_i_sink_open_memory(&p->json, TEXT_BYTES_MAX);
  if (status != PROF_OK) return status;
  for (uint32_t path = p->nodes[0].first; path; path = next_path(p, path)) put_json_path(p, path);
  return prof_i_sink_take(&p->json, text_out, &bytes);
}

/* ---- the tree ---- */

static int write_tree(tree_page *p, char **text_out) {
  if (p->options->is_json) return put_json(p, text_out);
  put_text(p);
  free(p->name.text);
  if (p->text.is_out_of_memory) {
    free(p->text.text);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a tree of %u paths", p->shown_count);
  }
  *text_out = p->text.text;
  return PROF_OK;
}

int prof_i_tree(const prof_i_paths *paths, const prof_i_tree_options *options, char **text_out,
                uint32_t *path_count_out) {
  tree_page p = {.paths = paths, .options = options};
  int status = PROF_E_NO_MEMORY;
  p.nodes = calloc(paths->count + 1, sizeof *p.nodes);
  p.order = calloc(paths->count + 1, sizeof *p.order);
  if (p.nodes && p.order) {
    add_totals(&p);
    hide_paths(&p);
    link_children(&p);
    status = write_tree(&p, text_out);
  } else {
    prof_i_fail(status, "no memory for a tree of %u paths", paths->count);
  }
  *path_count_out = p.shown_count + p.hidden_count;
  free(p.nodes);
  free(p.order);
  return status;
}
