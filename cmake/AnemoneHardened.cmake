# Flags that make faults of memory harder to exploit, for everything that is built here: the command, the
# library, the plugin, the Python package and the tests. tests/layout/hardened_test.py checks the results,
# SECURITY.md says what they cost. Sanitizer builds find such faults themselves, and have none of the flags.

option(ANEMONE_HARDENED "Check sizes of buffers, stacks and jumps at run time" ON)
if(NOT ANEMONE_HARDENED OR ANEMONE_SANITIZE)
  return()
endif()

include(CheckCXXCompilerFlag)
include(CheckCXXSourceCompiles)
include(CheckPIESupported)

# Functions of libc check the sizes of buffers. They can do so only in optimized code.
set(CMAKE_REQUIRED_FLAGS "-O1 -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=3")
check_cxx_source_compiles("#include <stdlib.h>
  static_assert(__USE_FORTIFY_LEVEL == 3); int main() {}" ANEMONE_FORTIFY_3)
unset(CMAKE_REQUIRED_FLAGS)
set(optimized $<CONFIG:Release,RelWithDebInfo,MinSizeRel>)
add_compile_options($<${optimized}:-U_FORTIFY_SOURCE>
                    $<${optimized}:-D_FORTIFY_SOURCE=$<IF:$<BOOL:${ANEMONE_FORTIFY_3}>,3,2>>)

# Returns of functions whose arrays were overrun; large frames that skip the guard page; indirect jumps to
# places that are not the start of a function, and returns to changed addresses (x86's CET, Arm's BTI and PAC).
set(flags -fstack-protector-strong -fstack-clash-protection)
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|AMD64")
  list(APPEND flags -fcf-protection=full)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64" AND NOT APPLE)
  list(APPEND flags -mbranch-protection=standard)
endif()
foreach(flag ${flags})
  string(MAKE_C_IDENTIFIER "ANEMONE_HAS${flag}" has)
  check_cxx_compiler_flag(${flag} ${has})
  if(${has})
    add_compile_options(${flag})
  endif()
endforeach()

# Executables at random addresses, tables of functions that are read-only before main(), data that does not run.
check_pie_supported(LANGUAGES CXX)
if(NOT APPLE)
  add_link_options(LINKER:-z,relro,-z,now LINKER:-z,noexecstack)
endif()
