# What every target of ours is compiled with, and how a layer and its tests are declared.
add_library(project_options INTERFACE)
target_compile_features(project_options INTERFACE cxx_std_20)
target_compile_options(project_options INTERFACE
  -Wall -Wextra -Wshadow -Wconversion -Wsign-conversion -Wold-style-cast -Wnon-virtual-dtor
  -Woverloaded-virtual -Wcast-qual
  $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wuseless-cast>
  # g++ 12 sees overlaps and overflows inside std::string at -O2 that are not there (GCC bug 105651,
  # as in "text" + std::string); AddressSanitizer and clang-tidy look for real ones.
  $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict -Wno-array-bounds -Wno-stringop-overflow -Wno-stringop-overread>
  # ... and takes the operator delete that a coroutine frame brings along for a mismatched one (103993).
  $<$<CXX_COMPILER_ID:GNU>:-Wno-mismatched-new-delete>)

set(SECONDSIGHT_SANITIZE "" CACHE STRING "address,undefined | thread | (empty)")
if(SECONDSIGHT_SANITIZE)
  target_compile_options(project_options INTERFACE
    -fsanitize=${SECONDSIGHT_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(project_options INTERFACE -fsanitize=${SECONDSIGHT_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # The instrumented code hides initialisations from g++ (its manual, -fsanitize).
    target_compile_options(project_options INTERFACE -Wno-maybe-uninitialized)
  endif()
  if(SECONDSIGHT_SANITIZE STREQUAL "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(project_options INTERFACE -Wno-tsan)  # fences inside Boost headers
  endif()
endif()

option(SECONDSIGHT_LINT "run clang-tidy on every source of ours" OFF)
if(SECONDSIGHT_LINT)
  find_program(CLANG_TIDY NAMES clang-tidy-14 clang-tidy REQUIRED)
endif()
# By target, because a variable would reach the headers' own check too and tidy each header twice.
function(secondsight_tidy target)
  if(SECONDSIGHT_LINT)
    set_target_properties(${target} PROPERTIES CXX_CLANG_TIDY "${CLANG_TIDY};--quiet")
  endif()
endfunction()

find_program(CCACHE ccache)
if(CCACHE AND NOT SECONDSIGHT_LINT)
  # With the base directory and without a hash of the directory, a second clone hits what the first
  # one compiled. Paths below it become relative, so they are mapped back for messages. A precompiled
  # header is often younger than the compilation that uses it; its times say nothing.
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
    CCACHE_SLOPPINESS=pch_defines,time_macros,include_file_mtime,include_file_ctime
    CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1
    ${CCACHE})
  file(RELATIVE_PATH source_from_build ${PROJECT_BINARY_DIR} ${PROJECT_SOURCE_DIR})
  add_compile_options(-fmacro-prefix-map=${source_from_build}=)
  # ccache looks into precompiled headers only where the preprocessor says that it used one.
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    add_compile_options(-fpch-preprocess)
  endif()
endif()

# secondsight_library(<name> SOURCES .. HEADERS .. DEPS .. [PRIVATE_DEPS ..] [PRECOMPILE ..])
# A layer; DEPS is all that it may see, PRIVATE_DEPS what only its sources include. Each of HEADERS
# must compile alone (checked by the lint preset).
function(secondsight_library name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;HEADERS;DEPS;PRIVATE_DEPS;PRECOMPILE")
  add_library(${name} STATIC ${arg_SOURCES})
  target_sources(${name} PUBLIC
    FILE_SET HEADERS BASE_DIRS ${PROJECT_SOURCE_DIR} FILES ${arg_HEADERS})
  target_link_libraries(${name} PUBLIC ${arg_DEPS} PRIVATE ${arg_PRIVATE_DEPS} project_options)
  secondsight_tidy(${name})
  if(arg_PRECOMPILE AND NOT SECONDSIGHT_LINT)
    target_precompile_headers(${name} PRIVATE ${arg_PRECOMPILE})
  endif()
endfunction()

# secondsight_program(<name> SOURCES .. DEPS ..)
# A program for people: build/PRESET/<name>.
function(secondsight_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;DEPS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} project_options)
  set_target_properties(${name} PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
  secondsight_tidy(${name})
endfunction()

# One precompiled header for all tests: each of its own would cost every test program seconds.
function(secondsight_precompile_tests)
  file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/tests_precompiled.cc CONTENT "")
  add_library(tests_precompiled OBJECT ${PROJECT_BINARY_DIR}/tests_precompiled.cc)
  target_link_libraries(tests_precompiled PRIVATE GTest::gmock project_options)
  target_precompile_headers(tests_precompiled PRIVATE
    <gtest/gtest.h> <gmock/gmock.h> <string> <vector> <memory> <functional>)
endfunction()

# secondsight_test(<name> SOURCES .. DEPS .. [LABELS ..] [TIMEOUT seconds])
# One GoogleTest program of a layer; each TEST becomes a ctest case.
function(secondsight_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "TIMEOUT" "SOURCES;DEPS;LABELS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE ${arg_DEPS} GTest::gmock GTest::gtest_main project_options)
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  secondsight_tidy(${name})
  if(NOT SECONDSIGHT_LINT)
    if(NOT TARGET tests_precompiled)
      secondsight_precompile_tests()
    endif()
    target_precompile_headers(${name} REUSE_FROM tests_precompiled)
  endif()
  if(NOT arg_LABELS)
    set(arg_LABELS unit)
  endif()
  if(NOT arg_TIMEOUT)
    set(arg_TIMEOUT 120)
  endif()
  gtest_discover_tests(${name} DISCOVERY_TIMEOUT 60
    PROPERTIES LABELS "${arg_LABELS}" TIMEOUT ${arg_TIMEOUT})
endfunction()
