#pragma once
#include "tests/tidy_test/repository.h"

namespace secondsight::test {

/// Every header has #pragma once.
Findings headers_without_guard(const Repository& repository);

/// Sources and headers stay below 700 lines: one idea each.
Findings files_too_long(const Repository& repository);

/// No tabs (but in Makefiles), no blanks at a line's end, no carriage returns, a newline at the
/// end.
Findings untidy_blanks(const Repository& repository);

/// No notes to oneself; what is left to do is an issue.
Findings notes_to_oneself(const Repository& repository);

/// Every relative link of a Markdown file leads to a file or folder of the repository.
Findings broken_links(const Repository& repository);

/// Names of sources and their folders are in snake_case.
Findings odd_file_names(const Repository& repository);

}  // namespace secondsight::test
