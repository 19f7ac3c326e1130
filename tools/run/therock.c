/* See internal.h. An installation of TheRock has share/therock/therock_manifest.json. */
#define _GNU_SOURCE
#include "internal.h"

#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "json.h"
#include "text.h"

enum { MANIFEST_BYTES_MAX = 1 << 20 };

/* A member of a JSON file that is a text, or NULL. */
static const char *read_json_member(const char *path, const char *key) {
  size_t bytes;
  run_json_error error;
  const char *const text = run_file_read(path, MANIFEST_BYTES_MAX, &bytes);
  const run_json *const json = text ? run_json_parse(text, &error) : NULL;
  const run_json *const value = run_json_get(json, key);
  return value && value->kind == RUN_JSON_TEXT ? value->text : NULL;
}

/* True: it is one. */
static bool report_therock(const char *root) {
  const char *const manifest = run_text("%s/share/therock/therock_manifest.json", root);
  const char *const about = run_text("%s/share/therock/dist_info.json", root);
  if (access(manifest, F_OK) != 0 && access(about, F_OK) != 0) return false;
  const char *const commit = read_json_member(manifest, "the_rock_commit");
  const char *const targets = read_json_member(about, "dist_amdgpu_targets");
  say("prof run: ROCm in '%s' comes from TheRock; commit %s, for %s", root,
      commit ? commit : "not known", targets ? targets : "targets that are not known");
  return true;
}

/* What `rocm-sdk path --root` prints: the Python package's folder. */
static const char *package_is_therock(void) {
  static char line[4096];
  // NOLINTNEXTLINE(cert-env33-c): the text is ours; a shell finds the program on PATH
  FILE *const from = popen("rocm-sdk path --root 2>/dev/null", "re");
  const bool is_there = from && fgets(line, sizeof line, from);
  if (from) pclose(from);
  line[strcspn(line, "\r\n")] = '\0';
  return is_there && *line ? line : NULL;
}

void run_therock_check(void) {
  run_words roots = {0};
  static const char *const variables[] = {"ROCM_PATH", "ROCM_HOME", "HIP_PATH"};
  for (size_t i = 0; i < sizeof variables / sizeof *variables; i++) {
    const char *const value = getenv(variables[i]);
    if (value && *value) run_words_add(&roots, value);
  }
  const char *const package = package_is_therock();
  if (package) run_words_add(&roots, package);
  glob_t found;
  if (glob("/opt/rocm*", 0, NULL, &found) == 0)
    for (size_t i = 0; i < found.gl_pathc; i++)
      run_words_add(&roots, run_text("%s", found.gl_pathv[i]));
  globfree(&found);
  bool is_any = false;
  for (size_t i = 0; i < roots.count; i++)
    if (run_words_find(&roots, roots.items[i]) == (ptrdiff_t)i)
      is_any |= report_therock(roots.items[i]);
  if (!is_any) say("prof run: no ROCm of TheRock is on this machine");
}
