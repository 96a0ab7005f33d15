# find_package(anemone) defines the target anemone::anemone. ONNX Runtime is loaded when a program
# runs; see anemone/session.h.
include(CMakeFindDependencyMacro)
foreach(package absl hwy Protobuf TBB Threads PkgConfig)
  find_dependency(${package})
endforeach()
if(NOT TARGET PkgConfig::plist)
  pkg_check_modules(plist REQUIRED QUIET IMPORTED_TARGET libplist-2.0)
endif()
include(${CMAKE_CURRENT_LIST_DIR}/anemone-targets.cmake)
