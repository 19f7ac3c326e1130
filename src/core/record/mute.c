/* Two bits a site, and the rules of prof_mute(). See mute.h. */
#define _GNU_SOURCE
#include "mute.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "../../base/error.h"
#include "../buffer/arena.h"
#include "change_log.h"
#include "name.h"
#include "site.h"

enum {
  RULE_COUNT = 64,
  TEXT_BYTES = PROF_I_MUTE_TEXT_BYTES,
  SITE_COUNT = PROF_I_SITE_COUNT_MAX + 1
};

/* Written once, but for the two words, and never freed: a call site that just comes may be looking
   at it. One that comes again is the same rule. */
typedef struct mute_rule {
  uint32_t in_force; /* any thread */
  uint32_t has_fit;  /* a name made at run time; any thread, relaxed */
  bool has_name, has_category;
  char name[TEXT_BYTES], category[TEXT_BYTES];
  struct mute_rule *next;
} mute_rule;

static struct {
  uint8_t *muters; /* by site: prof_i_muter bits; any thread */
  uint32_t most;   /* the largest number that was ever muted */
  uint32_t count;
  mute_rule *mute_rules; /* pushed with the control lock held; read by any thread */
  uint32_t rule_count;   /* in force; control lock */
} mute_table;

static mute_rule *first_rule(void) {
  return __atomic_load_n(&mute_table.mute_rules, __ATOMIC_SEQ_CST);
}
static bool rule_is_active(const mute_rule *r) {
  return __atomic_load_n(&r->in_force, __ATOMIC_SEQ_CST);
}

