# Inside DuckDB's own build (extension_config.cmake): its functions make the targets and write the footer; what is ours
# is the engine and, for the loadable target, the two fixes that any library with a Go runtime needs.

include_directories(${MERUTABLE_INCLUDES})
add_compile_definitions(MERUTABLE_EXTENSION_VERSION="${PROJECT_VERSION}")

build_static_extension(merutable ${MERUTABLE_SOURCES})
build_loadable_extension(merutable " " ${MERUTABLE_SOURCES})

foreach(target IN ITEMS merutable_extension merutable_loadable_extension)
  add_dependencies(${target} merutable_engine)
  target_link_libraries(${target} ${MERUTABLE_ENGINE} merutable_sigguard ${MERUTABLE_SYSTEM_LIBRARIES})
endforeach()

if(NOT APPLE)
  # The parser's 8 KiB of thread-local storage, moved to the heap; our object defines upstream's symbols first, so that
  # the member of the static library is never taken. Jemalloc is left out by extension_config.cmake.
  get_filename_component(duckdb_root ${CMAKE_SOURCE_DIR} ABSOLUTE)
  add_library(merutable_parser_state OBJECT ${duckdb_root}/third_party/libpg_query/pg_functions.cpp)
  set_target_properties(merutable_parser_state PROPERTIES POSITION_INDEPENDENT_CODE ON CXX_VISIBILITY_PRESET hidden)
  target_compile_definitions(merutable_parser_state PRIVATE __MVS__)
  target_include_directories(
    merutable_parser_state PRIVATE shim ${duckdb_root}/third_party/libpg_query/include
                                   ${duckdb_root}/third_party/libpg_query ${duckdb_root}/src/include)
  target_sources(merutable_loadable_extension PRIVATE $<TARGET_OBJECTS:merutable_parser_state>)
  # One Go runtime a process, and it cannot be unloaded.
  target_link_options(merutable_loadable_extension PRIVATE LINKER:-z,nodelete)
endif()

install(
  TARGETS merutable_extension merutable_sigguard
  EXPORT "${DUCKDB_EXPORT_SET}"
  LIBRARY DESTINATION "${INSTALL_LIB_DIR}"
  ARCHIVE DESTINATION "${INSTALL_LIB_DIR}")
