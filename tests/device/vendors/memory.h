/* Memory of the emulated devices: it is the host's, behind addresses at which the host finds
   nothing, as with a device of its own. */
#ifndef TESTS_DEVICE_VENDORS_MEMORY_H
#define TESTS_DEVICE_VENDORS_MEMORY_H

#include <stddef.h>
#include <stdint.h>

/* a MiB apart; for_host: pinned or managed, where the host can read and write. 0: there is none */
uint64_t memory_take(size_t bytes, int for_host);
void memory_give_back(uint64_t address);
/* for whoever plays the device; NULL: it is not all in memory that is handed out */
void *memory_behind(uint64_t address, size_t bytes);

/* The same of a kernel's or a product's arguments, where the device would stop the program: so does
   this. NULL is NULL. */
void *memory_of_argument(const void *address);

/* A copy to come, for the stream's thread; NULL: neither address is a device's. */
void *memory_copy_to_come(uint64_t to, uint64_t from, size_t bytes);
void memory_copy(void *to_come);

#endif
