/* The two sides of a comparison, as words of a command line: captures, folders, quoted globs. */
#ifndef PROF_TOOLS_SIDES_H
#define PROF_TOOLS_SIDES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "inputs.h"

typedef input_paths side_captures;

/* Index 0: the base; 1: the new side. Begins as zeros. */
typedef struct command_sides {
  const char *command;
  side_captures sides[2];
  int is_named; /* --base or --new was given */
} command_sides;

/* Takes "--base A..." and "--new B..." out of the words. Returns EXIT_OK, or another status after
   it has said what is wrong. */
int sides_take(command_sides *sides, int *argc, char **argv);

/* Adds what a word names to a side. The same. */
int sides_add(command_sides *sides, uint32_t side, const char *word);

/* Reads the words after the options: A and B if is_pair, else captures of the new side. Refuses
   words together with --base and --new, and one of these options alone. Returns an exit status. */
int sides_finish(command_sides *sides, int argc, char **argv, bool is_pair);

/* Refuses an output that is one of the captures, and replaces a link by its target (commands.h).
   Returns an exit status. */
int sides_check_output(const command_sides *sides, const char **output);

/* What a command makes of the captures of both sides. */
typedef struct sides_reader {
  size_t bytes; /* of the object */
  /* Adds a capture. Returns PROF_OK, or a status whose text is set. Two threads may call it for two
     objects. */
  int (*add)(void *to, uint32_t side, const prof_trace *trace);
  /* Moves the new side from another object. Returns PROF_OK or a status. Then both objects may only
     be freed. */
  int (*merge)(void *to, void *from);
  void (*fini)(void *object);
} sides_reader;

/* Adds all captures to `to`, an object without captures. Two threads read two large captures if the
   machine has two processors, and `has_filter` is false. The result is the same. If this fails, one
   thread reads both sides: that may need less memory. Returns an exit status, after a message. */
int sides_read(const command_sides *sides, const sides_reader *reader, bool has_filter, void *to);

/* The same of a comparison. */
struct prof_i_comparison;
int sides_compare(const command_sides *sides, struct prof_i_comparison *comparison);
void sides_free(command_sides *sides);

#endif
