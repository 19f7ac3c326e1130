/* Back ends in shared libraries. */
#ifndef PROF_DEVICE_PLUGIN_H
#define PROF_DEVICE_PLUGIN_H

/* Loads and lists what these paths name: see prof_backend_load(). */
int prof_i_plugins_load(const char *paths);

#endif
