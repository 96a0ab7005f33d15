# Read by ctest before it runs tests: they must not use the user's cache of programs.
set(ENV{ANEMONE_PROGRAM_CACHE} "")
