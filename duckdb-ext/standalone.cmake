# The default build: one shared object of our C++, DuckDB's prebuilt static libraries and the Go engine. Leaving DuckDB's
# symbols to the host would make it small, but the command line shell, Python and Node do not export them.

set(DUCKDB_DIR ${MERUTABLE_ROOT}/third_party/duckdb)
set(DUCKDB_SOURCE ${DUCKDB_DIR}/src)
set(DUCKDB_LIB ${DUCKDB_DIR}/lib)
file(STRINGS ${DUCKDB_DIR}/VERSION DUCKDB_VERSION LIMIT_COUNT 1)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${DUCKDB_DIR}/VERSION)

if(NOT EXISTS ${DUCKDB_SOURCE}/src/include/duckdb.hpp OR NOT EXISTS ${DUCKDB_LIB}/libduckdb_static.a)
  message(FATAL_ERROR "DuckDB ${DUCKDB_VERSION} is not under third_party/duckdb yet: run ./dev init")
endif()

# The footer names the platform, and DuckDB refuses another's.
if(CMAKE_SYSTEM_PROCESSOR MATCHES "^(x86_64|amd64|AMD64)$")
  set(architecture amd64)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "^(aarch64|arm64)$")
  set(architecture arm64)
else()
  message(FATAL_ERROR "${CMAKE_SYSTEM_PROCESSOR} is not supported: amd64 and arm64 are")
endif()
if(APPLE)
  set(MERUTABLE_PLATFORM osx_${architecture})
else()
  set(MERUTABLE_PLATFORM linux_${architecture})
endif()

if(NOT CMAKE_BUILD_TYPE)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Our own optimisation flags. A debug build links the same release libraries, so DEBUG (which changes the layout of
# DuckDB's classes) must never be defined; line numbers only, because full debug information of DuckDB's headers is
# hundreds of megabytes.
foreach(language IN ITEMS C CXX)
  set(CMAKE_${language}_FLAGS_RELEASE "-O2 -DNDEBUG")
  set(CMAKE_${language}_FLAGS_DEBUG "-O0 -g1")
endforeach()
set(CMAKE_CXX_STANDARD 17)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_POSITION_INDEPENDENT_CODE ON)
set(CMAKE_C_VISIBILITY_PRESET hidden)
set(CMAKE_CXX_VISIBILITY_PRESET hidden)
set(CMAKE_VISIBILITY_INLINES_HIDDEN ON)

add_library(merutable_extension MODULE ${MERUTABLE_SOURCES}
                                       ${DUCKDB_SOURCE}/extension/loader/dummy_static_extension_loader.cpp)
target_include_directories(merutable_extension PRIVATE ${MERUTABLE_INCLUDES})
# SYSTEM: warnings are for our own code.
target_include_directories(
  merutable_extension SYSTEM
  PRIVATE ${DUCKDB_SOURCE}/src/include
          ${DUCKDB_SOURCE}/third_party/concurrentqueue
          ${DUCKDB_SOURCE}/third_party/fastpforlib
          ${DUCKDB_SOURCE}/third_party/fmt/include
          ${DUCKDB_SOURCE}/third_party/re2
          ${DUCKDB_SOURCE}/third_party/utf8proc/include
          # The Parquet extension's own headers: the scan hands it our files.
          ${DUCKDB_SOURCE}/extension/parquet/include
          ${DUCKDB_SOURCE}/third_party/parquet
          ${DUCKDB_SOURCE}/third_party/thrift)
target_compile_definitions(
  merutable_extension PRIVATE DUCKDB_BUILD_LOADABLE_EXTENSION MERUTABLE_EXTENSION_VERSION="${PROJECT_VERSION}")
target_compile_options(merutable_extension PRIVATE -Wall -Wextra -Wno-unused-parameter -ffunction-sections
                                                   -fdata-sections)

if(NOT APPLE)
  # All thread-local storage of the module must fit the static TLS surplus: see shim/jemalloc_shim.c.
  add_library(merutable_parser_state OBJECT ${DUCKDB_SOURCE}/third_party/libpg_query/pg_functions.cpp)
  target_compile_definitions(merutable_parser_state PRIVATE __MVS__)
  target_include_directories(
    merutable_parser_state PRIVATE shim ${DUCKDB_SOURCE}/third_party/libpg_query/include
                                   ${DUCKDB_SOURCE}/third_party/libpg_query ${DUCKDB_SOURCE}/src/include)
  target_compile_options(merutable_parser_state PRIVATE -O2 -w)
  target_sources(merutable_extension PRIVATE shim/jemalloc_shim.c $<TARGET_OBJECTS:merutable_parser_state>)
endif()

add_dependencies(merutable_extension merutable_engine)
# Not parquet, core_functions or icu: the host has them, and the scan asks the host's catalog for its reader.
set(duckdb_libraries duckdb_static)
foreach(part IN ITEMS fastpforlib fmt fsst hyperloglog mbedtls miniz pg_query re2 skiplistlib utf8proc yyjson zstd)
  list(APPEND duckdb_libraries duckdb_${part})
endforeach()
list(TRANSFORM duckdb_libraries REPLACE "(.+)" "${DUCKDB_LIB}/lib\\1.a")
target_link_libraries(merutable_extension PRIVATE ${MERUTABLE_ENGINE} merutable_sigguard ${duckdb_libraries}
                                                  ${MERUTABLE_SYSTEM_LIBRARIES})

if(APPLE)
  target_link_options(merutable_extension PRIVATE LINKER:-dead_strip
                      LINKER:-exported_symbol,_merutable_duckdb_cpp_init)
else()
  set(exports ${CMAKE_CURRENT_SOURCE_DIR}/shim/extension.map)
  target_link_options(
    merutable_extension
    PRIVATE
    LINKER:--gc-sections
    # One entry point goes out; everything else, the engine's C functions included, stays inside.
    LINKER:--exclude-libs,ALL
    "LINKER:--version-script=${exports}"
    LINKER:-z,defs
    # A Go runtime cannot be unloaded.
    LINKER:-z,nodelete
    $<$<CONFIG:Release>:LINKER:-s>)
  set_property(TARGET merutable_extension APPEND PROPERTY LINK_DEPENDS ${exports})
endif()

find_package(Python3 REQUIRED COMPONENTS Interpreter)
set(MERUTABLE_OUTPUT_DIR ${CMAKE_BINARY_DIR}/extension/merutable CACHE PATH "Where the loadable extension is put")
set(output ${MERUTABLE_OUTPUT_DIR}/merutable.duckdb_extension)
set(footer ${MERUTABLE_ROOT}/scripts/append_metadata.py)
add_custom_command(
  OUTPUT ${output}
  COMMAND ${CMAKE_COMMAND} -E make_directory ${MERUTABLE_OUTPUT_DIR}
  COMMAND ${Python3_EXECUTABLE} ${footer} --platform ${MERUTABLE_PLATFORM} --duckdb-version v${DUCKDB_VERSION}
          --extension-version v${PROJECT_VERSION} $<TARGET_FILE:merutable_extension> ${output}
  DEPENDS merutable_extension ${footer} ${DUCKDB_DIR}/VERSION
  COMMENT "Footer: ${MERUTABLE_PLATFORM}, DuckDB v${DUCKDB_VERSION}"
  VERBATIM)
add_custom_target(merutable_loadable ALL DEPENDS ${output})
