# Objective-C++ with Foundation: of macOS, or elsewhere GNUstep's, with which only tests run. Sets
# ANEMONE_OBJECTIVE_C to whether it was found, and says so. The C and C++ compilers compile the sources,
# with -x objective-c and -x objective-c++.
# anemone_objective_c(TARGET SOURCES...): adds Objective-C++ sources to a target.
# anemone_plain_objective_c(NAME SOURCE): the objects of a source in Objective-C.

include(CheckCXXSourceCompiles)

set(anemone_objective_c_flags -fobjc-exceptions)
set(anemone_objective_c_includes "")
if(APPLE)
  set(anemone_objective_c_libraries "-framework Foundation")
else()
  list(APPEND anemone_objective_c_flags -fconstant-string-class=NSConstantString
       -D_NATIVE_OBJC_EXCEPTIONS -DGNUSTEP -DGNUSTEP_BASE_LIBRARY=1 -DGNU_RUNTIME=1)
  find_path(ANEMONE_GNUSTEP_INCLUDE_DIR Foundation/Foundation.h PATH_SUFFIXES GNUstep
            DOC "Folder that holds GNUstep's Foundation/Foundation.h")
  find_library(ANEMONE_GNUSTEP_LIBRARY gnustep-base DOC "GNUstep's base library")
  set(anemone_objective_c_libraries ${ANEMONE_GNUSTEP_LIBRARY} objc)
  set(anemone_objective_c_includes ${ANEMONE_GNUSTEP_INCLUDE_DIR})
endif()

if(APPLE)
  set(ANEMONE_OBJECTIVE_C ON)
elseif(NOT ANEMONE_GNUSTEP_INCLUDE_DIR OR NOT ANEMONE_GNUSTEP_LIBRARY)
  set(ANEMONE_OBJECTIVE_C OFF)
  message(STATUS "The tests of --device apple are off: no GNUstep (libgnustep-base-dev)")
elseif(ANEMONE_SANITIZE)
  set(ANEMONE_OBJECTIVE_C OFF)
  message(STATUS "The tests of --device apple are off: not in a build with sanitizers")
else()
  list(JOIN anemone_objective_c_flags " " CMAKE_REQUIRED_FLAGS)
  string(PREPEND CMAKE_REQUIRED_FLAGS "-x objective-c++ ")
  set(CMAKE_REQUIRED_INCLUDES ${anemone_objective_c_includes})
  set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)  # compile only: -x would be passed to the linker
  check_cxx_source_compiles("#import <Foundation/Foundation.h>
    int main() { @try { [NSObject class]; } @catch (NSException*) {} return 0; }"
    ANEMONE_OBJECTIVE_C_COMPILES)
  unset(CMAKE_REQUIRED_FLAGS)
  unset(CMAKE_REQUIRED_INCLUDES)
  unset(CMAKE_TRY_COMPILE_TARGET_TYPE)
  set(ANEMONE_OBJECTIVE_C ${ANEMONE_OBJECTIVE_C_COMPILES})
  if(NOT ANEMONE_OBJECTIVE_C)
    message(STATUS "The tests of --device apple are off: the compiler takes no Objective-C++ (gobjc++)")
  endif()
endif()

if(ANEMONE_OBJECTIVE_C)
  enable_language(C)
endif()

function(anemone_plain_objective_c name source)
  set_source_files_properties(${source} PROPERTIES LANGUAGE C
    COMPILE_OPTIONS "-x;objective-c;-Wall;-Wextra;-Werror;${anemone_objective_c_flags}")
  add_library(${name} OBJECT ${source})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_include_directories(${name} SYSTEM PRIVATE ${anemone_objective_c_includes})
endfunction()

function(anemone_objective_c target)
  target_sources(${target} PRIVATE ${ARGN})
  set_source_files_properties(${ARGN} PROPERTIES LANGUAGE CXX SKIP_PRECOMPILE_HEADERS ON
    COMPILE_OPTIONS "-x;objective-c++;${anemone_objective_c_flags}")
  target_include_directories(${target} SYSTEM PRIVATE ${anemone_objective_c_includes})
  target_link_libraries(${target} PRIVATE ${anemone_objective_c_libraries})
endfunction()
