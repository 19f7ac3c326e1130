/* The two sides of a comparison, as words of a command line: captures, folders, quoted globs. */
#ifndef PROF_TOOLS_SIDES_H
#define PROF_TOOLS_SIDES_H

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

/* Opens each capture of both sides and passes it to `add`. `add` returns EXIT_OK, or another status
   after a message, which ends the reading. Returns an exit status. */
typedef int (*sides_add_capture)(void *user, uint32_t side, const prof_trace *trace);
int sides_read(const command_sides *sides, sides_add_capture add, void *user);
void sides_free(command_sides *sides);

#endif
