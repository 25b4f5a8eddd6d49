# SPDX-License-Identifier: Apache-2.0
# What `cmake --install` puts where, for find_package(librun) and pkg-config.
include(CMakePackageConfigHelpers)
set(LIBRUN_CMAKE_DIR ${CMAKE_INSTALL_LIBDIR}/cmake/librun)

install(TARGETS librun EXPORT librunTargets
  LIBRARY DESTINATION ${CMAKE_INSTALL_LIBDIR}
  FILE_SET HEADERS DESTINATION ${CMAKE_INSTALL_INCLUDEDIR})
install(EXPORT librunTargets NAMESPACE librun:: DESTINATION ${LIBRUN_CMAKE_DIR})

configure_package_config_file(${PROJECT_SOURCE_DIR}/cmake/librunConfig.cmake.in
  ${PROJECT_BINARY_DIR}/librunConfig.cmake INSTALL_DESTINATION ${LIBRUN_CMAKE_DIR})
write_basic_package_version_file(${PROJECT_BINARY_DIR}/librunConfigVersion.cmake
  COMPATIBILITY SameMinorVersion)
install(FILES ${PROJECT_BINARY_DIR}/librunConfig.cmake
  ${PROJECT_BINARY_DIR}/librunConfigVersion.cmake DESTINATION ${LIBRUN_CMAKE_DIR})

# The prefix is told from where the file lies, so that `cmake --install --prefix` may choose another.
file(RELATIVE_PATH LIBRUN_PREFIX_FROM_PC /${CMAKE_INSTALL_LIBDIR}/pkgconfig /)
string(REGEX REPLACE "/$" "" LIBRUN_PREFIX_FROM_PC ${LIBRUN_PREFIX_FROM_PC})
configure_file(${PROJECT_SOURCE_DIR}/cmake/librun.pc.in ${PROJECT_BINARY_DIR}/librun.pc @ONLY)
install(FILES ${PROJECT_BINARY_DIR}/librun.pc DESTINATION ${CMAKE_INSTALL_LIBDIR}/pkgconfig)
install(FILES ${PROJECT_SOURCE_DIR}/LICENSE ${PROJECT_SOURCE_DIR}/README.md
  ${PROJECT_SOURCE_DIR}/CHANGELOG.md DESTINATION ${CMAKE_INSTALL_DOCDIR})
