/* How a file says that it is a part of a capture. A filtered or cut trace lacks scopes that were
   inside of others. Its import cannot know their time, so self times become larger than those of
   the capture. The export to Chrome JSON writes the key into its summary (chrome_meta.c). The
   import makes a note of it (tools/import). Tables print that note below their rows
   (table_footer.c), other commands print it on stderr (tools/prof/inputs.c). */
#ifndef PROF_FORMAT_PART_NOTE_H
#define PROF_FORMAT_PART_NOTE_H

#include <stdbool.h>
#include <string.h>

/* Scopes that a filter left out. */
#define PROF_I_KEY_FILTERED "left out by a filter"
/* Events in the file, if it has a time span of the capture. */
#define PROF_I_KEY_IN_SPAN "of these in this file"
/* The begin of the note. */
#define PROF_I_NOTE_PART "This is a part of a capture: "

/* Whether prof's import wrote the note: it is plain ASCII. Another one might move the cursor. */
static inline bool prof_i_is_part_note(const char *text) {
  bool is_plain = true;
  for (const char *at = text; *at; at++) is_plain &= *at >= ' ' && *at <= '~';
  return is_plain && strncmp(text, PROF_I_NOTE_PART, strlen(PROF_I_NOTE_PART)) == 0;
}

#endif
