/* See internal.h. */
#include "internal.h"

#include "../base/display.h"

/* What XML does not take as it is; controls have been spelt out before, and two code points that
   are no characters are left. */
void prof_i_svg_put_escaped(prof_i_text_buffer *page, const char *text) {
  for (; *text; text++) {
    const unsigned char *const at = (const unsigned char *)text;
    if (*text == '&')
      prof_i_text_buffer_append_text(page, "&amp;");
    else if (*text == '<')
      prof_i_text_buffer_append_text(page, "&lt;");
    else if (*text == '>')
      prof_i_text_buffer_append_text(page, "&gt;");
    else if (*text == '"')
      prof_i_text_buffer_append_text(page, "&quot;");
    else if (*text == '\'')
      prof_i_text_buffer_append_text(page, "&#39;");
    else if (at[0] == 0xef && at[1] == 0xbf && (at[2] == 0xbe || at[2] == 0xbf))
      prof_i_text_buffer_append_text(page, "\xef\xbf\xbd"), text += 2;
    else
      prof_i_text_buffer_append(page, text, 1);
  }
}

void prof_i_svg_put_name(prof_i_text_buffer *page, const char *name) {
  char shown[PROF_I_SANITIZED_NAME_BYTES];
  prof_i_sanitize_name(shown, name);
  prof_i_svg_put_escaped(page, shown);
}
