/* The names of version 1 on top of the functions of version 2: see site_1.h. Linked into the newer
   library. */
#include "site_1.h"

#include <prof/profiler.h>

static const uint32_t always_on = 2;
extern PROF_API const uint32_t *prof_i_level_1;
const uint32_t *prof_i_level_1 = &always_on;

PROF_API uint64_t prof_i_begin_1(site_1 *site, const char *name, const char *category);
PROF_API uint64_t prof_i_begin_details_1(site_1 *site, const prof_details *details);
PROF_API uint64_t prof_i_begin_values_1(site_1 *site, uint64_t a, uint64_t b, uint64_t c,
                                        uint64_t d);
PROF_API uint64_t prof_i_begin_text_1(site_1 *site, const char *text, uint32_t text_bytes);
PROF_API uint64_t prof_i_begin_name_1(site_1 *site, const char *name, uint32_t name_bytes);
PROF_API void prof_i_end_1(uint64_t start);
PROF_API void prof_i_instant_1(site_1 *site, const prof_details *details);
PROF_API void prof_i_counter_1(site_1 *site, const char *name, double value);
#undef prof_scope_begin_at
PROF_API uint64_t prof_scope_begin_at(site_1 *site, const char *name, const char *category);

static prof_site site_of(const site_1 *old) {
  return (prof_site){
      .level = old->level, .line = old->line, .function = old->function, .file = old->file};
}
static int is_on(const site_1 *old) { return prof_level() >= (int)old->level; }

uint64_t prof_i_begin_details_1(site_1 *old, const prof_details *details) {
  prof_site site = site_of(old);
  return is_on(old) ? prof_i_begin_details_2(&site, details) : 0;
}

uint64_t prof_i_begin_1(site_1 *old, const char *name, const char *category) {
  prof_site site = site_of(old);
  return is_on(old) ? prof_i_begin_2(&site, name, category) : 0;
}

/* The shortest ways cannot be gone: the caller comes again with the details. */
uint64_t prof_i_begin_values_1(site_1 *old, uint64_t a, uint64_t b, uint64_t c, uint64_t d) {
  (void)a, (void)b, (void)c, (void)d;
  return is_on(old) ? PROF_I_NOT_SHORT : 0;
}
uint64_t prof_i_begin_text_1(site_1 *old, const char *text, uint32_t text_bytes) {
  (void)text, (void)text_bytes;
  return is_on(old) ? PROF_I_NOT_SHORT : 0;
}
uint64_t prof_i_begin_name_1(site_1 *old, const char *name, uint32_t name_bytes) {
  (void)name, (void)name_bytes;
  return is_on(old) ? PROF_I_NOT_SHORT : 0;
}

void prof_i_end_1(uint64_t start) { prof_i_end_2(start); }

void prof_i_instant_1(site_1 *old, const prof_details *details) {
  prof_site site = site_of(old);
  if (is_on(old)) prof_i_instant_2(&site, details);
}

void prof_i_counter_1(site_1 *old, const char *name, double value) {
  prof_site site = site_of(old);
  if (is_on(old)) prof_i_counter_2(&site, name, value);
}

uint64_t prof_scope_begin_at(site_1 *old, const char *name, const char *category) {
  prof_site site = site_of(old);
  return prof_scope_begin_at_2(&site, name, category);
}
