// Compiled, never run: sight_test.cmake looks at the code.
#include "admission/two_generation_filter.h"

using secondsight::admission::Fingerprint;
using secondsight::admission::Sighting;
using secondsight::admission::TwoGenerationFilter;

extern "C" {

Sighting probe_sight(TwoGenerationFilter& filter, const Fingerprint& key) {
  return filter.sight(key);
}

Sighting probe_peek(const TwoGenerationFilter& filter, const Fingerprint& key) {
  return filter.peek(key);
}

}  // extern "C"
