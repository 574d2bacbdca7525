# What mpicc and mpifort have in common, read by both: the compiler with the options that programs of MPI need, and the options by which
# users and build systems ask for these. The caller has set
#   name        what it is called
#   language    C, C++ or Fortran
#   prefix      where Regatta is installed
#   compiler    words, separated by blanks, as make has it
#   selects     the option that names another compiler, and `variable`, which does so as well
#   libraries   options for linking, separated by blanks
#   prepare     a command that may set
#               `modules`, a folder of modules for this compiler, and `options`, what else it needs
# shellcheck shell=sh disable=SC2154,SC2086

usage() {
    cat <<END
$name: the compiler of $language ($compiler) with the options that programs of MPI need on Regatta. It takes that compiler's options, and
  -show                             print the command and do not run it
  -compile_info, -link_info         the same without the options for linking, or without those for compiling
  --showme:compile, --showme:link   print these options alone
  --showme:command, --showme:incdirs, --showme:libdirs, --showme:libs, --showme:version
                                    print the compiler, folders of headers, folders of libraries, names of libraries, the version
  -v                                tell the versions of Regatta and of the compiler
  $selects=COMPILER, or the variable $variable
                                    another compiler
END
}

# Does what the arguments say; it does not return.
wrapper() {
    include=$prefix/include/regatta-mpi
    folder=$prefix/lib/regatta-mpi
    version=$(sed -n 's/^Version: //p' "$prefix/lib/pkgconfig/regatta-mpi.pc")
    mode=run compiles=yes links=yes verbose=
    left=$#
    while [ "$left" -gt 0 ]; do
        argument=$1
        shift
        left=$((left - 1))
        case $argument in
        -show | --show | -showme | --showme) mode=show ;;
        -compile_info | -compile-info | -show-compile-info | --compile-info | --show-compile-info) mode=show links= ;;
        -link_info | -link-info | -show-link-info | --link-info | --show-link-info) mode=show compiles= ;;
        -showme:* | --showme:*) mode=${argument#*:} ;;
        "$selects="*) compiler=${argument#*=} ;;
        -help | --help) mode=help ;;
        -v)
            verbose=yes
            set -- "$@" "$argument"
            ;;
        # Nothing is linked then, and some compilers complain of what they do not use.
        -c | -S | -E | -M | -MM | -fsyntax-only)
            links=
            set -- "$@" "$argument"
            ;;
        *) set -- "$@" "$argument" ;;
        esac
    done
    case $mode in
    run | show) ;;
    compile) links= && set -- ;;
    link) compiles= && set -- ;;
    help) usage && exit ;;
    version) echo "$name: Regatta $version (Language: $language)" && exit ;;
    command) echo "$compiler" && exit ;;
    libdirs) echo "$folder" && exit ;;
    libs) echo "$libraries" | sed 's/-l//g' && exit ;;
    incdirs) ;;
    *)
        echo "$name: unknown option --showme:$mode; valid are compile, link, command, incdirs, libdirs, libs and version" >&2
        exit 1
        ;;
    esac
    if [ -n "$verbose" ] && [ "$mode" = run ]; then
        echo "$name for Regatta version $version"
        # Without anything to compile there is nothing to link.
        [ $# -gt 1 ] || exec $compiler -v
    fi
    modules='' options=''
    [ -z "$compiles" ] || $prepare
    if [ "$mode" = incdirs ]; then
        echo "$include${modules:+ $modules}"
        exit
    fi
    [ -z "$compiles" ] || set -- "-I$include" ${modules:+"-I$modules"} $options "$@"
    [ -z "$links" ] || set -- "$@" "-L$folder" "-Wl,-rpath,$folder" $libraries
    case $mode in
    run) exec $compiler "$@" ;;
    show) echo "$compiler $*" ;;
    *) echo "$*" ;;
    esac
    exit
}
