/* Where a traced function is defined. src/export/chrome_args.c writes it among the arguments of
   the function's calls. Here it becomes the site's again, so that frames of stacks read as they
   did. */
#ifndef PROF_IMPORT_PLACE_H
#define PROF_IMPORT_PLACE_H

#include "names.h"

/* False: it does not say so, and place_out says nothing. */
bool import_source_location_of(const import_event *event, import_text category, import_text name,
                               import_source_location *place_out);

/* Is it an argument that place_out was made of? */
bool import_source_location_has(const import_source_location *place, const import_event *event,
                                const import_arg *arg);

#endif
