/* Opening libraries at run time: vendors', plug-ins, and what is used where it is there. Also names
   of C++ functions, by the C++ library of the process. */
#ifndef PROF_BASE_LIBRARY_H
#define PROF_BASE_LIBRARY_H

#include <stdbool.h>
#include <stddef.h>

/* Why none of several names could be opened. */
typedef struct prof_i_library_error {
  /* it is there, and cannot be loaded: no library, of another machine, or what it needs is not
     there */
  bool is_broken;
  char text[200];
} prof_i_library_error;

/* False in the static library. */
bool prof_i_library_can_open(void);

/* The library, or NULL, and why in *why_out: valid until this thread's next call of dlopen() and
   its kin. Never closed. is_there: only a copy that the process has already. */
void *prof_i_library_open(const char *name, int is_there, const char **why_out);
/* Opens one of several names; NULL: *why, which begins as {0}, has the first that is there and
   cannot be loaded, else the first. */
void *prof_i_library_try(const char *name, prof_i_library_error *why);
void *prof_i_library_find(void *library, const char *symbol);

/* Is a library loaded with this name, of whatever release? The name is that of its file, or the one
   that programs were linked with. 1: path_out has its path, as far as there is room. 0: no. -1:
   unknown: somebody else searches or forks just now, or this is the static library. A fork may
   interrupt the search. */
int prof_i_library_find_loaded(const char *name, char *path_out, size_t room);

/* ---- names of C++ functions ---- */

/* The readable name of a C++ function, as vendors name kernels. It uses the C++ library of the
   process, if there is one. Only for names of the process itself, not for those of a file: a few
   bytes can expand to more text than there is memory. The caller frees it. NULL: it is no such
   name, or there is no C++ library. Any thread. */
char *prof_i_demangle(const char *text, size_t bytes);

/* ---- zstd.c: opened where it is installed; prof does not depend on it ---- */

typedef struct prof_i_zstd prof_i_zstd;

/* Returns PROF_OK, PROF_E_UNSUPPORTED or PROF_E_NO_MEMORY, with an error text that begins with
   `what`, such as "the capture is packed". One thread at a time uses the object. */
int prof_i_zstd_create(const char *what, prof_i_zstd **zstd_out);
void prof_i_zstd_destroy(prof_i_zstd *zstd); /* NULL is ignored */

/* Returns the bytes written, at most `room`. 0: they did not fit, or there was no memory. */
size_t prof_i_zstd_compress(prof_i_zstd *zstd, void *to, size_t room, const void *from,
                            size_t count);

/* False: the input is damaged, or does not decompress to exactly to_count bytes. */
bool prof_i_zstd_decompress(prof_i_zstd *zstd, void *to, size_t to_count, const void *from,
                            size_t count);

#endif
