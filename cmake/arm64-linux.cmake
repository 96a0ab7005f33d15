# Cross-compiles for 64-bit Arm Linux with Debian's g++-aarch64-linux-gnu; programs run with qemu-user.
# Needs a folder with the root of such a machine: ANEMONE_ARM64_ROOT in the environment, or the one that
# tools/setup/arm64.sh filled.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)

include(${CMAKE_CURRENT_LIST_DIR}/../build/setup.cmake OPTIONAL)
if(DEFINED ENV{ANEMONE_ARM64_ROOT})
  set(CMAKE_SYSROOT $ENV{ANEMONE_ARM64_ROOT})
else()
  set(CMAKE_SYSROOT ${ANEMONE_SETUP_ARM64_ROOT})
endif()
if(NOT IS_DIRECTORY "${CMAKE_SYSROOT}/usr")
  message(FATAL_ERROR "No root of an Arm machine; run tools/setup/arm64.sh and tools/setup/onnx.sh arm64")
endif()
# Like an M1 it has no SVE; ONNX Runtime must find the processor that arm64.sh describes to it.
set(CMAKE_CROSSCOMPILING_EMULATOR qemu-aarch64 -cpu neoverse-n1 -L ${CMAKE_SYSROOT})

# Libraries, headers and packages are those of the root, or where they are specified; programs are this
# machine's.
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH ${ANEMONE_SETUP_ARM64_ONNX_PREFIX} ${ANEMONE_SETUP_ORT_INCLUDE_DIR})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
foreach(kind LIBRARY INCLUDE PACKAGE)
  set(CMAKE_FIND_ROOT_PATH_MODE_${kind} ONLY)
endforeach()
set(ENV{PKG_CONFIG_SYSROOT_DIR} ${CMAKE_SYSROOT})
set(ENV{PKG_CONFIG_LIBDIR}
    ${CMAKE_SYSROOT}/usr/lib/aarch64-linux-gnu/pkgconfig:${CMAKE_SYSROOT}/usr/share/pkgconfig)
