/* See summary.h. */
#define _GNU_SOURCE
#include "summary.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "../prof/commands.h"
#include "output.h"

void run_summary_add_script(run_summary *summary, const char *of, bool is_before, const char *text,
                            int status) {
  run_words_add(&summary->scripts, run_text("%s-script of %s, status %d: %s",
                                            is_before ? "pre" : "post", of, status, text));
}

void run_summary_add_file(run_summary *summary, const char *path) {
  run_words_add(&summary->files, path);
}

void run_summary_add_folder(run_summary *summary, const char *path) {
  DIR *const all = opendir(path);
  bool has_files = false;
  for (struct dirent *entry; all && (entry = readdir(all)) != NULL;)
    has_files |= strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
  if (all) closedir(all);
  if (has_files) run_words_add(&summary->files, run_text("%s/", path));
  else rmdir(path);
}

void run_summary_print(const run_summary *summary) {
  const run_end *const end = &summary->end;
  say("prof run: %s: status %d, %.3f s", summary->command, end->status, end->seconds);
  for (size_t i = 0; i < summary->scripts.count; i++) say("  %s", summary->scripts.items[i]);
  for (size_t i = 0; i < summary->files.count; i++) say("  %s", summary->files.items[i]);
  for (size_t i = 0; i < end->left.count; i++)
    say("  still runs, and is not waited for: %s", end->left.items[i]);
  if (end->failed) say("  could not be written: %s", end->failed);
}

/* ---- JSON ---- */

static void put_text(FILE *to, const char *text) {
  fputc('"', to);
  for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
    if (*at == '"' || *at == '\\') fprintf(to, "\\%c", *at);
    else if (*at < 0x20 || *at == 0x7f) fprintf(to, "\\u%04x", *at);
    else fputc(*at, to);
  }
  fputc('"', to);
}

static void put_list(FILE *to, const char *name, const run_words *words) {
  fprintf(to, ",\n  \"%s\": [", name);
  for (size_t i = 0; i < words->count; i++) {
    fputs(i ? ",\n    " : "\n    ", to);
    put_text(to, words->items[i]);
  }
  fputs(words->count ? "\n  ]" : "]", to);
}

void run_summary_write(const run_summary *summary, const char *folder) {
  char *const path = run_output_new_file(folder, "summary", ".json");
  FILE *const to = fopen(path, "we");
  if (!to) {
    say("prof run: cannot write '%s': %s", path, strerror(errno));
    return;
  }
  fputs("{\n  \"command\": ", to);
  put_text(to, summary->command);
  fprintf(to, ",\n  \"status\": %d,\n  \"seconds\": %.6f", summary->end.status,
          summary->end.seconds);
  put_list(to, "scripts", &summary->scripts);
  put_list(to, "files", &summary->files);
  put_list(to, "left_running", &summary->end.left);
  fputs("\n}\n", to);
  const bool is_bad = ferror(to) != 0;
  if (fclose(to) != 0 || is_bad) say("prof run: cannot write '%s': %s", path, strerror(errno));
}
