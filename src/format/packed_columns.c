/* See packed_columns.h: allocates, writes and reads columns. */
#include "packed_columns.h"

#include <stdlib.h>

static size_t column_room(int column) {
  return column == PROF_I_COLUMN_RAW ? PROF_I_RAW_BYTES_MAX : PROF_I_COLUMN_BYTES_MAX;
}

static const size_t all_columns_room =
    (size_t)PROF_I_COLUMN_RAW * PROF_I_COLUMN_BYTES_MAX + PROF_I_RAW_BYTES_MAX;

/* Only used columns have memory pages. With calloc() all would have them from the second capture of
   a process on: malloc() then reuses the memory, and calloc() clears it. */
bool prof_i_columns_init(prof_i_columns *columns) {
  const size_t padding = (size_t)PROF_I_COLUMN_COUNT * PROF_I_COLUMN_PADDING;
  *columns = (prof_i_columns){.memory = malloc(all_columns_room + padding)};
  if (!columns->memory) return false;
  uint8_t *at = columns->memory;
  for (int i = 0; i < PROF_I_COLUMN_COUNT; at += column_room(i) + PROF_I_COLUMN_PADDING, i++)
    columns->columns[i].first = at;
  prof_i_columns_clear(columns);
  return true;
}

void prof_i_columns_fini(prof_i_columns *columns) { free(columns->memory); }

void prof_i_columns_clear(prof_i_columns *columns) {
  columns->is_short = false;
  for (int i = 0; i < PROF_I_COLUMN_COUNT; i++)
    columns->columns[i].at = columns->columns[i].end = columns->columns[i].first;
}

size_t prof_i_columns_room(void) {
  return all_columns_room + PROF_I_COLUMN_COUNT * sizeof(prof_i_column_head);
}

static bool is_constant(const uint8_t *bytes, size_t count) {
  return memcmp(bytes, bytes + 1, count - 1) == 0;
}

static prof_i_column_head write_column(const prof_i_column *column, prof_i_zstd *zstd,
                                       uint8_t *to) {
  enum { WORTH_PACKING = 32 };
  const size_t count = (size_t)(column->at - column->first);
  prof_i_column_head head = {.count = (uint32_t)count};
  if (is_constant(column->first, count)) {
    *to = *column->first;
    head.method = PROF_I_COLUMN_CONSTANT;
    head.stored = 1;
    return head;
  }
  if (zstd && count >= WORTH_PACKING) {
    head.stored = (uint32_t)prof_i_zstd_compress(zstd, to, count - 1, column->first, count);
    head.method = PROF_I_COLUMN_ZSTD;
    if (head.stored) return head;
  }
  memcpy(to, column->first, count);
  head.stored = (uint32_t)count;
  head.method = PROF_I_COLUMN_STORED;
  return head;
}

uint32_t prof_i_columns_write(const prof_i_columns *columns, prof_i_zstd *zstd, uint8_t *to,
                              size_t *bytes_out) {
  uint8_t *at = to;
  uint32_t count = 0;
  for (int i = 0; i < PROF_I_COLUMN_COUNT; i++) {
    const prof_i_column *const column = &columns->columns[i];
    if (column->at == column->first) continue;
    prof_i_column_head head = write_column(column, zstd, at + sizeof head);
    head.column = (uint8_t)i;
    memcpy(at, &head, sizeof head);
    at += sizeof head + head.stored;
    count++;
  }
  *bytes_out = (size_t)(at - to);
  return count;
}

static prof_i_unpacked read_column(prof_i_column *column, prof_i_zstd *zstd,
                                   const prof_i_column_head *head, const uint8_t *from) {
  switch ((prof_i_column_method)head->method) {
    case PROF_I_COLUMN_STORED:
      if (head->stored != head->count) return PROF_I_UNPACK_DAMAGED;
      memcpy(column->first, from, head->count);
      break;
    case PROF_I_COLUMN_CONSTANT:
      if (head->stored != 1) return PROF_I_UNPACK_DAMAGED;
      memset(column->first, *from, head->count);
      break;
    case PROF_I_COLUMN_ZSTD:
      if (!zstd) return PROF_I_UNPACK_NEEDS_ZSTD;
      if (!prof_i_zstd_decompress(zstd, column->first, head->count, from, head->stored))
        return PROF_I_UNPACK_DAMAGED;
      break;
    default: /* an unknown method in the file */
      return PROF_I_UNPACK_DAMAGED;
  }
  column->end = column->first + head->count;
  return PROF_I_UNPACKED;
}

prof_i_unpacked prof_i_columns_read(prof_i_columns *columns, prof_i_zstd *zstd, const uint8_t *from,
                                    size_t bytes, uint32_t column_count) {
  prof_i_columns_clear(columns);
  for (uint32_t i = 0; i < column_count; i++) {
    prof_i_column_head head;
    if (bytes < sizeof head) return PROF_I_UNPACK_DAMAGED;
    memcpy(&head, from, sizeof head);
    from += sizeof head;
    bytes -= sizeof head;
    if (head.column >= PROF_I_COLUMN_COUNT || head.stored > bytes ||
        head.count > column_room(head.column))
      return PROF_I_UNPACK_DAMAGED;
    /* A column may occur only once. Otherwise a few bytes of a file could cost much time. */
    if (columns->columns[head.column].end != columns->columns[head.column].first)
      return PROF_I_UNPACK_DAMAGED;
    const prof_i_unpacked result = read_column(&columns->columns[head.column], zstd, &head, from);
    if (result != PROF_I_UNPACKED) return result;
    from += head.stored;
    bytes -= head.stored;
  }
  for (int i = 0; i < PROF_I_COLUMN_TYPE; i += PROF_I_FAMILY_COLUMNS)
    memset(columns->columns[i].end, 0, PROF_I_COLUMN_PADDING);
  return PROF_I_UNPACKED;
}

bool prof_i_columns_are_read(const prof_i_columns *columns) {
  if (columns->is_short) return false;
  for (int i = 0; i < PROF_I_COLUMN_COUNT; i++)
    if (columns->columns[i].at != columns->columns[i].end) return false;
  return true;
}
