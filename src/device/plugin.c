/* Back ends in shared libraries. A plug-in is code: prof loads only what its user has named by a
   whole path, and nothing into a setuid program. What could not be used is listed with the reason,
   so that prof doctor can print it. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <limits.h>
#include <prof/device.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>

#include "../base/error.h"
#include "../base/library.h"
#include "../base/process.h"
#include "internal.h"
#include "registry.h"

static const char entry_name[] = "prof_backend_entry";

static int32_t result_of_status(int status) {
  return status == PROF_E_VERSION ? PROF_BACKEND_VERSION : PROF_BACKEND_INVALID;
}

/* What the file has, checked. */
static int read_table(const char *path, prof_backend *table_out, const prof_backend **origin_out) {
  const char *why;
  struct stat about;
  if (stat(path, &about) != 0)
    return prof_i_fail(prof_i_status_of_errno(errno), "%s: %s", path, strerror(errno));
  /* opening a pipe would wait for a writer */
  if (!S_ISREG(about.st_mode)) return prof_i_fail(PROF_E_FILE_TYPE, "%s is no regular file", path);
  void *const library = prof_i_library_open(path, 0, &why);
  if (!library) return prof_i_fail(PROF_E_UNSUPPORTED, "%s cannot be opened: %s", path, why);
  prof_backend_entry_function entry;
  *(void **)&entry = prof_i_library_find(library, entry_name);
  if (!entry)
    return prof_i_fail(PROF_E_UNSUPPORTED, "%s is no back end: it does not export %s()", path,
                       entry_name);
  const prof_backend *const table = entry(PROF_BACKEND_MAJOR, PROF_BACKEND_MINOR);
  if (!table)
    return prof_i_fail(PROF_E_VERSION,
                       "%s does not serve back ends of version %u.%u: its %s() gave NULL", path,
                       PROF_BACKEND_MAJOR, PROF_BACKEND_MINOR, entry_name);
  *origin_out = table;
  return prof_i_backend_table_copy(table_out, table, path);
}

/* The last error is why the path is of no use. */
static int list_unused(const char *path, int status) {
  prof_i_registry_add_unused(path, result_of_status(status), prof_last_error());
  return status;
}

/* A plug-in's own code runs while it is loaded: it may ask for others, and for itself, without an
   end. */
bool prof_i_plugins_is_loading(void) { return prof_i_this_flags.is_loading_plugin; }

static int load_file(const char *path) {
  prof_backend table;
  const prof_backend *origin = NULL;
  if (prof_i_registry_has_path(path)) return PROF_OK;
  if (!prof_i_registry_has_room())
    return prof_i_fail(PROF_E_TOO_LARGE, "%s: %d back ends are there already", path,
                       PROF_I_BACKENDS_MAX);
  if (prof_i_this_flags.is_loading_plugin)
    return prof_i_fail(PROF_E_BUSY, "%s: asked for by a plug-in that is being loaded", path);
  prof_i_this_flags.is_loading_plugin = true;
  const int status = read_table(path, &table, &origin);
  prof_i_this_flags.is_loading_plugin = false;
  return status == PROF_OK ? prof_i_registry_add(&table, origin, path) : list_unused(path, status);
}

static int is_library_entry(const struct dirent *entry) {
  const size_t bytes = strlen(entry->d_name);
  return entry->d_name[0] != '.' && bytes > 3 && strcmp(entry->d_name + bytes - 3, ".so") == 0;
}

static void keep_first_status(int *status, int next) {
  if (*status == PROF_OK) *status = next;
}

static int load_file_in(const char *folder, const char *name) {
  char *path = NULL;
  const int bytes = asprintf(&path, "%s/%s", folder, name);
  if (bytes < 0) return prof_i_fail(PROF_E_NO_MEMORY, "%s: no memory for its path", name);
  const int status = bytes < PATH_MAX ? load_file(path)
                                      : prof_i_fail(PROF_E_INVALID, "%s is longer than %d bytes",
                                                    path, PATH_MAX - 1);
  free(path);
  return status;
}

/* By name, so that the order is the same each time. */
static int load_folder(const char *folder) {
  struct dirent **names = NULL;
  const int count = scandir(folder, &names, is_library_entry, alphasort);
  if (count < 0)
    return list_unused(
        folder, prof_i_fail(prof_i_status_of_errno(errno), "%s: %s", folder, strerror(errno)));
  int status = PROF_OK;
  for (int i = 0; i < count; i++) {
    keep_first_status(&status, load_file_in(folder, names[i]->d_name));
    free(names[i]);
  }
  free(names);
  return status;
}

static int load_path(const char *path) {
  struct stat about;
  if (path[0] != '/')
    return list_unused(path, prof_i_fail(PROF_E_INVALID,
                                         "'%s' is no whole path: a back end is not looked for in "
                                         "the working directory, nor anywhere else",
                                         path));
  if (stat(path, &about) != 0)
    return list_unused(path,
                       prof_i_fail(prof_i_status_of_errno(errno), "%s: %s", path, strerror(errno)));
  return S_ISDIR(about.st_mode) ? load_folder(path) : load_file(path);
}

/* One of a list of paths: so many bytes. */
static int load_list_item(const char *at, size_t bytes) {
  char *const path = strndup(at, bytes);
  if (!path) return prof_i_fail(PROF_E_NO_MEMORY, "no memory for a path of %zu bytes", bytes);
  const int status =
      bytes < PATH_MAX
          ? load_path(path)
          : list_unused(path, prof_i_fail(PROF_E_INVALID, "a path of %zu bytes; %d are possible",
                                          bytes, PATH_MAX - 1));
  free(path);
  return status;
}

int prof_i_plugins_load(const char *paths) {
  int status = PROF_OK;
  if (getauxval(AT_SECURE))
    return prof_i_fail(PROF_E_PERMISSION,
                       "this program has rights that its user has not: it loads no back ends");
  for (const char *at = paths; *at;) {
    const size_t bytes = strcspn(at, ":");
    if (bytes > 0) keep_first_status(&status, load_list_item(at, bytes));
    at += bytes + (at[bytes] == ':');
  }
  return status;
}

int prof_backend_load(const char *paths) {
  PROF_I_REFUSE_INTERRUPTED(PROF_E_BUSY);
  if (!paths || !*paths)
    return prof_i_fail(PROF_E_INVALID, "prof_backend_load: paths is %s", paths ? "empty" : "NULL");
  prof_i_registry_prepare();
  return prof_i_plugins_load(paths);
}
