# Finds the dependencies of Anemone. Each is searched for
#   1. where you specify: -DCMAKE_PREFIX_PATH=, -DONNX_DIR= (or ONNX_DIR in the environment),
#      -DANEMONE_ORT_INCLUDE_DIR=, -DANEMONE_ORT_LIBRARY=, -DANEMONE_DAGRE=, -DPython3_EXECUTABLE=;
#   2. where tools/quickstart or tools/test installed it, according to build/setup.cmake;
#   3. in the system's folders.
# Defines the targets of the packages (for ONNX, link only ONNX::onnx), and
#   onnxruntime::headers     ONNX Runtime's C API, headers only
#   xxhash::headers          xxHash, headers only
#   ANEMONE_ORT_LIBRARY      the shared library to try at run time; may be empty.

include(${PROJECT_SOURCE_DIR}/build/setup.cmake OPTIONAL)
if(CMAKE_SYSROOT AND CMAKE_SYSROOT STREQUAL ANEMONE_SETUP_ARM64_ROOT)  # cmake/arm64-linux.cmake
  set(ANEMONE_SETUP_ONNX_PREFIX "${ANEMONE_SETUP_ARM64_ONNX_PREFIX}")
  set(ANEMONE_SETUP_ORT_LIBRARY "${ANEMONE_SETUP_ARM64_ORT_LIBRARY}")
endif()

set(anemone_missing "")

if(ANEMONE_SETUP_PYTHON AND NOT DEFINED Python3_EXECUTABLE)
  set(Python3_EXECUTABLE "${ANEMONE_SETUP_PYTHON}")
endif()
find_package(Python3 3.9 QUIET COMPONENTS Interpreter)
if(NOT Python3_FOUND)
  list(APPEND anemone_missing "Python 3.9 or later (-DPython3_EXECUTABLE=)")
elseif(CMAKE_CROSSCOMPILING)
  set_target_properties(Python3::Interpreter PROPERTIES CROSSCOMPILING_EMULATOR "")  # it is this machine's
endif()

if(Python3_FOUND)
  execute_process(COMMAND "${Python3_EXECUTABLE}" "${PROJECT_SOURCE_DIR}/cmake/coreml_schema.py" --check
                  RESULT_VARIABLE coreml_result ERROR_VARIABLE coreml_error
                  ERROR_STRIP_TRAILING_WHITESPACE)
  if(NOT coreml_result EQUAL 0)
    list(APPEND anemone_missing "${coreml_error}")
  endif()
endif()

if(ANEMONE_BUILD_PYTHON AND Python3_FOUND)
  set(Python_EXECUTABLE "${Python3_EXECUTABLE}")  # the name that nanobind uses
  find_package(Python 3.10 QUIET COMPONENTS Interpreter Development.Module)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -m nanobind --cmake_dir OUTPUT_VARIABLE nanobind_dir
                  OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  find_package(nanobind QUIET CONFIG HINTS "${nanobind_dir}")
  if(NOT Python_Development.Module_FOUND OR NOT nanobind_FOUND)
    list(APPEND anemone_missing "Python's headers (python3-dev) and nanobind (pip install nanobind; \
or -DANEMONE_BUILD_PYTHON=OFF)")
  endif()
endif()

# Debian's Protobuf has no CMake package. CMake's module is used instead, also for the
# find_package(Protobuf CONFIG) in ONNX's package.
find_package(Protobuf QUIET CONFIG)
if(NOT Protobuf_FOUND)
  find_package(Protobuf QUIET MODULE)
  file(WRITE "${CMAKE_FIND_PACKAGE_REDIRECTS_DIR}/protobuf-config.cmake" "")
endif()
if(ANEMONE_SANITIZE MATCHES "thread")
  if(ANEMONE_SETUP_TSAN_TBB_PREFIX)
    set(TBB_DIR "${ANEMONE_SETUP_TSAN_TBB_PREFIX}/lib/cmake/TBB")
  else()
    message(WARNING "This oneTBB is not built for ThreadSanitizer, which will report false races; "
                    "tools/test builds one that is.")
  endif()
endif()
set(anemone_packages Protobuf absl hwy TBB nlohmann_json CLI11 FlatBuffers Threads)
if(ANEMONE_BUILD_TESTS)
  list(APPEND anemone_packages GTest)
endif()
if(ANEMONE_BUILD_BENCH)
  list(APPEND anemone_packages benchmark)
