/* The columns of a packed extent. A column is a sequence of small numbers with the same meaning.
   Only pack.c and unpack.c use them.

   A family of values has up to nine columns. The first column has one byte for each value: the
   value if it is below 252, otherwise a code for its number of bytes. The bytes are in the other
   columns, the lowest byte in the first of them. */
#ifndef PROF_FORMAT_PACKED_COLUMNS_H
#define PROF_FORMAT_PACKED_COLUMNS_H

#include <string.h>

#include "packed.h"

typedef enum prof_i_family {
  PROF_I_FAMILY_LEAF_GAP,
  PROF_I_FAMILY_LEAF_DURATION,
  PROF_I_FAMILY_PARENT_GAP,
  PROF_I_FAMILY_PARENT_LEAD, /* begin of the first child minus the scope's begin */
  PROF_I_FAMILY_EVENT_GAP,   /* of memory records, which have one time */
  PROF_I_FAMILY_RESIDUAL,    /* of times: see PROF_I_RESIDUALS_MAX */
  PROF_I_FAMILY_CHILDREN,
  PROF_I_FAMILY_PAYLOAD, /* numbers of payloads */
  PROF_I_FAMILY_WORD,    /* words of new payloads */
  PROF_I_FAMILY_SIZE,    /* size of an allocation */
  PROF_I_FAMILY_WASTE,
  PROF_I_FAMILY_AGE, /* of freed allocations: the number of later allocations */
  PROF_I_FAMILY_ADDRESS,
  PROF_I_FAMILY_COUNTER,
  PROF_I_FAMILY_MORE,
  PROF_I_FAMILY_COUNT
} prof_i_family;

/* The other columns. */
enum {
  PROF_I_FAMILY_COLUMNS = 9,
  PROF_I_COLUMN_TYPE = PROF_I_FAMILY_COUNT * PROF_I_FAMILY_COLUMNS, /* kind, children */
  PROF_I_COLUMN_SITE, /* three: low, middle and high bits */
  PROF_I_COLUMN_RAW = PROF_I_COLUMN_SITE + 3,
  PROF_I_COLUMN_COUNT
};

/* The most bytes of a column: three residuals of a scope of 16 bytes. A payload has fewer words. */
enum {
  PROF_I_COLUMN_BYTES_MAX = PROF_I_PACKED_PLAIN_MAX / 16 * 3,
  PROF_I_RAW_BYTES_MAX = PROF_I_PACKED_PLAIN_MAX * 2
};

/* Zeros behind the end of a family's first column, after prof_i_columns_read(). */
enum { PROF_I_COLUMN_PADDING = 256 };

/* If both residuals of a scope are below PROF_I_RESIDUALS_MAX, they share one value: begin in the
   low 4 bits, end above. Otherwise the value is PROF_I_RESIDUALS_LARGE, and two separate values
   follow. */
enum { PROF_I_RESIDUALS_MAX = 15, PROF_I_RESIDUALS_LARGE = 15 };

/* First bytes of values of 2, 4, 6 and 8 bytes. */
enum { PROF_I_VALUE_2 = 252, PROF_I_VALUE_4 = 253, PROF_I_VALUE_6 = 254, PROF_I_VALUE_8 = 255 };

/* How a column is stored. */
typedef enum prof_i_column_method {
  PROF_I_COLUMN_STORED,
  PROF_I_COLUMN_CONSTANT, /* one byte: all bytes of the column are equal */
  PROF_I_COLUMN_ZSTD
} prof_i_column_method;

typedef struct prof_i_column_head {
  uint8_t column, method;
  uint16_t spare;
  uint32_t count;  /* bytes of the column */
  uint32_t stored; /* bytes in the extent */
} prof_i_column_head;
_Static_assert(sizeof(prof_i_column_head) == 12, "as in the file");

/* `at`: the next byte to write while packing, or to read while unpacking. */
typedef struct prof_i_column {
  uint8_t *first, *at, *end;
} prof_i_column;

typedef struct prof_i_columns {
  prof_i_column columns[PROF_I_COLUMN_COUNT];
  uint8_t *memory;
  bool is_short; /* a read went past the end of a column */
} prof_i_columns;

