/* A folder for the files of one test of sinks. */
#ifndef PROF_TESTS_SINK_FOLDER_H
#define PROF_TESTS_SINK_FOLDER_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char folder[64]; /* of the current test, empty at its begin */

static int make_folder(void **state) {
  (void)state;
  strcpy(folder, "/tmp/prof-sink-XXXXXX");
  return mkdtemp(folder) == NULL ? -1 : 0;
}

static int remove_folder(void **state) {
  (void)state;
  char command[256];
  snprintf(command, sizeof command, "chmod -R u+rwx %s; rm -rf %s", folder, folder);
  return system(command);
}

/* The result is valid until the next call. */
static const char *in_folder(const char *name) {
  static char path[512];
  snprintf(path, sizeof path, "%s/%s", folder, name);
  return path;
}

#endif
