#include <algorithm>
#include <benchmark/benchmark.h>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "admission/bloom_math.h"
#include "admission/huge_memory.h"
#include "tests/admission/keys.h"
#include "tests/bench/filter_bench.h"
#include "tests/bench/filter_contestant.h"

namespace secondsight::bench {
namespace {

struct alignas(64) Node {
  const Node* next;
};

// One cycle through all lines, in random order.
class Chain {
 public:
  explicit Chain(std::uint64_t bytes) : memory_(bytes) {
    const std::size_t lines = memory_.size_bytes() / sizeof(Node);
    auto* const nodes = static_cast<Node*>(memory_.data());
    std::vector<std::uint32_t> order(lines);
    std::iota(order.begin(), order.end(), std::uint32_t{0});
    std::shuffle(order.begin(), order.end(), std::mt19937_64(admission::test::test_seed()));
    for (std::size_t i = 0; i < lines; ++i) nodes[order[i]].next = &nodes[order[(i + 1) % lines]];
    at_ = nodes;
  }
  // Each repetition goes on where the one before ended: the caches do not know what is next.
  void walk(benchmark::State& state) {
    for (auto _ : state) at_ = at_->next;
    benchmark::DoNotOptimize(at_);
  }

 private:
  admission::HugeMemory memory_;
  const Node* at_ = nullptr;
};

void register_probe(const std::string& name, std::uint64_t bytes) {
  benchmark::RegisterBenchmark(name.c_str(), [chain = std::shared_ptr<Chain>(),
                                              bytes](benchmark::State& state) mutable {
    if (!chain) chain = std::make_shared<Chain>(bytes);
    chain->walk(state);
  })->Iterations(kOperations);
}

}  // namespace

void register_memory_probes(const FilterBenchOptions& options) {
  register_probe("memory/dram", std::uint64_t{512} << 20U);
  register_probe("memory/filter-sized", admission::size_filter(options.keys, kRate).memory_bytes());
}

}  // namespace secondsight::bench
