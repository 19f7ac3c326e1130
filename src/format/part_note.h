/* How a file says that it is a part of a capture. A filtered or cut trace lacks scopes that were
   inside of others. Its import cannot know their time, so self times become larger than those of
   the capture. The export to Chrome JSON writes the key into its summary (chrome_meta.c). The
   import makes a note of it (tools/import), and tables print that note (table_footer.c). */
#ifndef PROF_FORMAT_PART_NOTE_H
#define PROF_FORMAT_PART_NOTE_H

/* Scopes that a filter left out. */
#define PROF_I_KEY_FILTERED "left out by a filter"
/* Events in the file, if it has a time span of the capture. */
#define PROF_I_KEY_IN_SPAN "of these in this file"
/* The begin of the note. */
#define PROF_I_NOTE_PART "This is a part of a capture: "

#endif
