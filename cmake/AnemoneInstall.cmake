# `cmake --install`: the command, the plugin, and the library for find_package(anemone), which
# defines the target anemone::anemone (include/anemone/session.h, check.h and the headers that they
# include).

include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

# The libraries of all folders as one.
set(objects "")
foreach(folder base math engine apple importer kernels partitioner fallback provider)
  list(APPEND objects $<TARGET_OBJECTS:anemone_${folder}>)
endforeach()
if(APPLE)
  list(APPEND objects $<TARGET_OBJECTS:anemone_apple_try>)
endif()
add_library(anemone_archive STATIC ${objects})
set_target_properties(anemone_archive PROPERTIES
  OUTPUT_NAME anemone EXPORT_NAME anemone LINKER_LANGUAGE CXX
  ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR})
target_compile_features(anemone_archive INTERFACE cxx_std_20)
target_include_directories(anemone_archive INTERFACE
  $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)
# ONNX's static libraries are installed too, because systems do not provide them. The package finds
# the other dependencies.
set(onnx_dir ${CMAKE_INSTALL_LIBDIR}/anemone)
set(onnx_libraries "")
foreach(library onnx onnx_proto)
  set(name ${CMAKE_STATIC_LIBRARY_PREFIX}${library}${CMAKE_STATIC_LIBRARY_SUFFIX})
  install(FILES $<TARGET_FILE:ONNX::${library}> DESTINATION ${onnx_dir} RENAME ${name})
  list(APPEND onnx_libraries "\$<INSTALL_PREFIX>/${onnx_dir}/${name}")
endforeach()
target_link_libraries(anemone_archive INTERFACE
  "$<INSTALL_INTERFACE:${onnx_libraries}>" protobuf::libprotobuf-lite
  absl::flat_hash_map absl::flat_hash_set absl::span absl::status absl::statusor absl::str_format
  absl::strings absl::time hwy::hwy PkgConfig::plist TBB::tbb Threads::Threads
  ${CMAKE_DL_LIBS})
if(APPLE)
  target_link_libraries(anemone_archive INTERFACE "-framework Foundation")
endif()

install(TARGETS anemone onnxruntime_ane_ep)
install(TARGETS anemone_archive EXPORT anemone-targets)
foreach(header bit_mask check compressed generator hazard onnx_value scale_grid session settings surfaces
               tensor)
  install(FILES ${PROJECT_SOURCE_DIR}/include/anemone/${header}.h
          DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/anemone)
endforeach()
install(FILES ${PROJECT_BINARY_DIR}/include/anemone/version.h
        DESTINATION ${CMAKE_INSTALL_INCLUDEDIR}/anemone)
install(FILES ${PROJECT_SOURCE_DIR}/docs/anemone.1 DESTINATION ${CMAKE_INSTALL_MANDIR}/man1)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/NOTICE
        DESTINATION ${CMAKE_INSTALL_DOCDIR})

set(package_dir ${CMAKE_INSTALL_LIBDIR}/cmake/anemone)
install(EXPORT anemone-targets NAMESPACE anemone:: DESTINATION ${package_dir})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/anemone-config-version.cmake
                                 COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_SOURCE_DIR}/cmake/anemone-config.cmake
              ${PROJECT_BINARY_DIR}/anemone-config-version.cmake
        DESTINATION ${package_dir})
