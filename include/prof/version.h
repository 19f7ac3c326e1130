/* Version of the headers. prof_version() returns the library's. SPDX-License-Identifier: MIT */
#ifndef PROF_VERSION_H
#define PROF_VERSION_H

#define PROF_VERSION_MAJOR 0
#define PROF_VERSION_MINOR 1
#define PROF_VERSION_PATCH 0
#define PROF_VERSION_STRING "0.1.0"

#endif
