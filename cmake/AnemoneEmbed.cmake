# anemone_embed(TARGET HEADER NAME=FILE...): adds the files to the program as constants, which HEADER
# declares: `extern const absl::string_view NAME;` in the namespace anemone.
function(anemone_embed target header)
  string(MAKE_C_IDENTIFIER ${header} stem)
  set(output ${CMAKE_CURRENT_BINARY_DIR}/embedded/${stem}.cc)
  set(script ${PROJECT_SOURCE_DIR}/cmake/embed_files.py)
  set(pairs "")
  set(files "")
  foreach(pair IN LISTS ARGN)
    string(REGEX MATCH "^([A-Za-z0-9_]+)=(.*)$" matched ${pair})
    list(APPEND pairs ${CMAKE_MATCH_1}=${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_2})
    list(APPEND files ${CMAKE_CURRENT_SOURCE_DIR}/${CMAKE_MATCH_2})
  endforeach()
  add_custom_command(OUTPUT ${output} DEPENDS ${script} ${files}
    COMMAND Python3::Interpreter ${script} ${output} ${header} ${pairs}
    COMMENT "Embedding the files of ${header}")
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/embedded)
  target_sources(${target} PRIVATE ${output})
endfunction()
