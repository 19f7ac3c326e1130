/* What the loader does not tell: of a file that it may not read it says, mostly, that it is
   nowhere. */
#ifndef PROF_BASE_UNREADABLE_LIBRARY_H
#define PROF_BASE_UNREADABLE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Is there a library of that name, or path, which this user may not read? Its path, as much as
   there is room for. A name is looked for in the loader's folders, LD_LIBRARY_PATH's and the
   system's, not in what ldconfig's cache alone has. False also where the loader does not tell its
   folders, and in the static library. Any thread. */
bool prof_i_library_is_unreadable(const char *name, char *path_out, size_t room);

#endif
