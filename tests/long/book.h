/* book.h: what a test subject counts without prof, and what prof says of the same run, both as JSON
   for check.py. The counts are the host's own: nothing here queries prof before the run is over. A
   book belongs to one thread; books are added up after the threads have ended. */
#ifndef PROF_TESTS_LONG_BOOK_H
#define PROF_TESTS_LONG_BOOK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

/* One name of one category. Each begin ends up in exactly one of ended, jumped and open. */
typedef struct book_line {
  char *name;
  const char *category; /* a literal */
  uint32_t level;
  uint32_t hash;
  uint64_t begun;
  uint64_t ended;     /* by its own end */
  uint64_t jumped;    /* a block that a longjmp() left: prof records it as skipped */
  uint64_t open;      /* a scope by calls that nobody ended */
  uint64_t marks;     /* instants or counters of that name */
  int64_t live_bytes; /* of memory that was handed out inside of it and lives at the end */
} book_line;

typedef struct book {
  book_line **lines;
  uint32_t *places; /* hash table: index of a line + 1 */
  size_t count, room;
} book;

/* What an allocator counts of itself. */
typedef struct book_account {
  const char *name;
  uint64_t used, peak, alloc_count, free_count, failed_count;
} book_account;

/* The line of a name; made when it is new. Never NULL: without memory the process ends. */
book_line *book_find(book *b, const char *name, const char *category, uint32_t level);
void book_add(book *to, const book *from);
void book_destroy(book *b);

/* Counts bytes that came and went, and the peak. A resize is a free and an alloc. */
void book_account_alloc(book_account *account, uint64_t bytes);
void book_account_free(book_account *account, uint64_t bytes);

void book_put_text(FILE *to, const char *text, size_t bytes); /* as a JSON string */
/* {"scopes": [...], and what `more` writes behind it. */
void book_write(FILE *to, const book *b, const book_account *accounts, size_t account_count);

/* What prof_get() and its readers say of the recording, as one JSON object in a file; then
 * prof_dump(NULL). 0: done. */
int book_write_prof(const char *path);

/* Memory that outlives a kill, of the file that PROGRESS names: *to points to so many zeros. If no
   file is named, *to stays as it is. False: the file cannot be had. */
bool book_progress(size_t bytes, void **to);

#endif
