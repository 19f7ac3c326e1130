/* What the tests of examples/minilm share: the model, the reference data and temporary files.
   Functions in a header, for every .c file of this folder is a test of its own. Include it behind
   cmocka.h. SPDX-License-Identifier: MIT */
#ifndef TESTS_MINILM_DATA_H
#define TESTS_MINILM_DATA_H

#include <cjson/cJSON.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

enum { DATA_PATH_BYTES = 4096 };

/* The model of $MINILM_MODEL or the default folder; NULL, with a line that says why and how to get
   it: the test skips. */
__attribute__((unused)) static model *data_open_model(void) {
  char folder[MODEL_PATH_BYTES];
  failure why;
  model *m = NULL;
  if (model_default_folder(folder, &why) == 0 && model_open(folder, &m, &why) == 0) return m;
  printf("skip: no model (%s); examples/minilm/fetch-model.sh fetches it\n", why.text);
  return NULL;
}

/* A file of tests/data, parsed; fails the test if it is not there. The caller deletes it. */
__attribute__((unused)) static cJSON *data_read_json(const char *name) {
  char path[DATA_PATH_BYTES];
  const char *root = getenv("PROF_TEST_SOURCE_DIR");
  snprintf(path, sizeof path, "%s/tests/data/%s", root == NULL ? "." : root, name);
  FILE *stream = fopen(path, "rb");
  if (stream == NULL) fail_msg("%s cannot be opened", path);
  fseek(stream, 0, SEEK_END);
  const long size = ftell(stream);
  rewind(stream);
  char *text = malloc((size_t)size);
  assert_non_null(text);
  assert_int_equal(fread(text, 1, (size_t)size, stream), size);
  fclose(stream);
  cJSON *json = cJSON_ParseWithLength(text, (size_t)size);
  free(text);
  if (json == NULL) fail_msg("%s is not JSON", path);
  return json;
}

/* Writes the bytes to a new temporary file; its path goes to path_out. The caller removes it. */
__attribute__((unused)) static void data_write_file(const void *bytes, size_t count,
                                                    char path_out[DATA_PATH_BYTES]) {
  const char *folder = getenv("TMPDIR");
  snprintf(path_out, DATA_PATH_BYTES, "%s/minilm-test-XXXXXX", folder == NULL ? "/tmp" : folder);
  const int descriptor = mkstemp(path_out);
  assert_true(descriptor >= 0);
  assert_int_equal(write(descriptor, bytes, count), (ssize_t)count);
  close(descriptor);
}

#endif
