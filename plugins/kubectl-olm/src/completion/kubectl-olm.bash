# bash completion (3.2 and newer) of kubectl-olm. The candidates come from "kubectl-olm __complete"; the line is never evaluated.
_kubectl_olm() {
    local line=${COMP_LINE:0:COMP_POINT} word words=() count=0 i reply entry value directive
    # bash splits words at = and :. Join the parts that have no blank in between.
    for ((i = 0; i < COMP_CWORD; i++)); do
        word=${COMP_WORDS[i]}
        if ((count > 0)) && [[ $line == "$word"* ]]; then
            words[count - 1]+=$word
        else
            line=${line#"${line%%[![:space:]]*}"}
            words[count++]=$word
        fi
        line=${line#"$word"}
    done
    if ((count > 0)) && [[ -n $line && $line != [[:space:]]* ]]; then
        words[count - 1]+=$line
    elif ((count > 1)) && [[ -z $line ]]; then
        : # The last word ends at the cursor: --flag=
    else
        words[count++]=${line#"${line%%[![:space:]]*}"}
    fi
    for ((i = 1; i < count; i++)); do
        words[i]=${words[i]#[\"\']}
        words[i]=${words[i]%[\"\']}
    done

    reply=$("${words[0]/#\~/$HOME}" __complete "${words[@]:1}" 2>/dev/null) || return
    directive=${reply##*:}
    [[ $directive == [0-9] ]] || return
    # bash replaces only the part behind the last = or :.
    local typed=${words[count - 1]} before=""
    case $COMP_WORDBREAKS in *=*) [[ $typed == *=* ]] && before=${typed%"${typed##*=}"} ;; esac
    case $COMP_WORDBREAKS in *:*) [[ $typed == *:* ]] && before=${typed%"${typed##*:}"} ;; esac
    COMPREPLY=()
    while IFS= read -r entry; do
        value=${entry%%$'\t'*}
        [[ $value == :[0-9] || -z $value ]] || COMPREPLY+=("${value#"$before"}")
    done <<<"$reply"
    if ((directive & 2)); then
        compopt -o nospace 2>/dev/null
    fi
    if ((${#COMPREPLY[@]} == 0)) && ! ((directive & 4)); then
        compopt -o default 2>/dev/null
    fi
}
complete -F _kubectl_olm kubectl-olm
