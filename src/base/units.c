/* See units.h. */
#include "units.h"

#include <stdio.h>
#include <string.h>

/* Thousandths of a unit, rounded. */
static int put_thousandths(char *to, size_t room, uint64_t ns, uint64_t unit_ns, const char *unit) {
  const uint64_t step = unit_ns / 1000;
  const uint64_t thousandths = ns / step + (ns % step * 2 >= step && step > 1);
  return snprintf(to, room, "%llu.%03llu%s", (unsigned long long)(thousandths / 1000),
                  (unsigned long long)(thousandths % 1000), unit);
}

int prof_i_put_time(char *to, size_t room, uint64_t ns, uint32_t unit) {
  if (unit == 9) return snprintf(to, room, "%lluns", (unsigned long long)ns);
  if (unit == 6 || (unit == 0 && ns < 1000000)) return put_thousandths(to, room, ns, 1000, "us");
  if (unit == 3 || ns < 1000000000) return put_thousandths(to, room, ns, 1000000, "ms");
  return put_thousandths(to, room, ns, 1000000000, "s");
}

int prof_i_put_share(char *to, size_t room, uint64_t part, uint64_t all) {
  /* a damaged capture has parts past all bounds */
  const double percent = all ? (double)part / (double)all * 100 : 0, most = 1e15;
  const unsigned long long hundredths =
      (unsigned long long)((percent < most ? percent : most) * 100 + 0.5);
  return snprintf(to, room, "%llu.%02llu%%", hundredths / 100, hundredths % 100);
}

int prof_i_put_device(char *to, size_t room, prof_device device) {
  static const struct {
    int32_t type;
    const char *name;
  } names[] = {{PROF_DEVICE_CPU, "cpu"},         {PROF_DEVICE_CUDA, "cuda"},
               {PROF_DEVICE_OPENCL, "opencl"},   {PROF_DEVICE_VULKAN, "vulkan"},
               {PROF_DEVICE_METAL, "metal"},     {PROF_DEVICE_ROCM, "hip"},
               {PROF_DEVICE_EXT_DEV, "ext_dev"}, {PROF_DEVICE_ONEAPI, "oneapi"}};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (names[i].type == device.type)
      return snprintf(to, room, "%s:%d", names[i].name, device.index);
  return snprintf(to, room, "%d:%d", device.type, device.index);
}

static uint64_t magnitude_of(int64_t bytes) {
  return bytes < 0 ? 0 - (uint64_t)bytes : (uint64_t)bytes;
}

int prof_i_put_bytes(char *to, size_t room, int64_t bytes) {
  static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
  const uint64_t size = magnitude_of(bytes);
  const char *const sign = bytes < 0 ? "-" : "";
  if (size < 1024) return snprintf(to, room, "%s%llu B", sign, (unsigned long long)size);
  uint64_t hundredths = 0;
  uint32_t unit = 0;
  do { /* the first unit of which there are less than 1024, rounded */
    unit++;
    const uint32_t shift = 10 * unit;
    /* in 1024ths of the unit, so that nothing flows over */
    const uint64_t rest = (size & ((UINT64_C(1) << shift) - 1)) >> (shift - 10);
    /* of those again */
    const uint64_t below = shift > 10 ? (size >> (shift - 20)) & 1023 : 0;
    hundredths = (size >> shift) * 100 + (((rest << 10) + below) * 100 + (1 << 19)) / (1 << 20);
  } while (hundredths >= 102400 && unit + 1 < sizeof units / sizeof *units);
  return snprintf(to, room, "%s%llu.%02llu %s", sign, (unsigned long long)(hundredths / 100),
                  (unsigned long long)(hundredths % 100), units[unit]);
}

int prof_i_put_mb(char *to, size_t room, int64_t bytes) {
  const uint64_t size = magnitude_of(bytes), mb = UINT64_C(1) << 20;
  const uint64_t thousandths = size / mb * 1000 + (size % mb * 1000 + mb / 2) / mb;
  return snprintf(to, room, "%s%llu.%03llu", bytes < 0 ? "-" : "",
                  (unsigned long long)(thousandths / 1000),
                  (unsigned long long)(thousandths % 1000));
}

void prof_i_trim_zeros(char *text) {
  char *const point = strchr(text, '.');
  if (!point) return;
  char *const behind = point + 1 + strspn(point + 1, "0123456789"), *end = behind;
  while (end[-1] == '0') end--;
  if (end[-1] == '.') end--;
  memmove(end, behind, strlen(behind) + 1);
}
