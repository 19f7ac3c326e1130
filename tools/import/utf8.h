/* Which texts are UTF-8. */
#ifndef PROF_IMPORT_UTF8_H
#define PROF_IMPORT_UTF8_H

#include "event.h"

/* Is it well-formed? One that json_cleaner.c has cut may end inside of a character. */
bool import_utf8_is(import_text text);

#endif
