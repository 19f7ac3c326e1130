/* Samples as CSV: see <prof/sampler.h>. POWER and VRAM have the layout of madengine's
   gpu_info_power_profiler and gpu_info_vram_profiler, whose readers go by the columns' titles. */
#define _GNU_SOURCE
#include "internal.h"

#include <stdio.h>
#include <time.h>

static const char *csv_title_of(uint32_t mode) {
  static const char *const titles[] = {[PROF_SAMPLE_POWER] = "Power(Watt)",
                                       [PROF_SAMPLE_VRAM] = "vram(%)",
                                       [PROF_SAMPLE_UTILISATION] = "utilisation(%)",
                                       [PROF_SAMPLE_CLOCK] = "clock(MHz)"};
  return titles[mode];
}

/* One column a device: of two meters of one device's power the first, which is the vendor's own
   figure before what is made of energy. The host's own where there is no other: readers know
   devices alone. */
static bool has_column(const prof_i_meters *meters, uint32_t at) {
  const prof_i_meter *const meter = &meters->all[at];
  for (uint32_t i = 0; i < at; i++)
    if (meters->all[i].source == meter->source &&
        meters->all[i].metric.device == meter->metric.device)
      return false;
  return !meter->is_host || at == 0;
}

void prof_i_csv_head(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode) {
  char cell[64];
  prof_i_sink_text(sink, mode == PROF_SAMPLE_ALL ? "time_ns,meter,unit,value" : "time");
  for (uint32_t i = 0; mode != PROF_SAMPLE_ALL && i < meters->count; i++) {
    if (!has_column(meters, i)) continue;
    const prof_i_meter *const meter = &meters->all[i];
    snprintf(cell, sizeof cell, ",%s %s%u", csv_title_of(mode), meter->is_host ? "host" : "GPU",
             meter->number);
    prof_i_sink_text(sink, cell);
  }
  prof_i_sink_text(sink, "\n");
}

static void put_long_rows(prof_i_sink *sink, const prof_i_meters *meters, uint64_t unix_ns) {
  for (uint32_t i = 0; i < meters->count; i++) {
    const prof_i_meter *const meter = &meters->all[i];
    if (!meter->is_known) continue;
    prof_i_sink_u64(sink, unix_ns);
    prof_i_sink_text(sink, ",");
    prof_i_sink_csv_bare(sink, meter->name);
    prof_i_sink_text(sink, ",");
    prof_i_sink_csv_bare(sink, meter->unit);
    prof_i_sink_text(sink, ",");
    prof_i_sink_double(sink, meter->value);
    prof_i_sink_text(sink, "\n");
  }
}

/* Of memory its share of the device's, where that is known; of a clock MHz. */
static bool meter_value_of(const prof_i_meter *meter, uint32_t mode, double *value_out) {
  *value_out = meter->value;
  if (mode == PROF_SAMPLE_CLOCK) *value_out = meter->value / 1e6;
  if (mode == PROF_SAMPLE_VRAM && meter->memory_bytes)
    *value_out = meter->value * 100 / (double)meter->memory_bytes;
  return meter->is_known && *value_out > -1e15 && *value_out < 1e15 &&
         (mode != PROF_SAMPLE_VRAM || meter->memory_bytes);
}

/* Two decimals, with a point whatever the program's locale has. */
static void put_rounded(char *to, size_t room, double value) {
  const long long cents = (long long)(value * 100 + (value < 0 ? -0.5 : 0.5)),
                  size = cents < 0 ? -cents : cents;
  snprintf(to, room, ",%s%lld.%02lld", cents < 0 ? "-" : "", size / 100, size % 100);
}

static void put_wide_row(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode,
                         uint64_t unix_ns) {
  const time_t seconds = (time_t)(unix_ns / 1000000000);
  struct tm local;
  char cell[64], day[40];
  localtime_r(&seconds, &local);
  strftime(day, sizeof day, "%Y-%m-%d %H:%M:%S", &local);
  snprintf(cell, sizeof cell, "%s.%06u", day, (unsigned)(unix_ns % 1000000000 / 1000));
  prof_i_sink_text(sink, cell);
  for (uint32_t i = 0; i < meters->count; i++) {
    double value;
    if (!has_column(meters, i)) continue;
    if (meter_value_of(&meters->all[i], mode, &value))
      put_rounded(cell, sizeof cell, value);
    else
      snprintf(cell, sizeof cell, ",N/A");
    prof_i_sink_text(sink, cell);
  }
  prof_i_sink_text(sink, "\n");
}

void prof_i_csv_rows(prof_i_sink *sink, const prof_i_meters *meters, uint32_t mode,
                     uint64_t unix_ns) {
  if (mode == PROF_SAMPLE_ALL)
    put_long_rows(sink, meters, unix_ns);
  else
    put_wide_row(sink, meters, mode, unix_ns);
}
