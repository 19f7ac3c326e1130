/* A view decides once for each site and each thread what it shows. It checks single records only
   if they have their own name, and only on threads of other profiles. */
#include "capture.h"

#include <prof/profiler.h>
#include <prof/python.h>
#include <stdlib.h>
#include <string.h>

#include "../analysis/call_stacks.h"
#include "../base/error.h"
#include "../base/options.h"
#include "../format/layout.h"
#include "../format/parse.h"
#include "internal.h"

typedef enum visibility { SHOWN = 0, HIDDEN = 1, HIDDEN_OF_OTHERS = 2 } visibility;

struct prof_i_view {
  prof_i_view_wish filter; /* its tids are not valid: is_other has the result */
  bool *is_other;          /* by thread */
  uint8_t *by_site;        /* shows */
  uint32_t site_count;
};

/* Decides for records without an observer in their site: operators and ranges that Python recorded
   for its own thread, steps of profiles, modules and functions. */
static visibility visibility_of_texts(const prof_i_view_wish *filter, prof_i_text name,
                                      prof_i_text category, bool has_file) {
  if (prof_i_text_equals(category, "python_function") ||
      prof_i_text_equals(category, "c_function")) {
    if (!prof_i_name_is_torch_module(name.data, name.bytes))
      return filter->hides_functions ? HIDDEN : SHOWN;
    return filter->hides_modules ? HIDDEN : HIDDEN_OF_OTHERS;
  }
  if (has_file) return SHOWN;
  const bool is_step =
      prof_i_text_equals(category, "user_annotation") && prof_i_text_begins(name, "ProfilerStep#");
  return is_step || prof_i_text_equals(category, "cpu_op") ? HIDDEN_OF_OTHERS : SHOWN;
}

static visibility visibility_of_site(const prof_i_view_wish *filter, const prof_i_site_info *site) {
  if (!prof_i_observed_has(site->line, site->file.bytes))
    return visibility_of_texts(filter, site->name, site->category, site->file.bytes != 0);
  const uint32_t number = prof_i_observed_for(site->line);
  if (number == PROF_I_OBSERVED_FOR_ALL) return HIDDEN_OF_OTHERS;
  return number == filter->number ? SHOWN : HIDDEN;
}

/* Decides for a record that has its own name or category. */
static visibility visibility_of_record(const prof_trace *trace, uint32_t site,
                                       const uint64_t *words) {
  const prof_i_site_info *const info = prof_i_trace_site(trace, site);
  prof_i_long_record record;
  if (prof_i_observed_has(info->line, info->file.bytes) ||
      !prof_i_long_record_read(words, (words[2] & 0xffff) * 2, &record))
    return (visibility)trace->view->by_site[site];
  const prof_i_text name = record.name.data ? record.name : info->name;
  const prof_i_text category = record.category.data ? record.category : info->category;
  return visibility_of_texts(&trace->view->filter, name, category, info->file.bytes != 0);
}

bool prof_i_view_hides_scope(const prof_trace *trace, uint32_t thread, uint32_t site,
                             const uint64_t *words) {
  const prof_i_view *const view = trace->view;
  const bool has_texts =
      words && prof_i_word_flags(words[2]) & (PROF_I_FLAG_NAME | PROF_I_FLAG_CATEGORY);
  const visibility found =
      has_texts ? visibility_of_record(trace, site, words) : (visibility)view->by_site[site];
  return found == HIDDEN || (found == HIDDEN_OF_OTHERS && view->is_other[thread]);
}

bool prof_i_view_hides_memory(const prof_trace *trace, uint32_t thread, const uint64_t *words) {
  if (!trace->view->is_other[thread]) return false;
  const prof_i_span span = {.record = words, .kind = PROF_EVENT_MEMORY};
  prof_event event;
  prof_i_trace_expand(trace, thread, &span, &event);
  const prof_i_pool_record *const pool = prof_i_catalog_pool(&trace->catalog, event.memory.pool);
  return pool && prof_i_text_equals(pool->name, "torch");
}

void prof_i_view_destroy(prof_i_view *view) {
  if (!view) return;
  free(view->is_other);
  free(view->by_site);
  free(view);
}

static bool thread_is_listed(const prof_i_view_wish *filter, uint64_t tid) {
  for (size_t i = 0; i < filter->other_count; i++)
    if (filter->others[i] == tid) return true;
  return false;
}

/* NULL: no memory. */
static prof_i_view *make_view(const prof_trace *trace, const prof_i_view_wish *filter) {
  prof_i_view *const view = calloc(1, sizeof *view);
  if (!view) return NULL;
  view->filter = *filter;
  view->site_count = prof_i_trace_site_count(trace);
  view->is_other = calloc(trace->thread_count + 1ull, sizeof *view->is_other);
  view->by_site = calloc(view->site_count + 1ull, sizeof *view->by_site);
  if (!view->is_other || !view->by_site) {
    prof_i_view_destroy(view);
    return NULL;
  }
  for (uint32_t i = 0; i < trace->thread_count; i++)
    view->is_other[i] = !prof_i_thread_kind_is_virtual(trace->threads[i].thread_kind) &&
                        thread_is_listed(filter, trace->threads[i].tid);
  for (uint32_t i = 0; i < view->site_count; i++)
    view->by_site[i] = (uint8_t)visibility_of_site(filter, prof_i_trace_site(trace, i));
  view->filter.others = NULL;
  return view;
}

int prof_i_trace_view_1(prof_trace *trace, const prof_i_view_wish *filter, prof_trace **view_out) {
  prof_i_view_wish checked = {.size = sizeof checked};
  if (!trace || !filter || !view_out || trace->view)
    return prof_i_fail(PROF_E_INVALID, "prof_i_trace_view_1: an argument is NULL, or a view");
  const int status = prof_i_sized_copy(&checked, sizeof checked, filter, "prof_i_view_wish");
  if (status) return status;
  prof_trace *const made = malloc(sizeof *made);
  prof_i_view *const view = made ? make_view(trace, &checked) : NULL;
  if (!view) {
    free(made);
    return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a view of a trace");
  }
  *made = *prof_i_trace_share(trace);
  made->view = view;
  made->view_of = trace;
  made->use_count = 0;
  *view_out = made;
  return PROF_OK;
}
