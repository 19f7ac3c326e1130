/* See internal.h. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "text.h"

/* As bindings/python/prof/_run.py names it. */
#define MARK ".unreported-"

run_python_rest run_python_parse_rest(const char *folder) {
  const run_words names = run_folder_names(folder);
  run_python_rest rest = RUN_PYTHON_REPORTED;
  for (size_t i = 0; i < names.count; i++) {
    if (strncmp(names.items[i], MARK, sizeof MARK - 1) != 0) continue;
    const char *const path = run_text("%s/%s", folder, names.items[i]);
    size_t bytes = 0;
    char *const text = run_file_read(path, 64, &bytes);
    const run_python_rest told =
        text && strncmp(text, "files", 5) == 0 ? RUN_PYTHON_FILES : RUN_PYTHON_ALL;
    free(text);
    unlink(path);
    if (told > rest) rest = told;
  }
  return rest;
}
