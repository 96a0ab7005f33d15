# For macos_test.py: configures for macOS on Linux. Nothing is linked; programs of this machine's clang 14,
# and its libraries' CMake packages, take the place of Xcode's and Homebrew's.
set(CMAKE_SYSTEM_NAME Darwin)
set(CMAKE_SYSTEM_PROCESSOR arm64)
set(CMAKE_C_COMPILER clang-14)
set(CMAKE_CXX_COMPILER clang++-14)
set(CMAKE_C_COMPILER_TARGET arm64-apple-macos13)
set(CMAKE_CXX_COMPILER_TARGET arm64-apple-macos13)
set(CMAKE_TRY_COMPILE_TARGET_TYPE STATIC_LIBRARY)
foreach(tool AR RANLIB INSTALL_NAME_TOOL)
  set(CMAKE_${tool} true)
endforeach()
set(CMAKE_LIBRARY_ARCHITECTURE x86_64-linux-gnu)
# What the compiler would be asked by linking.
set(CMAKE_HAVE_LIBC_PTHREAD ON)
