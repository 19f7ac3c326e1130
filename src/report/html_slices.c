/* Slices of the time line on a grid of a power of two: see html_collect.h. They are added by
   falling start, inner ones first. So a slice's siblings and the slices inside of it are always the
   last ones of its track. */
#include <stdlib.h>

#include "html_collect.h"

typedef prof_i_html_slice slice;

enum {
  SLICES_ROOM = 2 * PROF_I_HTML_SLICES_MAX,
  SHIFT_MAX = 58,
  MERGED_SHIFT = 4 /* a merged slice is at most 16 times the grid long */
};

static bool slice_may_merge(const prof_i_html *html, const slice *s) {
  return s->count > 1 || s->end_ns - s->start_ns < UINT64_C(1) << html->shift;
}

/* Puts a slice behind the others, or into the last one. Removes those inside of a short one. */
static void slice_put(prof_i_html *html, const slice *given) {
  slice s = *given;
  const uint64_t grid_ns = UINT64_C(1) << html->shift;
  const bool is_short = slice_may_merge(html, &s);
  while (is_short && html->slice_count > 0) {
    const slice *const last = &html->slices[html->slice_count - 1];
    if (last->track != s.track || last->depth <= s.depth) break;
    s.count += last->count;
    html->slice_count--;
  }
  slice *const last = html->slice_count > 0 ? &html->slices[html->slice_count - 1] : NULL;
  if (last && is_short && last->track == s.track && last->depth == s.depth &&
      slice_may_merge(html, last) && last->end_ns - s.start_ns <= grid_ns << MERGED_SHIFT &&
      (last->start_ns < s.end_ns || last->start_ns - s.end_ns < grid_ns)) {
    last->start_ns = s.start_ns;
    if (s.end_ns > last->end_ns) last->end_ns = s.end_ns;
    last->count += s.count;
    if (last->name != s.name) last->name = PROF_I_HTML_MIXED;
  } else {
    html->slices[html->slice_count++] = s;
  }
}

/* By track; in a track as they were added. */
static int compare_slices(const void *a, const void *b) {
  const slice *const x = a, *const y = b;
  if (x->track != y->track) return x->track < y->track ? -1 : 1;
  if (x->start_ns != y->start_ns) return x->start_ns > y->start_ns ? -1 : 1;
  return (x->depth < y->depth) - (x->depth > y->depth);
}

/* Several lanes of a thread are added in turns. */
static void sort_by_track(prof_i_html *html) {
  if (html->has_side_lanes)
    qsort(html->slices, html->slice_count, sizeof *html->slices, compare_slices);
}

static void coarsen(prof_i_html *html, uint32_t wanted) {
  sort_by_track(html);
  while (html->slice_count > wanted && html->shift < SHIFT_MAX) {
    const uint32_t count = html->slice_count;
    html->shift++;
    html->slice_count = 0;
    for (uint32_t i = 0; i < count; i++) {
      const slice s = html->slices[i];
      slice_put(html, &s);
    }
  }
}

void prof_i_html_add_slice(prof_i_html *html, const slice *given) {
  if (!html->slices) html->slices = malloc(SLICES_ROOM * sizeof *html->slices);
  if (!html->slices) html->is_out_of_memory = true;
  if (html->is_out_of_memory) return;
  if (html->slice_count == SLICES_ROOM) coarsen(html, SLICES_ROOM / 4 * 3);
  if (html->slice_count < SLICES_ROOM) slice_put(html, given);
}

void prof_i_html_finish_slices(prof_i_html *html) { coarsen(html, PROF_I_HTML_SLICES_MAX); }
