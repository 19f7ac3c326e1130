#!/usr/bin/env bash
# What prof doctor says if CUDA does not begin, and of devices that do not tell all. It runs on
# emulated libraries (vendors: no device is behind them). It must say why, with values, and what to
# do, and write nothing to stderr.
set -uo pipefail
build=$(realpath "${PROF_TEST_BUILD_DIR:-build/dev}")
prof=$build/prof vendors=${PROF_TEST_PLUGIN_DIR:-$build/tests/device}/vendors
skip() { echo "skip: $1"; exit 77; }
fail() { echo "$1"; exit 1; }
[ -x "$prof" ] || skip "$prof was not built"
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# usage: doctor [NAME=VALUE...]      its words in $work/said
doctor() {
  env LD_LIBRARY_PATH="$vendors" "$@" "$prof" doctor >"$work/said" 2>"$work/err" ||
    fail "prof doctor: $(cat "$work/err")"
  [ -s "$work/err" ] && fail "prof doctor writes to stderr: $(cat "$work/err")"
  return 0
}
# usage: says BACK-END TEXT
says() {
  sed -n "/^$1 /,/^[^ ]/p" "$work/said" | grep -F "$2" >/dev/null ||
    fail "of $1 it does not say '$2': $(cat "$work/said")"
}

doctor
says recording: "recording: works"
says cuda "works"
says cuda "reads the clock of its records, not of its scopes, whose times are found by bounds"
echo "ok: CUDA begins"

doctor EMULATED_CUDA_INIT_ERROR=803
says cuda "does not work"
mismatch="CUDA_ERROR_SYSTEM_DRIVER_MISMATCH (803), system has unsupported display driver"
says cuda "cuInit: $mismatch / cuda driver combination"
says cuda "the kernel's module is of another release than libcuda.so.1. Restart the machine"
doctor EMULATED_CUDA_INIT_ERROR=804
says cuda "cuInit: CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE (804)"
says cuda "cuda-compat serves data centres' devices alone"
for error in 34 100 802 999 7; do
  doctor EMULATED_CUDA_INIT_ERROR=$error
  says cuda "cuInit: an error ($error)"
  says cuda "what to do"
done
echo "ok: why CUDA does not begin, and what to do"

# a file of 1024 bytes: no room for a capture
(ulimit -f 1 && LD_LIBRARY_PATH=$vendors exec "$prof" doctor 2>&1) | cat >"$work/said"
status=${PIPESTATUS[0]}
[ "$status" -eq 3 ] ||
  fail "where nothing can be recorded it ends with $status: $(cat "$work/said")"
says recording: "does not work"
says recording: "RLIMIT_FSIZE of 1024 bytes leaves no room to record"
LD_LIBRARY_PATH=/nowhere PROF_SYSFS_ROOT="$work/nothing" "$prof" doctor >"$work/said" ||
  fail "without a device it ends with $?: $(cat "$work/said")"
says recording: "recording: works"
echo "ok: the exit status is 3 where nothing can be recorded, and 0 without a device"

mkdir -p "$work/kfd/dev/dri" "$work/hip"
touch "$work/kfd/dev/kfd" "$work/kfd/dev/dri/renderD128"
cp "$vendors/libamdhip64.so.6" "$work/hip"
for round in 1 2 3; do # it does not depend on which thread is first
  doctor PROF_SYSFS_ROOT="$work/kfd"
  says hip "works"
  says hip "devices      hip (type 10)"
  says amdgpu "devices      hip (type 10)"
  says hip "ROCP_TOOL_LIBRARIES="
  doctor PROF_SYSFS_ROOT="$work/kfd" LD_LIBRARY_PATH="$work/hip"
  says hip "works"
  needed="install rocprofiler-sdk (ROCm 6.2 or later): librocprofiler-sdk.so.1 and .0 are not there"
  says hip "records no kernels by itself: $needed; the older roctracer is not used."
  grep -q ROCP_TOOL_LIBRARIES= "$work/said" &&
    fail "round $round: a way to kernels that it has none of: $(cat "$work/said")"
done
echo "ok: HIP, with and without rocprofiler"

card=$work/root/sys/class/drm/card0/device
mkdir -p "$card/hwmon/hwmon1"
echo 0x1002 >"$card/vendor"
echo PCI_SLOT_NAME=0000:0c:00.1 >"$card/uevent"
echo 1024 >"$card/mem_info_vram_used"
echo 0 >"$card/hwmon/hwmon1/power1_average"
doctor PROF_SYSFS_ROOT="$work/root" PROF_BACKEND_ROCM_SMI="$work/nothing.so"
power="device 0 tells no power: a second die, whose board's first tells both's"
says amdgpu "but          $power; it tells no energy: $work/nothing.so: cannot open"
echo "ok: a second die, and no energy"

mkdir "$work/cut"
head -c 4096 "$vendors/libcuda.so.1" >"$work/cut/libcuda.so.1"
LD_LIBRARY_PATH="$work/cut:$vendors" "$prof" doctor >"$work/said" 2>"$work/err"
status=$?
[ $status -eq 1 ] ||
  fail "prof doctor with a library that is cut off ends with $status: $(cat "$work/err")"
grep -qF "is cut off: its file is shorter than its headers say" "$work/err" ||
  fail "it does not say that a library is cut off: $(cat "$work/err")"
echo "ok: a library that is cut off"
