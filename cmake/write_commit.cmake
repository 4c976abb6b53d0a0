# cmake -D SOURCE=<tree> -D OUTPUT=<header> -P write_commit.cmake
# Writes the commit of the tree as MYLOS_COMMIT, only if it has changed, to avoid recompilation. In an archive made by git, commit.txt has
# the commit; the archive may lie in a checkout of something else.
file(STRINGS "${CMAKE_CURRENT_LIST_DIR}/commit.txt" commit REGEX "^[0-9a-f]+$")
if(commit)
  string(SUBSTRING "${commit}" 0 12 commit)
else()
  execute_process(COMMAND git -C "${SOURCE}" rev-parse --short=12 HEAD
                  OUTPUT_VARIABLE commit OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET RESULT_VARIABLE failed)
  execute_process(COMMAND git -C "${SOURCE}" status --porcelain --untracked-files=no OUTPUT_VARIABLE changes ERROR_QUIET)
  if(failed)
    set(commit unknown)
  elseif(changes)
    string(APPEND commit "-dirty")
  endif()
endif()
set(text "#pragma once\n\n#define MYLOS_COMMIT \"${commit}\"\n")
set(old)
if(EXISTS "${OUTPUT}")
  file(READ "${OUTPUT}" old)
endif()
if(NOT text STREQUAL old)
  file(WRITE "${OUTPUT}" "${text}")
endif()
