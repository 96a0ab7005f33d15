# anemone_library(NAME SOURCES ... LINK ...): the library of one folder, with warnings as errors.
# Include paths start at the top of the repository ("engine/dims.h") or at include/
# ("anemone/tensor.h").
# anemone_test(NAME SOURCES ... LINK ... LABELS ...): one GoogleTest program and one ctest entry.
# Tests with the label `threads` also run under ThreadSanitizer, and those with `emulated` when
# cross-compiling, in CMAKE_CROSSCOMPILING_EMULATOR.

add_library(anemone_options INTERFACE)
target_include_directories(anemone_options INTERFACE ${PROJECT_SOURCE_DIR}
                                                     ${PROJECT_SOURCE_DIR}/include)
target_compile_options(anemone_options INTERFACE -Wall -Wextra -Werror -Wno-sign-compare
                                                 -Wno-missing-field-initializers)
if(NOT CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  # Results must not depend on whether the machine has fused multiply-adds. x86-64 itself has none.
  target_compile_options(anemone_options INTERFACE -ffp-contract=off)
endif()
if(ANEMONE_SANITIZE)
  # AddressSanitizer finds the errors that these three checks look for. Without them compiling takes
  # a third less.
  target_compile_options(anemone_options INTERFACE -fsanitize=${ANEMONE_SANITIZE}
                                                   -fno-sanitize=null,vptr,object-size
                                                   -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(anemone_options INTERFACE -fsanitize=${ANEMONE_SANITIZE})
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # GCC warns of code that only the sanitizers' checks can reach.
    target_compile_options(anemone_options INTERFACE -Wno-error)
  else()
    target_link_options(anemone_options INTERFACE -fuse-ld=lld)  # five times as fast as GNU ld
  endif()
endif()

# Clang's AddressSanitizer build counts which code runs, for the fuzzers of tests/fuzzers. The libraries
# that read what others write also tell them the values that are compared.
set(ANEMONE_FUZZER_COVERAGE "")
if(ANEMONE_SANITIZE MATCHES "address" AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  set(ANEMONE_FUZZER_COVERAGE inline-8bit-counters,pc-table)
endif()
set(libraries_that_read anemone_base anemone_importer anemone_engine anemone_tools)

# Precompiled headers: a target precompiled_NAME with the headers that most sources of some folders
# include. Test programs use the set `tests`, others use `common` unless they name a set.
set(common_headers
  <algorithm> <array> <cmath> <cstdint> <cstring> <functional> <map> <memory> <optional> <set>
  <string> <utility> <variant> <vector> <absl/container/flat_hash_map.h> <absl/status/statusor.h>
  <absl/strings/str_cat.h> <absl/strings/str_format.h> <absl/strings/str_join.h>
  <absl/strings/substitute.h> <absl/types/span.h>)
file(CONFIGURE OUTPUT ${PROJECT_BINARY_DIR}/precompiled.cc CONTENT "int main() {}\n")

function(anemone_precompiled_headers name)
  cmake_parse_arguments(ARG "PROGRAM" "" "HEADERS;LINK" ${ARGN})
  if(ARG_PROGRAM)
    add_executable(precompiled_${name} ${PROJECT_BINARY_DIR}/precompiled.cc)
  else()
    add_library(precompiled_${name} OBJECT ${PROJECT_BINARY_DIR}/precompiled.cc)
  endif()
  target_link_libraries(precompiled_${name} PRIVATE
    anemone_options absl::flat_hash_map absl::statusor absl::str_format absl::strings absl::span
    ${ARG_LINK})
  target_precompile_headers(precompiled_${name} PRIVATE ${common_headers} ${ARG_HEADERS})
  set_target_properties(precompiled_${name} PROPERTIES CXX_COMPILER_LAUNCHER
    "${PROJECT_SOURCE_DIR}/tools/setup/fresh_header;${CMAKE_CXX_COMPILER_LAUNCHER}")
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    # With a timestamp, ccache would treat every build of the header as different.
    target_compile_options(precompiled_${name} PRIVATE "SHELL:-Xclang -fno-pch-timestamp")
  endif()
endfunction()

anemone_precompiled_headers(common)
if(ANEMONE_BUILD_TESTS)
  anemone_precompiled_headers(tests PROGRAM HEADERS <gmock/gmock.h> <gtest/gtest.h>
                              LINK GTest::gmock)
endif()

# PRECOMPILED: the set of precompiled headers, by default `common`; NONE: no precompiled headers.
function(anemone_library name)
  cmake_parse_arguments(ARG "" "PRECOMPILED" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC anemone_options ${ARG_LINK})
  if(ANEMONE_FUZZER_COVERAGE AND NOT name STREQUAL "anemone_math")
    set(coverage ${ANEMONE_FUZZER_COVERAGE})
    if(name IN_LIST libraries_that_read)
      string(APPEND coverage ,trace-cmp)
    endif()
    target_compile_options(${name} PRIVATE -fsanitize-coverage=${coverage})
  endif()
  if(NOT ARG_PRECOMPILED)
    set(ARG_PRECOMPILED common)
  endif()
  if(NOT ARG_PRECOMPILED STREQUAL "NONE")
    target_precompile_headers(${name} REUSE_FROM precompiled_${ARG_PRECOMPILED})
  endif()
endfunction()

# Sanitizer builds are not optimized, because compiling takes longer than running. This function
# optimizes files in which the tests would run long.
function(anemone_optimize_if_sanitized)
  if(ANEMONE_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O1 SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

# Optimizes the files through which every run goes: a run of a small model is mostly their calls.
function(anemone_optimize_runs)
  if(CMAKE_BUILD_TYPE STREQUAL "Release" AND NOT ANEMONE_SANITIZE)
    set_source_files_properties(${ARGN} PROPERTIES COMPILE_OPTIONS -O2 SKIP_PRECOMPILE_HEADERS ON)
  endif()
endfunction()

add_custom_target(thread_tests)

# A sanitizer build compiles the tests only once: it links the objects of the release build, which it
# builds first. Only the code of Anemone itself is instrumented. A sanitizer finds the errors of this
# code in the same way, because it intercepts the allocator and the functions of libc.
set(ANEMONE_TEST_OBJECTS "" CACHE PATH "A build without sanitizers, whose test objects are linked")
define_property(GLOBAL PROPERTY anemone_shared_objects)

# Sets `out` to the objects of the target `name` in ANEMONE_TEST_OBJECTS.
function(anemone_shared_objects out name)
  cmake_path(RELATIVE_PATH CMAKE_CURRENT_BINARY_DIR BASE_DIRECTORY ${PROJECT_BINARY_DIR}
             OUTPUT_VARIABLE folder)
  list(FILTER ARGN INCLUDE REGEX "\\.cc$")
  set(compiled ${ARGN})
  if(CMAKE_UNITY_BUILD)
    list(LENGTH ARGN sources)
    math(EXPR last "(${sources} - 1) / ${CMAKE_UNITY_BUILD_BATCH_SIZE}")
    set(compiled "")
    foreach(number RANGE ${last})
      list(APPEND compiled Unity/unity_${number}_cxx.cxx)
    endforeach()
  endif()
  set(objects "")
  foreach(source ${compiled})
    string(REPLACE "../" "__/" object ${source})
    list(APPEND objects ${ANEMONE_TEST_OBJECTS}/${folder}/CMakeFiles/${name}.dir/${object}.o)
  endforeach()
  set_source_files_properties(${objects} PROPERTIES EXTERNAL_OBJECT ON GENERATED ON)
  set_property(GLOBAL APPEND PROPERTY anemone_shared_objects ${objects})
  set(${out} ${objects} PARENT_SCOPE)
endfunction()

# Must be called after the last test.
function(anemone_build_shared_tests)
  get_property(objects GLOBAL PROPERTY anemone_shared_objects)
  if(objects)
    add_custom_target(release_tests COMMAND ${CMAKE_COMMAND} --build ${ANEMONE_TEST_OBJECTS}
                      BYPRODUCTS ${objects} COMMENT "Building the tests without sanitizers")
  endif()
endfunction()

# anemone_test_objects(NAME SOURCES ... LINK ...): sources that several test programs link.
function(anemone_test_objects name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  if(ANEMONE_TEST_OBJECTS)
    anemone_shared_objects(objects ${name} ${ARG_SOURCES})
    add_library(${name} INTERFACE)
    target_link_libraries(${name} INTERFACE ${objects} anemone_options ${ARG_LINK})
  else()
    add_library(${name} OBJECT ${ARG_SOURCES})
    target_link_libraries(${name} PUBLIC anemone_options ${ARG_LINK})
  endif()
endfunction()

# anemone_test_program(NAME SOURCES ... LINK ...): a program that tests start.
# INSTRUMENTED: a sanitizer build compiles it too.
function(anemone_test_program name)
  cmake_parse_arguments(ARG "INSTRUMENTED" "" "SOURCES;LINK" ${ARGN})
  if(ANEMONE_TEST_OBJECTS AND NOT ARG_INSTRUMENTED)
    anemone_shared_objects(objects ${name} ${ARG_SOURCES})
    add_executable(${name} ${objects})
    set_target_properties(${name} PROPERTIES LINKER_LANGUAGE CXX)
    add_dependencies(${name} release_tests)
  else()
    add_executable(${name} ${ARG_SOURCES})
  endif()
  target_link_libraries(${name} PRIVATE anemone_options ${ARG_LINK})
endfunction()

# anemone_emulated(TEST ...): these tests run when cross-compiling. Their labels must be set before.
function(anemone_emulated)
  if(CMAKE_CROSSCOMPILING)
    set_property(TEST ${ARGN} APPEND PROPERTY LABELS emulated)
    set_property(TEST ${ARGN} PROPERTY TIMEOUT 5400)
  endif()
endfunction()

# anemone_runnable(NAME): sets the variable NAME to what a script must start to run the program NAME: the
# program, or a script that runs it in the emulator.
function(anemone_runnable name)
  set(runnable $<TARGET_FILE:${name}>)
  if(CMAKE_CROSSCOMPILING)
    list(JOIN CMAKE_CROSSCOMPILING_EMULATOR " " emulator)
    set(runnable ${PROJECT_BINARY_DIR}/emulated/${name})
    file(GENERATE OUTPUT ${runnable}
         CONTENT "#!/bin/sh\nexec ${emulator} $<TARGET_FILE:${name}> \"$@\"\n"
         FILE_PERMISSIONS OWNER_READ OWNER_WRITE OWNER_EXECUTE)
  endif()
  set(${name} ${runnable} PARENT_SCOPE)
endfunction()

# INSTRUMENTED: as in anemone_test_program.
function(anemone_test name)
  cmake_parse_arguments(ARG "INSTRUMENTED" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  set(instrumented "")
  if(ARG_INSTRUMENTED)
    set(instrumented INSTRUMENTED)
  endif()
  anemone_test_program(${name} ${instrumented} SOURCES ${ARG_SOURCES}
                       LINK GTest::gmock_main ${ARG_LINK})
  # Compiling a test takes longer than running it, so optimize less; but enough to inline functions of
  # headers, or a sanitizer build that links these objects would mix their two forms.
  if(NOT ANEMONE_SANITIZE)
    target_compile_options(${name} PRIVATE -O1)
  endif()
  target_precompile_headers(${name} REUSE_FROM precompiled_tests)
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 600)
    if(ANEMONE_SANITIZE)
      set(ARG_TIMEOUT 1800)
    endif()
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan_suppressions.txt)
  anemone_emulated(${name})
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(thread_tests ${name})
  endif()
endfunction()
