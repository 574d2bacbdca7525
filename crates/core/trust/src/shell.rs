//! The rule for shells on hosts where this program is not installed. The test `the_shell_decides_alike` checks that it
//! is the same rule.

/// Defines `safe FILE`, which succeeds if [`crate::check`] accepts FILE. It needs `ls`, `readlink` and `id`.
///
/// It runs in a subshell, so its variables do not clash with others. In the ten letters of a mode, `w` is write
/// permission of group or others, and `t` or `T` the sticky bit.
pub const SHELL: &str = r#"safe() (
    case $1 in /*) ;; *) exit 1 ;; esac
    set -f; unset IFS
    own=$(id -u); left=${1#/}; here=; links=0; overflow=
    { read -r overflow </proc/sys/kernel/overflowuid; } 2>/dev/null
    look() {
        set -- $(LC_ALL=C ls -ldn "$1" 2>/dev/null)
        mode=$1; owner=$3
        [ -n "$mode" ] || exit 1
    }
    owned() { [ "$owner" = 0 ] || [ "$owner" = "$own" ] || { [ "$owner" = "$overflow" ] && [ "$owner" = "$top" ]; } || exit 1; }
    enter() {
        shared=
        case $mode in ?????w*|????????w*) shared=yes ;; esac
        case $shared$mode in yes?????????[tT]*) ;; yes*) exit 1 ;; esac
    }
    look /; top=$owner; owned; enter
    while [ -n "$left" ]; do
        part=${left%%/*}
        case $left in */*) left=${left#*/} ;; *) left= ;; esac
        case $part in
        ''|.) continue ;;
        ..) here=${here%/*}; look "$here/"; owned; enter; continue ;;
        esac
        look "$here/$part"; owned
        case $mode in d*) here=$here/$part; enter; continue ;; esac
        [ -z "$shared" ] || exit 1
        case $mode in
        l*)
            links=$((links + 1)); [ $links -le 40 ] || exit 1
            part=$(readlink "$here/$part") || exit 1
            case $part in /*) here=; look /; enter ;; esac
            left=$part/$left
            case $left in */) left=${left%/} ;; esac
            ;;
        -*)
            [ -z "$left" ] || exit 1
            case $mode in ?????w*|????????w*) exit 1 ;; esac
            [ -x "$here/$part" ]; exit
            ;;
        *) exit 1 ;;
        esac
    done
    exit 1
)
"#;

/// Defines `s FILE` in few characters, for lines of limited length. It checks the path as written and with symbolic
/// links resolved, and refuses relative paths. If a link leads to another link, the path between them is not checked.
pub const SHORT: &str = r#"s(){ case $1 in [!/]*)return 1;esac;[ -k "${1%/*}" ]&&return 1;for q in "$1" "$(readlink -f "$1")";do set --;while [ "$q" ];do set -- "$@" "$q";q=${q%/*};done;q=$(find / "$@" -prune \( ! -user 0 ! -user $(id -u) -o ! -type l -perm /22 ! -perm -1000 \))&&[ -z "$q" ]||return;done;}"#;
