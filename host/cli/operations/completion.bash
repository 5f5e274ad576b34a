# The package bash-completion has this function, and not each system has the package. readline splits words at
# the characters of COMP_WORDBREAKS, also within --input=a:b. Those of the option -n do not split here.
if ! declare -F _get_comp_words_by_ref >/dev/null 2>&1; then
    _get_comp_words_by_ref()
    {
        local kept="" line=$COMP_LINE word i n=-1
        if [[ $1 == -n ]]; then
            kept=$2
        fi
        words=()
        for ((i = 0; i < ${#COMP_WORDS[@]}; i++)); do
            word=${COMP_WORDS[i]}
            if ((n >= 0)) && [[ -n $kept && $line != [[:blank:]]* && ($word == ["$kept"]* || ${words[n]} == *["$kept"]) ]]; then
                words[n]+=$word
            else
                words[++n]=$word
            fi
            if ((i == COMP_CWORD)); then
                cword=$n
            fi
            line=${line#"${line%%[![:blank:]]*}"}
            line=${line#"$word"}
        done
        cur=${words[cword]}
        prev=""
        if ((cword > 0)); then
            prev=${words[cword - 1]}
        fi
    }
fi

