/* The helper thread: prepares chunks ahead, so that no traced thread waits for the disk. Only when
   options.helper_thread asks for it. */
#ifndef PROF_CORE_BUFFER_HELPER_H
#define PROF_CORE_BUFFER_HELPER_H

#include <stdbool.h>

struct prof_i_unmap_list;

/* control lock held; without it recording works as if it had not been asked for */
void prof_i_helper_start(void);
void prof_i_helper_stop(void); /* waits for it to end */
/* Unmaps it when it has nothing better to do. False: the caller is to do it. Control lock held, and
   no stop is under way. */
bool prof_i_helper_unmap(struct prof_i_unmap_list *all);
void prof_i_helper_forget(void); /* in a forked child: it is not there */
bool prof_i_helper_is_on(void);

/* The errno for which the helper could not be made, or 0. Control lock held. */
int prof_i_helper_error(void);

#endif
