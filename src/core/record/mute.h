/* Which call sites are muted, by the program or by the budget. The table is by number, so a site
   that comes back by dlopen() is still muted. No pointer to a call site is kept: each site reads
   the table again when the epoch is raised. */
#ifndef PROF_CORE_RECORD_MUTE_H
#define PROF_CORE_RECORD_MUTE_H

#include <prof/profiler.h>
#include <stdbool.h>

#include "site.h"

typedef enum prof_i_muter {
  PROF_I_MUTED_BY_PROGRAM = 1, /* prof_mute() */
  PROF_I_MUTED_BY_BUDGET = 2
} prof_i_muter;

/* Any thread. Signal-safe. */
bool prof_i_mute_is_muted(uint32_t site);
/* Does what prof_mute() was told fit a scope of these texts? Any thread. Signal-safe. */
bool prof_i_mute_matches_texts(const prof_i_site_texts *texts);

/* The mutes in force that no scope has fitted so far, "'name@category', 'name'", cut at the room;
   returns how many they are. Control path. */
uint32_t prof_i_mute_list_unfit(char *to, size_t room);

/* A site has just got its number: is it to be muted, by what prof_mute() was told? Any thread.
   Signal-safe. */
void prof_i_mute_check_new_site(uint32_t site);

/* The budget mutes it. False: it was muted already, or there is no memory.
   prof_i_site_raise_epoch() is the caller's, after the last. Any thread. Signal-safe. */
bool prof_i_mute_for_budget(uint32_t site);

/* What the budget has muted is heard again; the capture may be told. Control lock held. */
void prof_i_mute_end_budget(bool is_told);

/* Tells the capture what is muted. Control lock held. */
void prof_i_mute_write_all(void);

uint32_t prof_i_mute_count(void);

/* The rules of prof_mute(): texts of fewer than PROF_I_MUTE_TEXT_BYTES bytes, or NULL for any. They
   return a status with its text. Control lock held. */
enum { PROF_I_MUTE_TEXT_BYTES = 128 };
int prof_i_mute_add_rule(const char *name, const char *category);
int prof_i_mute_remove_rule(const char *name, const char *category);

#endif