static uint8_t *muters_of(uint32_t site) {
  uint8_t *muters = __atomic_load_n(&mute_table.muters, __ATOMIC_ACQUIRE);
  if (muters) return muters + site;
  void *const fresh = mmap(NULL, SITE_COUNT, PROT_READ | PROT_WRITE,
                           MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (fresh == MAP_FAILED) return NULL;
  if (__atomic_compare_exchange_n(&mute_table.muters, &muters, fresh, false, __ATOMIC_ACQ_REL,
                                  __ATOMIC_ACQUIRE))
    return (uint8_t *)fresh + site;
  munmap(fresh, SITE_COUNT);
  return muters + site;
}

bool prof_i_mute_is_muted(uint32_t site) {
  const uint8_t *const muters = __atomic_load_n(&mute_table.muters, __ATOMIC_ACQUIRE);
  return muters && __atomic_load_n(&muters[site], __ATOMIC_SEQ_CST);
}

uint32_t prof_i_mute_count(void) { return __atomic_load_n(&mute_table.count, __ATOMIC_RELAXED); }

/* True when that mutes it. */
static bool site_mute(uint32_t site, prof_i_muter muter) {
  uint8_t *const muters = site ? muters_of(site) : NULL;
  if (!muters || __atomic_fetch_or(muters, (uint8_t)muter, __ATOMIC_SEQ_CST)) return false;
  __atomic_fetch_add(&mute_table.count, 1, __ATOMIC_RELAXED);
  uint32_t most = __atomic_load_n(&mute_table.most, __ATOMIC_RELAXED);
  while (site > most && !__atomic_compare_exchange_n(&mute_table.most, &most, site, false,
                                                     __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
  return true;
}

static void site_unmute(uint32_t site, prof_i_muter muter, bool is_told) {
  uint8_t *const muters = muters_of(site);
  if (!muters ||
      __atomic_fetch_and(muters, (uint8_t) ~(unsigned)muter, __ATOMIC_SEQ_CST) != (uint8_t)muter)
    return;
  __atomic_fetch_sub(&mute_table.count, 1, __ATOMIC_RELAXED);
  if (is_told) prof_i_change_log_write_site(PROF_CHANGE_HEARD, site);
}

/* Names made at run time are muted with their call site, where the rule fits that. */
static bool rule_fits(uint32_t site, const mute_rule *r) {
  const char *const name = r->has_name ? r->name : NULL, *const category =
                                                             r->has_category ? r->category : NULL;
  const uint32_t call_site = prof_i_site_name_of(site);
  return prof_i_site_fits(site, name, category) &&
         !(call_site && prof_i_site_fits(call_site, name, category));
}

static bool any_rule_fits(uint32_t site) {
  for (const mute_rule *r = first_rule(); r; r = r->next)
    if (rule_is_active(r) && rule_fits(site, r)) return true;
  return false;
}

bool prof_i_mute_matches_texts(const prof_i_site_texts *texts) {
  bool has_fit = false;
  for (mute_rule *r = first_rule(); r; r = r->next) {
    if (!rule_is_active(r) || !prof_i_site_texts_fit(texts, r->has_name ? r->name : NULL,
                                                     r->has_category ? r->category : NULL))
      continue;
    __atomic_store_n(&r->has_fit, 1, __ATOMIC_RELAXED);
    has_fit = true;
  }
  return has_fit;
}

/* Did it fit anything that has come so far? */
static bool has_fit(const mute_rule *r) {
  const uint32_t count = prof_i_site_count();
  bool fit = __atomic_load_n(&r->has_fit, __ATOMIC_RELAXED);
  for (uint32_t site = 1; !fit && site <= count; site++)
    fit =
        prof_i_site_fits(site, r->has_name ? r->name : NULL, r->has_category ? r->category : NULL);
  return fit;
}

uint32_t prof_i_mute_list_unfit(char *to, size_t room) {
  uint32_t count = 0;
  size_t used = 0;
  to[0] = '\0';
  for (const mute_rule *r = first_rule(); r; r = r->next) {
    if (!rule_is_active(r) || has_fit(r)) continue;
    if (used < room)
      used += (size_t)snprintf(to + used, room - used, "%s'%s%s%s'", count ? ", " : "", r->name,
                               r->has_category ? "@" : "", r->category);
    count++;
  }
  return count;
}

/* A rule may go while we look: then it is looked again, for whoever took it back may not have seen
   the site. */
void prof_i_mute_check_new_site(uint32_t site) {
  if (!any_rule_fits(site) || !site_mute(site, PROF_I_MUTED_BY_PROGRAM)) return;
  if (any_rule_fits(site))
    prof_i_change_log_write_site(PROF_CHANGE_MUTED, site);
  else
    site_unmute(site, PROF_I_MUTED_BY_PROGRAM, false);
}

bool prof_i_mute_for_budget(uint32_t site) { return site_mute(site, PROF_I_MUTED_BY_BUDGET); }

static void sites_unmute_all(prof_i_muter muter, bool is_told) {
  const uint32_t most = __atomic_load_n(&mute_table.most, __ATOMIC_RELAXED);
  for (uint32_t site = 1; prof_i_mute_count() && site <= most; site++)
    site_unmute(site, muter, is_told);
}

void prof_i_mute_end_budget(bool is_told) {
  if (!prof_i_mute_count()) return;
  sites_unmute_all(PROF_I_MUTED_BY_BUDGET, is_told);
  prof_i_site_raise_epoch();
}

void prof_i_mute_write_all(void) {
  const uint32_t most = __atomic_load_n(&mute_table.most, __ATOMIC_RELAXED);
  for (uint32_t site = 1; prof_i_mute_count() && site <= most; site++)
    if (prof_i_mute_is_muted(site)) prof_i_change_log_write_site(PROF_CHANGE_MUTED, site);
}

/* ---- prof_mute() ---- */

static bool rule_is_same(const mute_rule *r, const char *name, const char *category) {
  return r->has_name == (name != NULL) && r->has_category == (category != NULL) &&
         (!name || strcmp(r->name, name) == 0) && (!category || strcmp(r->category, category) == 0);
}

static mute_rule *find_rule(const char *name, const char *category) {
  mute_rule *r = first_rule();
  while (r && !rule_is_same(r, name, category)) r = r->next;
  return r;
}

static mute_rule *make_rule(const char *name, const char *category) {
  mute_rule *const r = calloc(1, sizeof *r);
  if (!r) return NULL;
  r->has_name = name != NULL;
  r->has_category = category != NULL;
  if (name) memcpy(r->name, name, strlen(name) + 1);
  if (category) memcpy(r->category, category, strlen(category) + 1);
  r->next = mute_table.mute_rules;
  __atomic_store_n(&mute_table.mute_rules, r, __ATOMIC_SEQ_CST);
  return r;
}

/* While any mute is in force, names made at run time take the slow path. Control lock held. */
static void watch_names(void) {
  __atomic_store_n(&prof_i_the_names.watch, mute_table.rule_count != 0, __ATOMIC_SEQ_CST);
}

int prof_i_mute_add_rule(const char *name, const char *category) {
  mute_rule *r = find_rule(name, category);
  if (r && r->in_force) return PROF_OK;
  if (mute_table.rule_count == RULE_COUNT)
    return prof_i_fail(PROF_E_TOO_LARGE,
                       "prof_mute: %d mutes are in force already; a name that ends in * covers "
                       "many, prof_mute(NULL, NULL, 0) takes all back",
                       RULE_COUNT);
  if (!r && !(r = make_rule(name, category)))
    return prof_i_fail(PROF_E_NO_MEMORY, "prof_mute: no memory for a mute");
  mute_table.rule_count++;
  watch_names();
  /* before the walk: a site that comes meanwhile sees it, or is seen */
  __atomic_store_n(&r->in_force, 1, __ATOMIC_SEQ_CST);
  const uint32_t count = prof_i_site_count();
  for (uint32_t site = 1; site <= count; site++)
    if (rule_fits(site, r) && site_mute(site, PROF_I_MUTED_BY_PROGRAM))
      prof_i_change_log_write_site(PROF_CHANGE_MUTED, site);
  return PROF_OK;
}

int prof_i_mute_remove_rule(const char *name, const char *category) {
  mute_rule *const r = name || category ? find_rule(name, category) : NULL;
  if ((name || category) && !(r && r->in_force))
    return prof_i_fail(PROF_E_NOT_FOUND, "prof_mute: name '%s', category '%s' is not muted",
                       name ? name : "(any)", category ? category : "(any)");
  for (mute_rule *each = first_rule(); each; each = each->next) {
    if ((r && each != r) || !each->in_force) continue;
    mute_table.rule_count--;
    __atomic_store_n(&each->in_force, 0, __ATOMIC_SEQ_CST);
  }
  watch_names();
  if (!r) sites_unmute_all(PROF_I_MUTED_BY_BUDGET, true);
  const uint32_t most = __atomic_load_n(&mute_table.most, __ATOMIC_RELAXED);
  for (uint32_t site = 1; prof_i_mute_count() && site <= most; site++)
    /* another rule may mute it, too */
    if (prof_i_mute_is_muted(site) && !any_rule_fits(site))
      site_unmute(site, PROF_I_MUTED_BY_PROGRAM, true);
  return PROF_OK;
}
