/* Chrome JSON: "Call stack". With folders, each of which ends in a separator, it is written as
   torch.profiler writes it. chrome.c and chrome_args.c call this. */
#include "../base/text.h"
#include "chrome.h"

static size_t skip_folder(const prof_i_stack_folders *all, const char *frame, size_t bytes) {
  size_t longest = 0;
  for (uint32_t i = 0; i < all->count; i++) {
    const size_t folder_bytes = strlen(all->folders[i]);
    if (folder_bytes > longest && folder_bytes < bytes &&
        memcmp(all->folders[i], frame, folder_bytes) == 0)
      longest = folder_bytes;
  }
  return longest;
}

void prof_i_chrome_put_stack(prof_i_chrome *w, prof_i_text stack) {
  if (w->stack_folders.count == 0) {
    prof_i_sink_string(w->sink, stack.data, stack.bytes);
    return;
  }
  const char *frame = stack.data;
  const char *const end = stack.data + stack.bytes;
  prof_i_sink_bytes(w->sink, "\"", 1);
  while (frame < end) {
    const char *const mark = memchr(frame, ';', (size_t)(end - frame));
    const char *const last = mark ? mark : end;
    frame += skip_folder(&w->stack_folders, frame, (size_t)(last - frame));
    prof_i_sink_string_part(w->sink, frame, (size_t)(last - frame));
    prof_i_sink_bytes(w->sink, ";", 1);
    frame = last + 1;
  }
  prof_i_sink_bytes(w->sink, "\"", 1);
}
