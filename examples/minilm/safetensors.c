/* See safetensors.h. All checks of the file are made once, in safetensors_open(): afterwards each
   entry is known to lie inside the mapping. The JSON header is read by cJSON, whose numbers are
   doubles: exact up to 2^53, and what is larger or not whole is refused. SPDX-License-Identifier:
   MIT */
#define _POSIX_C_SOURCE 200809L

#include "safetensors.h"

#include <cjson/cJSON.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
  LENGTH_BYTES = 8,
  HEADER_BYTES_MAX = 100 * 1000 * 1000, /* the format's own bound */
};

typedef struct entry {
  const char *name; /* cJSON's, lives as long as the header */
  const char *dtype;
  int64_t dims[TENSOR_RANK_MAX];
  int rank;
  size_t begin; /* in the mapping */
} entry;

struct safetensors {
  unsigned char *bytes;
  size_t byte_count;
  size_t data_begin; /* where the header ends */
  cJSON *header;
  entry *entries;
  size_t entry_count;
};

static const struct {
  const char *name;
  size_t bytes;
} dtypes[] = {{"BOOL", 1}, {"U8", 1},  {"I8", 1},  {"F8_E5M2", 1}, {"F8_E4M3", 1},
              {"I16", 2},  {"U16", 2}, {"F16", 2}, {"BF16", 2},    {"I32", 4},
              {"U32", 4},  {"F32", 4}, {"F64", 8}, {"I64", 8},     {"U64", 8}};

/* 0 for an unknown one. */
static size_t dtype_bytes(const char *name) {
  for (size_t i = 0; i < sizeof dtypes / sizeof dtypes[0]; i++)
    if (strcmp(dtypes[i].name, name) == 0) return dtypes[i].bytes;
  return 0;
}

static int map_file(const char *path, safetensors *file, failure *why) {
  const int descriptor = open(path, O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) return failure_set(why, "%s: %s", path, strerror(errno));
  struct stat status;
  if (fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(descriptor);
    return failure_set(why, "%s: not a regular file", path);
  }
  if (status.st_size < LENGTH_BYTES) {
    close(descriptor);
    return failure_set(why, "%s: %lld bytes, too short for a safetensors file", path,
                       (long long)status.st_size);
  }
  void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
  const int error = errno;
  close(descriptor);
  if (bytes == MAP_FAILED) return failure_set(why, "%s: mmap: %s", path, strerror(error));
  file->bytes = bytes;
  file->byte_count = (size_t)status.st_size;
  return 0;
}

static int parse_header(const char *path, safetensors *file, failure *why) {
  uint64_t length = 0;
  /* failure_set() returns -1, so the file is mapped. */
  /* NOLINTNEXTLINE(clang-analyzer-core.NullDereference) */
  for (int i = 0; i < LENGTH_BYTES; i++) length |= (uint64_t)file->bytes[i] << (8 * i);
  if (length > file->byte_count - LENGTH_BYTES || length > HEADER_BYTES_MAX)
    return failure_set(why, "%s: header length %llu does not fit the file's %zu bytes", path,
                       (unsigned long long)length, file->byte_count);
  file->header = cJSON_ParseWithLength((const char *)file->bytes + LENGTH_BYTES, (size_t)length);
  if (!cJSON_IsObject(file->header))
    return failure_set(why, "%s: the header is not a JSON object", path);
  file->data_begin = LENGTH_BYTES + (size_t)length;
  return 0;
}

static bool read_whole_number(const cJSON *item, int64_t *value_out) {
  if (!cJSON_IsNumber(item) || !(item->valuedouble >= 0 && item->valuedouble < 9007199254740992.0))
    return false;
  *value_out = (int64_t)item->valuedouble;
  return (double)*value_out == item->valuedouble;
}

static int read_shape(const cJSON *shape, entry *e, size_t *element_count_out, failure *why) {
  if (!cJSON_IsArray(shape)) return failure_set(why, "tensor %s: no shape", e->name);
  const cJSON *dim;
  size_t count = 1;
  cJSON_ArrayForEach(dim, shape) {
    if (e->rank == TENSOR_RANK_MAX)
      return failure_set(why, "tensor %s: more than %d dimensions", e->name, TENSOR_RANK_MAX);
    int64_t n;
    if (!read_whole_number(dim, &n))
      return failure_set(why, "tensor %s: a dimension is not a whole number", e->name);
    if (__builtin_mul_overflow(count, (size_t)n, &count))
      return failure_set(why, "tensor %s: its element count overflows", e->name);
    e->dims[e->rank++] = n;
  }
  *element_count_out = count;
  return 0;
}

