#pragma once
#include "tests/tidy_test/repository.h"

namespace secondsight::test {

/// Includes obey the layers: each sees only those below it, and names what it includes by its path
/// from the root.
Findings includes_against_the_layers(const Repository& repository);

/// Beast stays at the rim, where HTTP text becomes facts.
Findings beast_outside_the_rim(const Repository& repository);

/// Folders are the known ones, none is a drawer for odds and ends.
Findings unknown_folders(const Repository& repository);

/// The nearest CMakeLists.txt names each source, test and header, or it is not built or checked.
Findings sources_not_in_cmake(const Repository& repository);

}  // namespace secondsight::test
