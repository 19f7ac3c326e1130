/* Chrome JSON: where a function is defined, among the arguments of its calls. The compiler or the
   interpreter has named the function, and others have that name too. The arguments are `file` and
   `line`. A function of C that Python has called has `frame` instead. prof
   import reads these (tools/import/args.c), so rows and frames of stacks are the same. A
   site with a name of the user's is written once, at the JSON's end (chrome_meta.c). At each scope
   it would make the text a third longer. */
#include <string.h>

#include "../analysis/call_stacks.h"
#include "../base/text.h"
#include "chrome.h"

typedef struct location_text {
  char *next, *limit;
  bool is_whole;
} location_text;

static void location_put_literal(location_text *p, const char *text) {
  const size_t bytes = strlen(text);
  p->is_whole = p->is_whole && (size_t)(p->limit - p->next) > bytes;
  if (!p->is_whole) return;
  memcpy(p->next, text, bytes);
  p->next += bytes;
}

/* ,"key":"text" */
static void location_put_member(location_text *p, const char *key, prof_i_text text) {
  size_t at = 0;
  location_put_literal(p, ",\"");
  location_put_literal(p, key);
  location_put_literal(p, "\":\"");
  if (!p->is_whole) return;
  p->next += prof_i_escape(p->next, (size_t)(p->limit - p->next), text.data, text.bytes, &at);
  p->is_whole = at == text.bytes;
  location_put_literal(p, "\"");
}

bool prof_i_chrome_location_text(const prof_i_site_info *site, prof_i_text name, char *to,
                                 size_t room, size_t *bytes_out) {
  location_text p = {to, to + room, true};
  *bytes_out = 0;
  if (site->file.bytes == 0 || !prof_i_is_named_by_function(site)) return true;
  if (prof_i_is_c_function_site(site)) {
    location_put_member(&p, "frame", site->file);
  } else {
    const prof_i_text called = prof_i_unqualified_name(site->function),
                      end = prof_i_unqualified_name(name);
    location_put_member(&p, "file", site->file);
    location_put_literal(&p, ",\"line\":");
    if (p.limit - p.next < PROF_I_NUMBER_ROOM) return false;
    p.next = prof_i_put_u64(p.next, site->line);
    if (called.bytes != end.bytes || memcmp(called.data, end.data, (size_t)called.bytes) != 0)
      location_put_member(&p, "function", called);
  }
  if (p.is_whole) *bytes_out = (size_t)(p.next - to);
  return p.is_whole;
}
