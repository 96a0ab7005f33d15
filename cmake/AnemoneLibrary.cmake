# anemone_library(NAME SOURCES ... LINK ...): one folder's library, warnings as errors. Headers are
# included from the top of the repository ("engine/dims.h") and from include/ ("anemone/tensor.h").
# anemone_test(NAME SOURCES ... LINK ... LABELS ...): one GoogleTest program, one ctest entry.
# Label threads: ThreadSanitizer runs it too.

add_library(anemone_options INTERFACE)
target_include_directories(anemone_options INTERFACE ${PROJECT_SOURCE_DIR}
                                                     ${PROJECT_SOURCE_DIR}/include)
target_compile_options(anemone_options INTERFACE -Wall -Wextra -Werror -Wno-sign-compare
                                                 -Wno-missing-field-initializers)
if(ANEMONE_SANITIZE)
  # AddressSanitizer itself notices what these three look for; they are a third of the compile.
  target_compile_options(anemone_options INTERFACE -fsanitize=${ANEMONE_SANITIZE}
                                                   -fno-sanitize=null,vptr,object-size
                                                   -fno-sanitize-recover=all -fno-omit-frame-pointer
                                                   # GCC warns of what only its checks can reach.
                                                   -Wno-error)
  target_link_options(anemone_options INTERFACE -fsanitize=${ANEMONE_SANITIZE})
endif()

function(anemone_library name)
  cmake_parse_arguments(ARG "" "" "SOURCES;LINK" ${ARGN})
  add_library(${name} STATIC ${ARG_SOURCES})
  target_link_libraries(${name} PUBLIC anemone_options ${ARG_LINK})
endfunction()

add_custom_target(thread_tests)

function(anemone_test name)
  cmake_parse_arguments(ARG "" "TIMEOUT" "SOURCES;LINK;LABELS" ${ARGN})
  add_executable(${name} ${ARG_SOURCES})
  target_link_libraries(${name} PRIVATE anemone_options GTest::gmock_main ${ARG_LINK})
  # Tests are compiled more often than they run long.
  if(ANEMONE_SANITIZE)
    target_compile_options(${name} PRIVATE -O0)
  else()
    target_compile_options(${name} PRIVATE -O1)
  endif()
  add_test(NAME ${name} COMMAND ${name})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  set_tests_properties(${name} PROPERTIES LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT}
    ENVIRONMENT TSAN_OPTIONS=suppressions=${PROJECT_SOURCE_DIR}/tests/tsan_suppressions.txt)
  if("threads" IN_LIST ARG_LABELS)
    add_dependencies(thread_tests ${name})
  endif()
endfunction()
