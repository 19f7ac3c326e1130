/* Back ends in shared libraries. */
#ifndef PROF_DEVICE_PLUGIN_H
#define PROF_DEVICE_PLUGIN_H

#include <stdbool.h>

/* Is this thread in the midst of it: in a plug-in's own code? */
bool prof_i_plugins_is_loading(void);

/* Loads and lists what these paths name: see prof_backend_load(). */
int prof_i_plugins_load(const char *paths);

#endif