bool prof_i_columns_init(prof_i_columns *columns);
void prof_i_columns_fini(prof_i_columns *columns);
void prof_i_columns_clear(prof_i_columns *columns);

/* The most bytes that prof_i_columns_write() writes. */
size_t prof_i_columns_room(void);
/* Writes all columns that are not empty. Returns their number. */
uint32_t prof_i_columns_write(const prof_i_columns *columns, prof_i_zstd *zstd, uint8_t *to,
                              size_t *bytes_out);
prof_i_unpacked prof_i_columns_read(prof_i_columns *columns, prof_i_zstd *zstd, const uint8_t *from,
                                    size_t bytes, uint32_t column_count);
/* Whether each column was read exactly to its end. */
bool prof_i_columns_are_read(const prof_i_columns *columns);

/* ---- values ---- */

static inline uint64_t prof_i_zigzag(uint64_t value) { return value << 1 ^ -(value >> 63); }
static inline uint64_t prof_i_unzigzag(uint64_t value) { return value >> 1 ^ -(value & 1); }

static inline void prof_i_put_bytes(prof_i_column *planes, uint64_t value, int count) {
  for (int i = 0; i < count; i++) *planes[i].at++ = (uint8_t)(value >> 8 * i);
}

/* Of a value from PROF_I_VALUE_2 on: its number of bytes, and the code for that number. */
static inline int prof_i_value_bytes(uint64_t value) {
  return value >> 48 ? 8 : value >> 32 ? 6 : value >> 16 ? 4 : 2;
}
static inline uint8_t prof_i_value_code(int bytes) {
  return (uint8_t)(PROF_I_VALUE_2 + bytes / 2 - 1);
}

static inline void prof_i_put_large_value(prof_i_column *family, uint64_t value) {
  const int bytes = prof_i_value_bytes(value);
  *family->at++ = prof_i_value_code(bytes);
  prof_i_put_bytes(family + 1, value, bytes);
}

static inline void prof_i_put_value(prof_i_columns *columns, prof_i_family which, uint64_t value) {
  prof_i_column *const family = &columns->columns[which * PROF_I_FAMILY_COLUMNS];
  if (__builtin_expect(value < PROF_I_VALUE_2, 1))
    *family->at++ = (uint8_t)value;
  else
    prof_i_put_large_value(family, value);
}

/* Returns 0 past the end. */
static inline uint8_t prof_i_take_byte(prof_i_columns *columns, int which) {
  prof_i_column *const column = &columns->columns[which];
  if (__builtin_expect(column->at < column->end, 1)) return *column->at++;
  columns->is_short = true;
  return 0;
}

/* The value with this code, which is from PROF_I_VALUE_2 on. first: the family's first column. */
static inline uint64_t prof_i_take_large_value(prof_i_columns *columns, int first, uint8_t code) {
  const int bytes = (code - PROF_I_VALUE_2 + 1) * 2;
  uint64_t value = 0;
  for (int i = 0; i < bytes; i++)
    value |= (uint64_t)prof_i_take_byte(columns, first + 1 + i) << 8 * i;
  return value;
}

static inline uint64_t prof_i_take_value(prof_i_columns *columns, prof_i_family which) {
  const int first = (int)which * PROF_I_FAMILY_COLUMNS;
  const uint8_t byte = prof_i_take_byte(columns, first);
  if (__builtin_expect(byte < PROF_I_VALUE_2, 1)) return byte;
  return prof_i_take_large_value(columns, first, byte);
}

static inline void prof_i_put_raw(prof_i_columns *columns, const uint64_t *words, uint64_t count) {
  prof_i_column *const raw = &columns->columns[PROF_I_COLUMN_RAW];
  memcpy(raw->at, words, count * 8);
  raw->at += count * 8;
}

/* False: fewer words are left, and `words` is set to zeros. */
static inline bool prof_i_take_raw(prof_i_columns *columns, uint64_t *words, uint64_t count) {
  prof_i_column *const raw = &columns->columns[PROF_I_COLUMN_RAW];
  if ((uint64_t)(raw->end - raw->at) < count * 8) {
    columns->is_short = true;
    memset(words, 0, count * 8);
    return false;
  }
  memcpy(words, raw->at, count * 8);
  raw->at += count * 8;
  return true;
}

#endif
