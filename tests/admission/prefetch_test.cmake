# cmake -D OBJDUMP=.. -D OBJECT=.. -P prefetch_test.cmake
# Fails unless the wrapper holds a prefetch instruction and its caller reaches it twice.
function(disassemble symbol out)
  execute_process(COMMAND ${OBJDUMP} -d -r --no-show-raw-insn --disassemble=${symbol} ${OBJECT}
                  OUTPUT_VARIABLE text COMMAND_ERROR_IS_FATAL ANY)
  set(${out} "${text}" PARENT_SCOPE)
endfunction()

set(prefetch "prefetch|prfm")  # x86, ARM
disassemble(probe_wrapper wrapper)
if(NOT wrapper MATCHES "[ \t](${prefetch})")
  message(FATAL_ERROR "TwoGenerationFilter::prefetch() compiled to nothing:\n${wrapper}")
endif()

disassemble(probe_caller caller)
string(REGEX MATCHALL "[ \t](${prefetch})|R_[A-Z0-9_]+[ \t]+probe_wrapper|(call|jmp|bl?)[ \t]+[0-9a-f]+ <probe_wrapper"
       reached "${caller}")
list(LENGTH reached count)
if(count LESS 2)
  message(FATAL_ERROR "calls of a function that only prefetches were dropped:\n${caller}")
endif()
