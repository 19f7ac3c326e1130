/* Does prof_op_profile() agree with Google Benchmark, which others trust? Three of the model's
   operators at the model's shapes, each measured by both in alternation, in the same process and
   minutes, on the same memory.

   Each side measures the same way. A sample is the mean of the same number of runs, one after the
   other, in real time. There it is a repetition of that many iterations, here a sample of that many
   runs (options.exec). The rounds alternate which side is first. Each side's first repetition of a
   round is its warm-up and not counted. The median of all samples has an interval of 95 %: order
   statistics by the sign test, computed here for both series alike. Samples of one round are not
   independent, so the intervals are rather too narrow, which makes the comparison stricter.

   They agree if the intervals overlap or the medians are within 3 %. The median of the rounds' own
   ratios is printed too. BENCH_QUICK=1: fewer rounds.

   usage: agreement [TRIES]
   TRIES: measures again, up to so often, what differed; exits with 1 if it still does.
   SPDX-License-Identifier: MIT */
#include <benchmark/benchmark.h>
#include <prof/op.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "frame.h"

extern "C" {
#include "ops.h"
}

namespace {

constexpr int64_t texts = 1, tokens = 128, hidden = 384, inner = 1536, heads = 12;
constexpr double within = 0.03;
constexpr double sample_us = 5000; /* aimed at: long beside what begins and ends a repetition */
constexpr int samples_a_round = 10, most_runs = 1000;

/* ---- the operators ---- */

struct memory {
  std::vector<float> floats;
  tensor t;
  memory(std::initializer_list<int64_t> dims, float from, float to) : floats(), t() {
    int64_t count = 1;
    for (const int64_t dim : dims) {
      t.dims[t.rank++] = dim;
      count *= dim;
    }
    for (int64_t i = 0; i < count; i++)
      floats.push_back(from + (to - from) * static_cast<float>((i * 7919 + 17) % 1009) / 1009.0f);
    t.data = floats.data();
  }
  memory(const memory &) = delete;
  memory &operator=(const memory &) = delete;
  void restore(const memory &from) {
    std::copy(from.floats.begin(), from.floats.end(), floats.begin());
  }
};

void dense() {
  static const memory x({texts, tokens, hidden}, -1, 1), weight({inner, hidden}, -0.1f, 0.1f),
      bias({inner}, -1, 1);
  static memory out({texts, tokens, inner}, 0, 1);
  op_dense(&x.t, &weight.t, &bias.t, &out.t);
}

/* In place: what is worked on is copied back before each run, on either side. */
void softmax() {
  static const memory input({texts, heads, tokens, tokens}, -4, 4);
  static memory out({texts, heads, tokens, tokens}, 0, 1);
  static const int64_t lengths[texts] = {tokens};
  out.restore(input);
  op_softmax(lengths, &out.t);
}

void layer_norm() {
  static const memory input({texts, tokens, hidden}, -2, 2), weight({hidden}, 0.5f, 1.5f),
      bias({hidden}, -1, 1);
  static memory out({texts, tokens, hidden}, 0, 1);
  out.restore(input);
  op_layer_norm(&weight.t, &bias.t, 1e-12f, &out.t);
}

struct contest {
  const char *key;
  void (*run)();
  int runs; /* a sample */
};

/* ---- the two ---- */

/* Keeps what each repetition took, and prints nothing. */
class keeper : public benchmark::BenchmarkReporter {
 public:
  std::vector<double> us;
  bool ReportContext(const Context &) override { return true; }
  void ReportRuns(const std::vector<Run> &runs) override {
    for (const Run &run : runs)
      if (run.run_type == Run::RT_Iteration && !run.error_occurred)
        us.push_back(run.real_accumulated_time * 1e6 / static_cast<double>(run.iterations));
  }
};

void register_benchmark(const contest &c) {
  void (*const run)() = c.run;
  benchmark::RegisterBenchmark(c.key,
                               [run](benchmark::State &state) {
                                 for (auto _ : state) run();
                               })
      ->Iterations(c.runs)
      ->Repetitions(samples_a_round + 1)
      ->UseRealTime();
}

std::vector<double> by_google_benchmark(const contest &c) {
  keeper kept;
  benchmark::RunSpecifiedBenchmarks(&kept, std::string("^") + c.key + "/");
  FRAME_REQUIRE(kept.us.size() == samples_a_round + 1, "%s: %zu repetitions", c.key,
                kept.us.size());
  kept.us.erase(kept.us.begin());
  return kept.us;
}

int run_once(void *user) {
  static_cast<const contest *>(user)->run();
  return 0;
}

std::vector<double> by_prof(const contest &c) {
  prof_op op = {};
  op.size = sizeof op;
  op.key = c.key;
  op.user = const_cast<contest *>(&c);
  op.run = run_once;
  prof_op_options options = {};
  options.size = sizeof options;
  options.warmup = c.runs;
  options.exec = c.runs;
  options.repeat = samples_a_round;
  options.repeat_all = options.no_reuse = 1;
  options.least_ns = 1;
  options.time_limit_ns = 60000000000;
  prof_op_result *result = nullptr;
  size_t count = 0;
  FRAME_REQUIRE(prof_op_profile(&op, &options, &result) == PROF_OK, "%s: %s", c.key,
                prof_last_error());
  const double *const samples = prof_op_samples(result, &count);
  FRAME_REQUIRE(count == samples_a_round, "%s: %zu samples", c.key, count);
  const std::vector<double> us(samples, samples + count);
  prof_op_result_destroy(result);
  return us;
}

/* ---- medians ---- */

struct estimate {
  double median, low, high;
};

/* Of how many samples from either end the interval begins: of n tosses of a coin, fewer than so
   many heads come in at most 2.5 % of all cases. */
size_t sign_test_rank(size_t n) {
  double share = 0;
  for (size_t k = 0; k < n; k++) {
    const double count = static_cast<double>(n), heads_up = static_cast<double>(k);
    share += std::exp(std::lgamma(count + 1) - std::lgamma(heads_up + 1) -
                      std::lgamma(count - heads_up + 1) - count * std::log(2.0));
    if (share > 0.025) return k;
  }
  return 0;
}

estimate estimate_of(std::vector<double> us) {
  std::sort(us.begin(), us.end());
  const size_t n = us.size(), rank = sign_test_rank(n), from = rank > 0 ? rank - 1 : 0;
  return {(us[(n - 1) / 2] + us[n / 2]) / 2, us[from], us[n - 1 - from]};
}

void append(std::vector<double> &to, const std::vector<double> &from) {
  to.insert(to.end(), from.begin(), from.end());
}

/* ---- the comparison ---- */

/* Runs for a sample of the length aimed at, by the second of two looks: the first fills the
   caches. */
int runs_of(void (*run)()) {
  double us = 0;
  for (int look = 0; look < 2; look++) {
    const double begun = frame_now_ns();
    for (int i = 0; i < 5; i++) run();
    us = (frame_now_ns() - begun) / 5e3;
  }
  return std::clamp(static_cast<int>(sample_us / us + 0.5), 1, most_runs);
}

bool compare(const contest &c, unsigned rounds) {
  std::vector<double> theirs, ours, ratios;
  for (unsigned r = 0; r < rounds; r++) {
    std::vector<double> their_round, our_round;
    if (r % 2 == 0) their_round = by_google_benchmark(c);
    our_round = by_prof(c);
    if (r % 2 == 1) their_round = by_google_benchmark(c);
    ratios.push_back(estimate_of(our_round).median / estimate_of(their_round).median);
    append(theirs, their_round);
    append(ours, our_round);
  }
  const estimate their = estimate_of(theirs), our = estimate_of(ours), ratio = estimate_of(ratios);
  const bool do_overlap = our.low <= their.high && their.low <= our.high;
  const double apart = our.median / their.median - 1;
  const bool do_agree = do_overlap || std::fabs(apart) <= within;
  frame_note(
      "%s: %zu samples each, of %d runs, in %u rounds; the rounds' own ratio %.4f (%.4f-%.4f)",
      c.key, ours.size(), c.runs, rounds, ratio.median, ratio.low, ratio.high);
  frame_promise(c.key, do_agree, "3 %, or overlap",
                "%.1f us (%.1f-%.1f); Google Benchmark %.1f (%.1f-%.1f): %+.2f %%, %s, %s",
                our.median, our.low, our.high, their.median, their.low, their.high, 100 * apart,
                do_overlap ? "overlap" : "no overlap", do_agree ? "agree" : "DIFFER");
  return do_agree;
}

}  // namespace

int main(int argc, char **argv) {
  const int tries = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1;
  contest contests[] = {{"dense f32 128x384x1536", dense, 0},
                        {"softmax f32 12x128x128", softmax, 0},
                        {"layer_norm f32 128x384", layer_norm, 0}};
  bool do_all_agree = true;
  ops_init();
  frame_begin("agreement");
  for (contest &c : contests) {
    c.runs = runs_of(c.run);
    register_benchmark(c);
    bool does_agree = false;
    for (int i = 0; i < tries && !does_agree; i++) does_agree = compare(c, frame_rounds(30));
    do_all_agree = do_all_agree && does_agree;
  }
  return do_all_agree || argc < 2 ? 0 : 1;
}
