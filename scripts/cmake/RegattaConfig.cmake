# find_package(Regatta [COMPONENTS pvm nx express cros plotix cubix mpi]): defines an imported target Regatta::NAME for
# each installed library, and Regatta::regatta for Regatta's own interface. All paths are relative to this file.
#
# With the component mpi, a later find_package(MPI) takes Regatta's compilers and launcher. Without it, put their
# folder, which is in Regatta_MPI_BIN, into PATH, or set MPI_C_COMPILER.
get_filename_component(Regatta_PREFIX "${CMAKE_CURRENT_LIST_DIR}/../../.." REALPATH)
set(Regatta_MPI_BIN "${Regatta_PREFIX}/lib/regatta/mpi")
set(Regatta_COMMAND "${Regatta_PREFIX}/bin/regatta")

# Arguments: a library's name, its file, and its folder of headers. Static libraries that need threads and clocks add
# these themselves.
function(_regatta_library name file headers)
    if(TARGET Regatta::${name} OR NOT EXISTS "${Regatta_PREFIX}/${file}")
        return()
    endif()
    add_library(Regatta::${name} SHARED IMPORTED)
    set_target_properties(Regatta::${name} PROPERTIES
        IMPORTED_LOCATION "${Regatta_PREFIX}/${file}"
        INTERFACE_INCLUDE_DIRECTORIES "${Regatta_PREFIX}/${headers}")
endfunction()

_regatta_library(regatta lib/libregatta.so.0 include)
_regatta_library(pvm lib/regatta-pvm/libpvm3.so.3 include/regatta-pvm)
_regatta_library(nx lib/regatta-nx/libnx.so.0 include/regatta-nx)
foreach(_regatta_name express cros plotix)
    _regatta_library(${_regatta_name} lib/regatta-express/lib${_regatta_name}.so.0 include/regatta-express)
endforeach()
_regatta_library(mpi lib/regatta-mpi/libmpi_abi.so.1 include/regatta-mpi)
_regatta_library(cubix lib/regatta-express/libcubix.so.0 include/regatta-express)
if(TARGET Regatta::cubix)
    # Programs must be linked with Cubix' stdio in place of the C library's, although they name none of its functions.
    set_target_properties(Regatta::cubix PROPERTIES
        INTERFACE_COMPILE_OPTIONS "SHELL:-include cubix.h"
        INTERFACE_LINK_OPTIONS "LINKER:--no-as-needed"
        INTERFACE_LINK_LIBRARIES Regatta::express)
endif()
# The libraries load libregatta.so.0 by their own RUNPATH; the linker needs its location here.
foreach(_regatta_name pvm nx express cros plotix mpi)
    if(TARGET Regatta::${_regatta_name})
        set_target_properties(Regatta::${_regatta_name} PROPERTIES
            IMPORTED_LINK_DEPENDENT_LIBRARIES Regatta::regatta)
    endif()
endforeach()

set(Regatta_FOUND TRUE)
foreach(_regatta_name IN LISTS Regatta_FIND_COMPONENTS)
    if(TARGET Regatta::${_regatta_name})
        set(Regatta_${_regatta_name}_FOUND TRUE)
    elseif(Regatta_FIND_REQUIRED_${_regatta_name})
        set(Regatta_FOUND FALSE)
        set(Regatta_NOT_FOUND_MESSAGE "Regatta has no component ${_regatta_name}: there are regatta, pvm, nx, express, cros, plotix, cubix and mpi.")
    endif()
endforeach()

if(Regatta_mpi_FOUND)
    foreach(_regatta_pair "C|mpicc" "CXX|mpicxx" "Fortran|mpifort")
        string(REPLACE "|" ";" _regatta_pair "${_regatta_pair}")
        list(GET _regatta_pair 0 _regatta_language)
        list(GET _regatta_pair 1 _regatta_name)
        if(NOT DEFINED MPI_${_regatta_language}_COMPILER AND EXISTS "${Regatta_MPI_BIN}/${_regatta_name}")
            set(MPI_${_regatta_language}_COMPILER "${Regatta_MPI_BIN}/${_regatta_name}" CACHE FILEPATH "Regatta's compiler of programs of MPI")
        endif()
    endforeach()
    if(NOT DEFINED MPIEXEC_EXECUTABLE)
        set(MPIEXEC_EXECUTABLE "${Regatta_MPI_BIN}/mpiexec" CACHE FILEPATH "Regatta's launcher of programs of MPI")
    endif()
endif()
unset(_regatta_name)
unset(_regatta_pair)
unset(_regatta_language)
