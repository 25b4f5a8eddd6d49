# SPDX-License-Identifier: Apache-2.0
# How tests are launched: alone, or under mpirun with several numbers of ranks.
execute_process(COMMAND ${MPIEXEC_EXECUTABLE} --version OUTPUT_VARIABLE mpiexec_version
                ERROR_QUIET)

set(LIBRUN_TEST_TIMEOUT_S 120 CACHE STRING "Seconds until a test that runs under mpirun is ended")
mark_as_advanced(LIBRUN_TEST_TIMEOUT_S)
set(librun_test_timeout_s ${LIBRUN_TEST_TIMEOUT_S})
set(librun_test_environment
  LIBRUN_CHECK=1 LIBRUN_TIMEOUT_MS=20000 LIBRUN_LOG=error
  OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
  OMPI_MCA_rmaps_base_oversubscribe=1)
if(LIBRUN_SANITIZE)
  set(librun_test_timeout_s 360)
  # Open MPI never frees what it allocates at start.
  list(APPEND librun_test_environment
    ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1)
endif()

# The command that starts `np` ranks. Open MPI's own time limit comes first, since it cleans up.
function(librun_mpirun np out)
  set(command ${MPIEXEC_EXECUTABLE})
  if(mpiexec_version MATCHES "Open MPI|OpenRTE")
    list(APPEND command --oversubscribe --timeout ${librun_test_timeout_s})
  endif()
  set(${out} ${command} ${MPIEXEC_NUMPROC_FLAG} ${np} PARENT_SCOPE)
endfunction()

# Common properties of every test.
function(librun_test_properties name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NP" "LABELS")
  if(NOT arg_NP)
    set(arg_NP 1)
  endif()
  math(EXPR timeout_s "${librun_test_timeout_s} + 15")
  set_tests_properties(${name} PROPERTIES
    TIMEOUT ${timeout_s} PROCESSORS ${arg_NP} SKIP_RETURN_CODE 77
    LABELS "${arg_LABELS}" ENVIRONMENT "${librun_test_environment}")
  # Launchers of Open MPI that start and end at the same time trip over their common folder in /tmp.
  if(NOT "unit" IN_LIST arg_LABELS)
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK launcher)
  endif()
endfunction()

# add_mpi_test(name SOURCES file... NP n... [LABELS label...]): one executable, one test for each n.
# It sees what is installed, and tests/support.
function(add_mpi_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "SOURCES;NP;LABELS")
  add_executable(${name} ${arg_SOURCES})
  target_link_libraries(${name} PRIVATE librun_mpi_test_main librun::librun librun_options)
  foreach(np IN LISTS arg_NP)
    librun_mpirun(${np} launch)
    add_test(NAME ${name}.np${np} COMMAND ${launch} $<TARGET_FILE:${name}>)
    librun_test_properties(${name}.np${np} NP ${np} LABELS ${arg_LABELS} np${np})
  endforeach()
endfunction()

# add_script_test(name COMMAND command... [NP n] [LABELS label...] [ENVIRONMENT VAR=value...])
function(add_script_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "NP" "COMMAND;LABELS;ENVIRONMENT")
  add_test(NAME ${name} COMMAND ${arg_COMMAND})
  librun_test_properties(${name} NP ${arg_NP} LABELS ${arg_LABELS})
  set_property(TEST ${name} APPEND PROPERTY ENVIRONMENT ${arg_ENVIRONMENT})
endfunction()
