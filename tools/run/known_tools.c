/* The tools that `prof run` knows by name. If madengine has the tool, names, variables
   and order are madengine's. docs/reference/madengine.md lists the differences. */
#define _GNU_SOURCE
#include <stdlib.h>
#include <string.h>

#include "stack.h"

enum { VARIABLES_MAX = 6 };

typedef struct known_tool {
  const char *name, *about, *program, *install, *cmd;
  const char *variables[VARIABLES_MAX];
  unsigned parts;
} known_tool;

#define ROCM "install ROCm: https://rocm.docs.amd.com"
#define RTL "install rocm-trace-lite: https://github.com/sunway513/rocm-trace-lite"
#define APT "apt-get install "

/* Marks in a cmd: {output} is the tool's folder NAME_output, {prof} this program, {counters:KIND} a
   file of counters. */
static const known_tool known_tools[] = {
    {"prof", "scopes, memory and devices, by prof itself", NULL, NULL, "", {NULL}, RUN_PART_PROF},

    {"rocprof",
     "AMD: HIP calls, kernels and copies",
     NULL,
     ROCM,
     "{prof} run-rocprof --runtime-trace --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprof_hip_only",
     "AMD: HIP calls",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprof_sys",
     "AMD: HIP and HSA calls, kernels, copies",
     NULL,
     ROCM,
     "{prof} run-rocprof --sys-trace --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_compute",
     "AMD: kernels with counters of arithmetic",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --kernel-trace -i {counters:compute} "
     "--output-format pftrace -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_memory",
     "AMD: kernels, copies, with counters of memory",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --kernel-trace --memory-copy-trace "
     "--memory-allocation-trace -i {counters:memory} --output-format pftrace -d "
     "{output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_communication",
     "AMD: kernels, copies, RCCL",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --hsa-trace --kernel-trace --memory-copy-trace "
     "--rccl-trace --scratch-memory-trace --output-format pftrace -d {output} --",
     {"RCCL_DEBUG=INFO"},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_full",
     "AMD: all that rocprofv3 traces, with counters",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --hsa-trace --kernel-trace --memory-copy-trace "
     "--memory-allocation-trace --rccl-trace --scratch-memory-trace --marker-trace "
     "--runtime-trace -i {counters:full} --output-format pftrace --stats -d {output} "
     "--",
     {"RCCL_DEBUG=INFO", "HSA_ENABLE_SDMA=0"},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_lightweight",
     "AMD: HIP calls and kernels, as JSON",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --kernel-trace --output-format json -d {output} "
     "--",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_agent",
     "AMD: kernels with statistics, as CSV",
     NULL,
     ROCM,
     "{prof} run-rocprof --runtime-trace --stats --kernel-trace --output-format csv -o "
     "rocprofv3_output -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_agent_counter",
     "AMD: the same, with counters of instructions",
     NULL,
     ROCM,
     "{prof} run-rocprof --runtime-trace --stats --kernel-trace --output-format csv -o "
     "rocprofv3_output -i {counters:instructions} -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_perfetto",
     "AMD: kernels and copies for Perfetto",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --kernel-trace --memory-copy-trace "
     "--output-format pftrace -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_api_overhead",
     "AMD: what calls of HIP and HSA cost",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --hsa-trace --marker-trace --runtime-trace "
     "--stats --output-format json -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3_pc_sampling",
     "AMD: samples of where kernels are",
     NULL,
     ROCM,
     "{prof} run-rocprof --hip-trace --kernel-trace --pc-sampling-beta-enabled "
     "--pc-sampling-unit time --pc-sampling-method stochastic --pc-sampling-interval "
     "1000 --output-format pftrace -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rocprofv3",
     "AMD: HIP calls, kernels, copies and markers",
     "rocprofv3",
     ROCM,
     "rocprofv3 --runtime-trace -d {output} --",
     {NULL},
     RUN_PART_COLLECT | RUN_PART_ROCPROF},
    {"rpd",
     "AMD: HIP calls, kernels",
     "runTracer.sh",
     "install rocmProfileData: https://github.com/ROCm/rocmProfileData",
     "runTracer.sh -o {output}/trace.rpd",
     {NULL},
     RUN_PART_COLLECT},
    {"rocm_trace_lite",
     "AMD: kernels, in the lite mode",
     "rtl",
     RTL,
     "rtl trace --mode lite -o {output}/trace.db",
     {"RTL_MODE=lite"},
     RUN_PART_COLLECT},
    {"rocm_trace_lite_default",
     "AMD: kernels, in the default mode",
     "rtl",
     RTL,
     "rtl trace --mode default -o {output}/trace.db",
     {"RTL_MODE=default"},
     RUN_PART_COLLECT},
    {"therock_check",
     "AMD: says whether ROCm comes from TheRock",
     NULL,
     NULL,
     "",
     {NULL},
     RUN_PART_THEROCK},

    {"rocblas_trace",
     "AMD: calls of rocBLAS with their sizes",
     NULL,
     NULL,
     "",
     {"ROCBLAS_LAYER=6"},
     RUN_PART_TRACE},
    {"hipblaslt_trace",
     "AMD: calls of hipBLASLt with their sizes",
     NULL,
     NULL,
     "",
     {"HIPBLASLT_LOG_MASK=32", "HIPBLASLT_LOG_FILE={output}/hipblaslt.%i.log"},
     RUN_PART_TRACE | RUN_PART_LOGS},
    {"miopen_trace",
     "AMD: calls of MIOpen as MIOpenDriver commands",
     NULL,
     NULL,
     "",
     {"MIOPEN_ENABLE_LOGGING_CMD=1"},
     RUN_PART_TRACE},
    {"tensile_trace",
     "AMD: kernels of Tensile by name",
     NULL,
     NULL,
     "",
     {"TENSILE_DB=0x8000"},
     RUN_PART_TRACE},
    {"rccl_trace",
     "AMD: collectives of RCCL with their sizes",
     NULL,
     NULL,
     "",
     {"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,COLL", "RCCL_KERNEL_COLL_TRACE_ENABLE=1",
      "NCCL_DEBUG_FILE={output}/rccl.%h.%p.log"},
     RUN_PART_TRACE | RUN_PART_LOGS},
    {"nccl_trace",
     "NVIDIA: collectives of NCCL with their sizes",
     NULL,
     NULL,
     "",
     {"NCCL_DEBUG=INFO", "NCCL_DEBUG_SUBSYS=INIT,COLL", "NCCL_DEBUG_FILE={output}/nccl.%h.%p.log"},
     RUN_PART_TRACE | RUN_PART_LOGS},

    {"cublas_trace",
     "NVIDIA: calls of cuBLAS with their sizes",
     NULL,
     NULL,
     "",
     {"CUBLAS_LOGINFO_DBG=1", "CUBLAS_LOGDEST_DBG=stderr"},
     RUN_PART_TRACE},
    {"cublaslt_trace",
     "NVIDIA: products of cuBLASLt with their sizes",
     NULL,
     NULL,
     "",
     {"CUBLASLT_LOG_LEVEL=5", "CUBLASLT_LOG_FILE={output}/cublaslt.%i.log"},
     RUN_PART_TRACE | RUN_PART_LOGS},
    {"cudnn_trace",
     "NVIDIA: calls of cuDNN that compute",
     NULL,
     NULL,
     "",
     {"CUDNN_LOGINFO_DBG=1", "CUDNN_LOGDEST_DBG=stderr", "CUDNN_LOGLEVEL_DBG=3"},
     RUN_PART_TRACE},

    {"gpu_info_power_profiler",
     "power of AMD's and NVIDIA's devices over time",
     NULL,
     NULL,
     "",
     {NULL},
     RUN_PART_SAMPLE},
    {"gpu_info_vram_profiler",
     "memory of AMD's and NVIDIA's devices over time",
     NULL,
     NULL,
     "",
     {NULL},
     RUN_PART_SAMPLE},

    {"nsys",
     "NVIDIA: Nsight Systems",
     "nsys",
     "install Nsight Systems: https://developer.nvidia.com/nsight-systems",
     "nsys profile --force-overwrite=true -o {output}/report --",
     {NULL},
     RUN_PART_COLLECT},
    {"ncu",
     "NVIDIA: Nsight Compute, each kernel by itself",
     "ncu",
     "install Nsight Compute: https://developer.nvidia.com/nsight-compute",
     "ncu --force-overwrite -o {output}/report --",
     {NULL},
     RUN_PART_COLLECT},

    {"perf",
     "samples of the processors, with call graphs",
     "perf",
     APT "linux-perf",
     "{prof} run-status perf record -g -q -o {output}/perf.data -- {prof} run-status-of",
     {NULL},
     RUN_PART_COLLECT},
    {"strace",
     "system calls, with times and children",
     "strace",
     APT "strace",
     "strace -f -tt -T -o {output}/strace.txt --",
     {NULL},
     RUN_PART_COLLECT},
    {"valgrind",
     "memory errors, by valgrind's memcheck",
     "valgrind",
     APT "valgrind",
     "valgrind --trace-children=yes --log-file={output}/valgrind.%p.txt --",
     {NULL},
     RUN_PART_COLLECT},
    {"uftrace",
     "calls of functions of programs built with -pg",
     "uftrace",
     APT "uftrace",
     "{prof} run-status uftrace record --force -d {output}/uftrace.data {prof} run-status-of",
     {NULL},
     RUN_PART_COLLECT},
    {"heaptrack",
     "heap memory by call stack",
     "heaptrack",
     APT "heaptrack",
     "heaptrack -o {output}/heaptrack",
     {NULL},
     RUN_PART_COLLECT},
};

