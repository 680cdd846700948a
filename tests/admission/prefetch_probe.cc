// Compiled, never run: prefetch_test.cmake looks at the code. g++ 12 takes functions that only
// prefetch for functions without effect and drops their calls, so the probe goes through one.
#include "admission/two_generation_filter.h"

using secondsight::admission::Fingerprint;
using secondsight::admission::TwoGenerationFilter;

extern "C" {

[[gnu::noinline]] void probe_wrapper(const TwoGenerationFilter& filter, const Fingerprint& key) {
  filter.prefetch(key);
}

void probe_caller(const TwoGenerationFilter& filter, const Fingerprint& first,
                  const Fingerprint& second) {
  probe_wrapper(filter, first);
  probe_wrapper(filter, second);
}

}  // extern "C"
