# cmake -D OBJDUMP=.. -D OBJECT=.. -D PROCESSOR=.. -D SANITIZE=.. -P sight_test.cmake
# Fails unless sight() and peek() load all eight words of a line before the first conditional jump, and sight() marks by
# four locked ORs behind it. A jump between the loads would let the processor ask for what it needs only as far as it
# guessed right; g++ 12 at -O2 leaves one in every loop that is not unrolled by hand.
if(SANITIZE OR NOT PROCESSOR STREQUAL "x86_64")
  message("skipped: looks at plain x86-64 code only (${PROCESSOR} ${SANITIZE})")
  return()
endif()

# What is read from memory, the stack apart, before the first conditional jump.
function(loads_before_a_jump symbol out_count out_text)
  execute_process(COMMAND ${OBJDUMP} -d --no-show-raw-insn --disassemble=${symbol} ${OBJECT}
                  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  string(REGEX REPLACE "^.*<${symbol}>:" "" text "${text}")
  string(REGEX REPLACE "\nDisassembly of section.*$" "" text "${text}")
  string(REPLACE ";" "," lines "${text}")
  string(REPLACE "\n" ";" lines "${lines}")
  set(count 0)
  foreach(line IN LISTS lines)
    if(line MATCHES "\tj[a-ln-z][a-z]* ")  # any jump but jmp
      break()
    endif()
    if(line MATCHES "\\(%" AND NOT line MATCHES "\\(%rsp" AND NOT line MATCHES "\t(lea|nop)")
      math(EXPR count "${count} + 1")
    endif()
  endforeach()
  set(${out_count} ${count} PARENT_SCOPE)
  set(${out_text} "${text}" PARENT_SCOPE)
endfunction()

# Besides the eight words: the key, the number of lines, their address, and for sight() the state.
foreach(case "probe_sight 12" "probe_peek 11")
  string(REPLACE " " ";" case "${case}")
  list(GET case 0 symbol)
  list(GET case 1 wanted)
  loads_before_a_jump(${symbol} count text)
  if(count LESS ${wanted})
    message(FATAL_ERROR "${symbol}: ${count} loads before the first conditional jump, not ${wanted}:\n${text}")
  endif()
endforeach()

loads_before_a_jump(probe_sight count text)
string(REGEX MATCHALL "\tlock or" ors "${text}")
list(LENGTH ors count)
if(NOT count EQUAL 4)
  message(FATAL_ERROR "sight() has ${count} locked ORs, not four in a row:\n${text}")
endif()