static run_tool *registry;
static size_t registry_count;

static run_tool *find_tool(const char *name) {
  for (size_t i = 0; i < registry_count; i++)
    if (strcmp(registry[i].name, name) == 0) return &registry[i];
  return NULL;
}

/* The first use fills the list. */
static void fill_registry(void) {
  if (registry) return;
  registry_count = sizeof known_tools / sizeof *known_tools;
  registry = run_make(registry_count, sizeof *registry);
  for (size_t i = 0; i < registry_count; i++) {
    const known_tool *const k = &known_tools[i];
    registry[i] = (run_tool){.name = k->name,
                             .about = k->about,
                             .program = k->program,
                             .install = k->install,
                             .cmd = k->cmd,
                             .has_marks = true,
                             .parts = k->parts};
    for (size_t v = 0; v < VARIABLES_MAX && k->variables[v]; v++)
      run_words_add(&registry[i].variables, k->variables[v]);
  }
}

const run_tool *run_tools(size_t *count_out) {
  fill_registry();
  *count_out = registry_count;
  return registry;
}

const run_tool *run_tool_find(const char *name) {
  fill_registry();
  return find_tool(name);
}

void run_tools_add(const run_tool *tool) {
  fill_registry();
  run_tool *const old = find_tool(tool->name);
  if (old) {
    *old = *tool;
    return;
  }
  run_tool *const grown = run_grow(registry, registry_count + 1, sizeof *grown);
  registry = grown;
  registry[registry_count++] = *tool;
}
