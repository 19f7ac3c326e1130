/* Texts, such as kernels' names, that vendors' records name by a number. Kept until the process
   ends. Any thread. */
#ifndef PROF_DEVICE_NAMES_H
#define PROF_DEVICE_NAMES_H

#include <stddef.h>
#include <stdint.h>

/* Its number, the same for the same text; 0: no room. */
uint32_t prof_i_name_intern(const char *text, size_t bytes);

/* The call site in tables and captures for work of that name and category. The category is a
   literal. Without a name it has the text `otherwise`. level: 1, or 2 for the runtime's own. 0: no
   room. */
uint32_t prof_i_name_site(uint32_t number, const char *category, const char *otherwise,
                          uint32_t level);

/* NUL-terminated, and stays; of 0 and of no number that was given: empty. */
const char *prof_i_name_text(uint32_t number);

/* In a forked child, whose parent may just have been at it. */
void prof_i_names_forget(void);

#endif
