/* What prof gives to back ends: see prof_backend_host of <prof/backend.h>. */
#ifndef PROF_DEVICE_HOST_H
#define PROF_DEVICE_HOST_H

#include <prof/backend.h>

extern const prof_backend_host prof_i_device_host;

#endif