static int read_offsets(const cJSON *offsets, const safetensors *file, entry *e, size_t want_bytes,
                        failure *why) {
  int64_t begin, end;
  if (cJSON_GetArraySize(offsets) != 2 ||
      !read_whole_number(cJSON_GetArrayItem(offsets, 0), &begin) ||
      !read_whole_number(cJSON_GetArrayItem(offsets, 1), &end))
    return failure_set(why, "tensor %s: data_offsets are not two whole numbers", e->name);
  const size_t data_bytes = file->byte_count - file->data_begin;
  if (begin > end || (uint64_t)end > data_bytes)
    return failure_set(why, "tensor %s: data_offsets [%lld, %lld] do not fit the %zu bytes of data",
                       e->name, (long long)begin, (long long)end, data_bytes);
  if ((size_t)(end - begin) != want_bytes)
    return failure_set(why, "tensor %s: data_offsets span %lld bytes, dtype and shape need %zu",
                       e->name, (long long)(end - begin), want_bytes);
  e->begin = file->data_begin + (size_t)begin;
  return 0;
}

static int read_entry(const cJSON *item, const safetensors *file, entry *e, failure *why) {
  e->name = item->string;
  e->dtype = cJSON_GetStringValue(cJSON_GetObjectItemCaseSensitive(item, "dtype"));
  if (e->dtype == NULL) return failure_set(why, "tensor %s: no dtype", e->name);
  const size_t element_bytes = dtype_bytes(e->dtype);
  if (element_bytes == 0) return failure_set(why, "tensor %s: unknown dtype %s", e->name, e->dtype);
  size_t count = 0, bytes = 0;
  if (read_shape(cJSON_GetObjectItemCaseSensitive(item, "shape"), e, &count, why) != 0) return -1;
  if (__builtin_mul_overflow(count, element_bytes, &bytes))
    return failure_set(why, "tensor %s: its size overflows", e->name);
  if (read_offsets(cJSON_GetObjectItemCaseSensitive(item, "data_offsets"), file, e, bytes, why) !=
      0)
    return -1;
  if (e->begin % element_bytes != 0)
    return failure_set(why, "tensor %s: its data is not aligned to %zu bytes", e->name,
                       element_bytes);
  return 0;
}

static int read_entries(safetensors *file, failure *why) {
  const size_t item_count = (size_t)cJSON_GetArraySize(file->header);
  file->entries = calloc(item_count + 1, sizeof *file->entries);
  if (file->entries == NULL)
    return failure_set(why, "no memory for %zu tensor entries", item_count);
  const cJSON *item;
  cJSON_ArrayForEach(item, file->header) {
    if (strcmp(item->string, "__metadata__") == 0) continue;
    if (read_entry(item, file, &file->entries[file->entry_count], why) != 0) return -1;
    file->entry_count++;
  }
  return 0;
}

static void print_shape(char *text, size_t bytes, int rank, const int64_t *dims) {
  size_t used = 0;
  text[0] = '\0';
  for (int i = 0; i < rank && used < bytes; i++) {
    const int n =
        snprintf(text + used, bytes - used, i == 0 ? "%lld" : ", %lld", (long long)dims[i]);
    if (n > 0) used += (size_t)n;
  }
}

static int check_shape(const entry *e, int rank, const int64_t *dims, failure *why) {
  if (e->rank == rank && memcmp(e->dims, dims, (size_t)rank * sizeof dims[0]) == 0) return 0;
  char has[96], want[96];
  print_shape(has, sizeof has, e->rank, e->dims);
  print_shape(want, sizeof want, rank, dims);
  return failure_set(why, "tensor %s has shape [%s], the model wants [%s]", e->name, has, want);
}

int safetensors_open(const char *path, safetensors **file_out, failure *why) {
  safetensors *file = calloc(1, sizeof *file);
  if (file == NULL) return failure_set(why, "%s: no memory", path);
  if (map_file(path, file, why) != 0 || parse_header(path, file, why) != 0 ||
      read_entries(file, why) != 0) {
    safetensors_close(file);
    return -1;
  }
  *file_out = file;
  return 0;
}

void safetensors_close(safetensors *file) {
  if (file == NULL) return;
  if (file->bytes != NULL) munmap(file->bytes, file->byte_count);
  cJSON_Delete(file->header);
  free(file->entries);
  free(file);
}

int safetensors_get(const safetensors *file, const char *name, int rank, const int64_t *dims,
                    tensor *tensor_out, failure *why) {
  for (size_t i = 0; i < file->entry_count; i++) {
    const entry *e = &file->entries[i];
    if (strcmp(e->name, name) != 0) continue;
    if (strcmp(e->dtype, "F32") != 0)
      return failure_set(why, "tensor %s has dtype %s, the runtime computes in F32", name,
                         e->dtype);
    if (check_shape(e, rank, dims, why) != 0) return -1;
    *tensor_out = (tensor){.rank = rank, .data = (float *)(void *)(file->bytes + e->begin)};
    memcpy(tensor_out->dims, dims, (size_t)rank * sizeof dims[0]);
    return 0;
  }
  return failure_set(why, "the model file has no tensor %s", name);
}
