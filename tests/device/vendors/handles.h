/* Handles of one kind that an emulated driver gives out: those that are gone are used again, the
   last one first, as a driver's come again. The caller holds a lock. */
#ifndef TESTS_DEVICE_VENDORS_HANDLES_H
#define TESTS_DEVICE_VENDORS_HANDLES_H

#include <stddef.h>
#include <stdint.h>

typedef struct handles {
  size_t bytes, room; /* of an object; how many there can be */
  char *first;
  size_t used; /* that ever were */
  uint32_t *gone;
  size_t gone_count;
  unsigned char *is_there;
} handles;

int handles_has(const handles *h, const void *handle);
void *handles_add(handles *h); /* zeroes */
void handles_drop(handles *h, const void *handle);
/* the next one, from NULL on; NULL: there are no more */
void *handles_next(const handles *h, const void *handle);

#endif
