# SPDX-License-Identifier: Apache-2.0
# Language level, warnings and sanitizers shared by every target of this tree.
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES AND PROJECT_IS_TOP_LEVEL)
  set(CMAKE_BUILD_TYPE RelWithDebInfo CACHE STRING "Build type" FORCE)
endif()
set(CMAKE_CXX_STANDARD 20)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_C_STANDARD 99)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)
set(CMAKE_EXPORT_COMPILE_COMMANDS ON)

add_library(librun_options INTERFACE)
target_compile_options(librun_options INTERFACE
  $<$<COMPILE_LANGUAGE:C,CXX>:-Wall -Wextra -Wpedantic -Wshadow -Wconversion>
  $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<AND:$<BOOL:${LIBRUN_WERROR}>,$<COMPILE_LANGUAGE:C,CXX>>:-Werror>
  $<$<AND:$<BOOL:${LIBRUN_WERROR}>,$<COMPILE_LANGUAGE:CUDA>>:-Werror=all-warnings>)
if(LIBRUN_SANITIZE)
  target_compile_options(librun_options INTERFACE -fsanitize=${LIBRUN_SANITIZE}
    -fno-omit-frame-pointer -fno-sanitize-recover=all)
  target_link_options(librun_options INTERFACE -fsanitize=${LIBRUN_SANITIZE})
endif()

find_program(LIBRUN_CCACHE ccache)
mark_as_advanced(LIBRUN_CCACHE)
if(LIBRUN_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_C_COMPILER_LAUNCHER ${LIBRUN_CCACHE})
  set(CMAKE_CXX_COMPILER_LAUNCHER ${LIBRUN_CCACHE})
endif()
