//! What shells read: each asks the program itself for the words that may come next.

use crate::cli::args::Shell;

/// The program that kubectl looks for; a file in the PATH.
const KUBECTL: &str = r#"#!/bin/sh
# Save as kubectl_complete-emco in a folder of the PATH and make it executable: kubectl asks it to complete `kubectl emco`.
exec kubectl-emco __complete "$@"
"#;

// bash splits words at "=" and ":". A flag and its value are two words then, as they may be written; what a ":" divides is one word, and
// bash puts only what stands behind the last ":" into the line.
const BASH: &str = r#"# bash completion of kubectl-emco
_kubectl_emco() {
    local word end last before glued="" words=() found=()
    for word in "${COMP_WORDS[@]:1:COMP_CWORD}"; do
        if [[ $word == "=" ]]; then
            glued=""
        elif (( ${#words[@]} )) && [[ -n $glued || $word == ":" || $word == "::" ]]; then
            words[${#words[@]}-1]+=$word
            glued=""
            [[ $word == ":" || $word == "::" ]] && glued=yes
        else
            words+=("$word")
        fi
    done
    [[ ${COMP_WORDS[COMP_CWORD]} == "=" ]] && words+=("")
    while IFS= read -r word; do found+=("$word"); done < <(kubectl-emco __complete "${words[@]}" 2>/dev/null)
    COMPREPLY=()
    (( ${#found[@]} )) || return 0
    end=${found[${#found[@]}-1]}
    unset "found[${#found[@]}-1]"
    last=${words[${#words[@]}-1]}
    if [[ $COMP_WORDBREAKS == *:* && $last == *:* ]]; then
        before=${last%"${last##*:}"}
        found=("${found[@]#"$before"}")
    fi
    COMPREPLY=("${found[@]}")
    [[ $end == ":0" ]] && compopt -o default 2>/dev/null
    return 0
}
complete -F _kubectl_emco kubectl-emco
"#;

const ZSH: &str = r#"#compdef kubectl-emco
_kubectl-emco() {
    local -a found
    local end
    found=("${(@f)$(kubectl-emco __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
    end=$found[-1]
    found[-1]=()
    if [[ $end == ":0" ]]; then
        _files
    elif (( $#found )); then
        compadd -- "${found[@]}"
    fi
}
if [[ $funcstack[1] == "_kubectl-emco" ]]; then
    _kubectl-emco "$@"
else
    compdef _kubectl-emco kubectl-emco
fi
"#;

const FISH: &str = r#"# fish completion of kubectl-emco
function __kubectl_emco_complete
    set -l before (commandline -opc)
    set -e before[1]
    set -l last (commandline -ct)
    set -l found (kubectl-emco __complete $before "$last" 2>/dev/null)
    set -l end $found[-1]
    set -e found[-1]
    if test "$end" = ":0"
        __fish_complete_path "$last"
    else
        printf '%s\n' $found
    end
end
complete -c kubectl-emco -f -a '(__kubectl_emco_complete)'
"#;

/// The script of a shell.
pub const fn script(shell: Shell) -> &'static str {
    match shell {
        Shell::Bash => BASH,
        Shell::Zsh => ZSH,
        Shell::Fish => FISH,
        Shell::Kubectl => KUBECTL,
    }
}
