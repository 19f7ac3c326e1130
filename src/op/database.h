/* Kept results in an SQLite file: one table, a row a result, its samples as they are. Nothing is
   held open between two calls. All return a status, with its text in prof_last_error(). */
#ifndef PROF_OP_DATABASE_H
#define PROF_OP_DATABASE_H

#include "result.h"

/* Is it ours, or can it be made? Makes the table. */
int prof_i_database_check(const char *path);

/* PROF_OK with NULL: it is not there. */
int prof_i_database_find(const char *path, const prof_i_op_identity *identity, const char *key,
                         prof_op_result **result_out);

/* In the place of one of the same identity. */
int prof_i_database_store(const char *path, const prof_op_result *result);

/* Of a device, or all for NULL. */
int prof_i_database_delete(const char *path, const prof_device *device);
int prof_i_database_count(const char *path, const prof_device *device, size_t *count_out);

#endif
