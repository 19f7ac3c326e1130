/* The emulated vendor's meters, for its table. */
#ifndef TESTS_DEVICE_EMULATED_METERS_H
#define TESTS_DEVICE_EMULATED_METERS_H

#include <prof/backend.h>

int emulated_metric(prof_backend_self *self, uint32_t number, prof_backend_metric *out);
int emulated_sample(prof_backend_self *self, const prof_backend_metric *metrics, uint32_t count,
                    int64_t *values_out, uint64_t *known_out);

#endif
