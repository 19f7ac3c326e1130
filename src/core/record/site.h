/* Call sites and argument schemas: each registered once by content, so that a library that comes
   back by dlopen finds its old number, and copied into every arena. Lock-free and without malloc:
   the first run of a site may be in a signal handler. */
#ifndef PROF_CORE_RECORD_SITE_H
#define PROF_CORE_RECORD_SITE_H

#include <prof/scope.h>
#include <stdbool.h>

#include "../../format/layout.h"
#include "../buffer/session.h"

/* The call site's number for this name and category (NULL: given at run time); 0 when the table is
   full. Writes it into the arena at its first appearance. Any thread. Signal-safe. */
uint32_t prof_i_site_number(const prof_site *site, const char *name, const char *category);

/* The texts of a site that stands for a name made at run time: see name.h. */
enum {
  PROF_I_SITE_TEXT_BYTES = 8000
}; /* of a literal; longer ones are cut: a meta record fits its extent */
typedef struct prof_i_site_texts {
  const char *name, *category; /* not NUL-terminated */
  size_t name_bytes, category_bytes;
} prof_i_site_texts;

/* The number of such a site, of the call site with that number. Unlike that it is written into an
   arena only when a record there is to name it. Past the gate. */
uint32_t prof_i_site_number_of_name(const prof_site *site, uint32_t number,
                                    const prof_i_site_texts *texts);
/* The number of a site that stands for the call site of that number with its only argument's text:
   `given` is a record that has it. Written as a name's. Past the gate. */
uint32_t prof_i_site_number_of_argument(uint32_t number, const uint64_t *given, uint32_t count);
/* The call site of a name's or an argument's site; 0: it is a call site itself. Any thread.
   Signal-safe. */
uint32_t prof_i_site_name_of(uint32_t number);
/* What the budget takes the site for: the call site where it stands for an argument's text. */
uint32_t prof_i_site_for_budget(uint32_t number);
/* Stands the site of that number in this capture? Of a name's it is written now, unless all of
   those have had their share of the cap. Past the gate. */
bool prof_i_site_is_written(uint32_t number);
/* Is so much of their share left? Past the gate. */
bool prof_i_site_has_room_for_name(size_t bytes);

/* Before the first site: so much address space is free, of which the tables take a 32nd at most.
   Then there may be fewer sites. Signal-safe. */
void prof_i_site_fit(uint64_t free_bytes);

/* Memory that is never given back; NULL: there is none. Makes *place point to zeroed memory once.
   Any thread. Signal-safe. */
void *prof_i_site_allot(size_t bytes);
void *prof_i_site_map_once(void **place, size_t bytes);

/* The same for a call site, which remembers the answer: its state is epoch << 32 | number, the
   epoch with PROF_I_EPOCH_MUTED when it is muted. Asked for again when the epoch has been raised.
   Any thread, past the gate. Signal-safe. */
uint32_t prof_i_site_look_up(prof_site *site, const char *name, const char *category);
static inline bool prof_i_site_is_muted(const prof_site *site) {
  return __atomic_load_n(&site->state, __ATOMIC_RELAXED) >> 32 & PROF_I_EPOCH_MUTED;
}

/* Is the site of this number, in this table, of that name and category (NULL: any)? A name that
   ends in '*': does it begin so? */
bool prof_i_site_fits(uint32_t number, const char *name, const char *category);
bool prof_i_site_texts_fit(const prof_i_site_texts *texts, const char *name, const char *category);

/* The arguments that a site had first: most have the same ever after. Keys and format are compared
   as texts: a pointer may come again with another text behind it. Immutable once published. */
typedef struct prof_i_first_arg {
  const char *key; /* not NUL-terminated */
  uint32_t key_bytes;
  uint32_t type;
} prof_i_first_arg;

typedef struct prof_i_first_args {
  uint32_t schema, count, kind;
  uint32_t format_bytes;
  const char *format;     /* not NUL-terminated */
  const char *own_format; /* NULL when it had none: then NULL is the same */
  prof_i_first_arg items[];
} prof_i_first_args;

/* NULL until a first one is there */
extern const prof_i_first_args **prof_i_first_args_by_site __attribute__((visibility("hidden")));
static inline const prof_i_first_args *prof_i_site_first_args(uint32_t site) {
  const prof_i_first_args **const all =
      __atomic_load_n(&prof_i_first_args_by_site, __ATOMIC_ACQUIRE);
  return all ? __atomic_load_n(&all[site], __ATOMIC_ACQUIRE) : NULL;
}

/* The schema of the first `count` of these arguments: kind, format, keys and types. The site
   remembers the first that it had. Where the gate is closed only one that is known already is
   found. 0: none is to be had, and the arguments are left out. Keeps errno. */
uint32_t prof_i_schema_number(uint32_t site, const prof_args *args, uint32_t count);
/* The same for callers that are past the gate. */
uint32_t prof_i_schema_number_inside(uint32_t site, const prof_args *args, uint32_t count);

uint32_t prof_i_site_count(void);

/* Another arena is in force. Control lock held, gate closed. */
void prof_i_site_begin_capture(void);
/* Copies all sites and schemas known into it, before anything is recorded. There may be a million:
   past the gate, without the control lock. Or with both. */
void prof_i_site_copy_all(void);

/* Raises prof_i_session_epoch(): every site must ask again. Any thread. */
void prof_i_site_raise_epoch(void);

/* prof_i_counter_1() for a value that belongs to a device: see event.c. */
void prof_i_counter_of(prof_site *site, const char *name, double value, prof_device device);

#endif
