# cmake -D PROGRAM=<mylos> -D OUTPUT=<folder> -P write_manual.cmake
# Writes OUTPUT/mylos.1, the manual page, and OUTPUT/mylos, the completion for bash. Warns if the program cannot run
# here.
file(REMOVE_RECURSE "${OUTPUT}")
file(MAKE_DIRECTORY "${OUTPUT}")
foreach(file mylos.1=--man mylos=--bash)
  string(REPLACE "=" ";" file "${file}")
  list(GET file 0 name)
  list(GET file 1 option)
  execute_process(COMMAND ${PROGRAM} help ${option} OUTPUT_FILE "${OUTPUT}/${name}" RESULT_VARIABLE failed ERROR_VARIABLE reason)
  if(failed)
    message(WARNING "No manual page and no completion: ${PROGRAM} help ${option} does not run here: ${reason}")
    file(REMOVE_RECURSE "${OUTPUT}")
    return()
  endif()
endforeach()