endif()
foreach(package IN LISTS anemone_packages)
  if(NOT ${package}_FOUND)
    find_package(${package} QUIET)
  endif()
  if(NOT ${package}_FOUND)
    list(APPEND anemone_missing "${package} (-DCMAKE_PREFIX_PATH=)")
  endif()
endforeach()

find_package(PkgConfig QUIET)
if(PkgConfig_FOUND)
  pkg_check_modules(plist QUIET IMPORTED_TARGET libplist-2.0)
endif()
if(NOT plist_FOUND)
  list(APPEND anemone_missing "libplist 2 (pkg-config's libplist-2.0)")
endif()

find_path(ANEMONE_XXHASH_INCLUDE_DIR xxhash.h DOC "Folder that holds xxhash.h, 0.8 or later")
if(ANEMONE_XXHASH_INCLUDE_DIR)
  add_library(xxhash::headers INTERFACE IMPORTED)
  target_include_directories(xxhash::headers INTERFACE "${ANEMONE_XXHASH_INCLUDE_DIR}")
else()
  list(APPEND anemone_missing "xxHash (-DANEMONE_XXHASH_INCLUDE_DIR=)")
endif()

if(Protobuf_FOUND)
  find_package(ONNX 1.23 QUIET CONFIG HINTS "${ANEMONE_SETUP_ONNX_PREFIX}")
endif()
if(ONNX_FOUND)
  # ONNX's package omits this dependency, which static linking needs.
  set_property(TARGET ONNX::onnx APPEND PROPERTY INTERFACE_LINK_LIBRARIES ONNX::onnx_proto)
else()
  list(APPEND anemone_missing "the ONNX C++ library, 1.23 or later (-DONNX_DIR=)")
endif()

find_path(ANEMONE_ORT_INCLUDE_DIR onnxruntime_ep_c_api.h
          HINTS "${ANEMONE_SETUP_ORT_INCLUDE_DIR}" PATH_SUFFIXES onnxruntime
          DOC "Folder that holds onnxruntime_c_api.h and onnxruntime_ep_c_api.h, 1.23 or later")
if(EXISTS "${ANEMONE_ORT_INCLUDE_DIR}/onnxruntime_ep_c_api.h")
  add_library(onnxruntime::headers INTERFACE IMPORTED)
  target_include_directories(onnxruntime::headers INTERFACE "${ANEMONE_ORT_INCLUDE_DIR}")
else()
  list(APPEND anemone_missing "ONNX Runtime's C headers (-DANEMONE_ORT_INCLUDE_DIR=)")
endif()

# The report's layout library: a script in the Python package netron.
if(NOT ANEMONE_DAGRE AND Python3_FOUND)
  execute_process(COMMAND "${Python3_EXECUTABLE}" -c "import importlib.util, os.path
print(os.path.join(importlib.util.find_spec('netron').submodule_search_locations[0], 'dagre.js'))"
                  OUTPUT_VARIABLE ANEMONE_DAGRE OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
endif()
if(NOT EXISTS "${ANEMONE_DAGRE}")
  list(APPEND anemone_missing "dagre.js of the Python package netron (pip install netron; or \
-DANEMONE_DAGRE=)")
endif()

if(NOT DEFINED ANEMONE_ORT_LIBRARY)
  set(ANEMONE_ORT_LIBRARY "${ANEMONE_SETUP_ORT_LIBRARY}")
endif()

if(anemone_missing)
  list(JOIN anemone_missing "\n  " anemone_missing)
  message(FATAL_ERROR "Not found:\n  ${anemone_missing}\n"
                      "Run tools/quickstart, which installs all of them on Debian 12, or set the "
                      "variables in parentheses.")
endif()

# Locations from build/setup.cmake are not kept in CMake's cache: they may change with the next
# set-up, and cached locations count as specified by you.
if(ANEMONE_SETUP_ONNX_PREFIX)
  cmake_path(IS_PREFIX ANEMONE_SETUP_ONNX_PREFIX "${ONNX_DIR}" onnx_from_setup)
  if(onnx_from_setup)
    unset(ONNX_DIR CACHE)
  endif()
endif()
if(ANEMONE_ORT_INCLUDE_DIR STREQUAL ANEMONE_SETUP_ORT_INCLUDE_DIR)
  unset(ANEMONE_ORT_INCLUDE_DIR CACHE)
endif()
