# Completion of msched's words in bash. What there is, `msched help` says.

# The words that an option, named in lines of the help, may be followed by: sets COMPREPLY; fails for one that takes none.
_msched_value() { # the lines, the option, what is typed of its value
  local value words="" each
  value=$(sed -nE "s/^  (-[a-z], )?$2 ([^ ]+)( .*)?$/\2/p; s/^  $2, --[a-z-]+ ([^ ]+)( .*)?$/\1/p" <<<"$1" | head -n 1)
  [[ $value ]] || return 1
  COMPREPLY=()
  for each in ${value//|/ }; do
    case $each in
    FILE | PATH) COMPREPLY+=($(compgen -f -- "$3")) ;;
    DIR) COMPREPLY+=($(compgen -d -- "$3")) ;;
    PYTHON) COMPREPLY+=($(compgen -c -f -- "$3")) ;;
    [a-z]*) words+=" $each" ;;
    esac
  done
  COMPREPLY+=($(compgen -W "$words" -- "$3"))
}

# What may stand where an ID is asked for and begins as what is typed, of the store that was named so far.
_msched_ids() {
  local i db=()
  for ((i = 2; i < COMP_CWORD - 1; i++)); do [[ ${COMP_WORDS[i]} == --db ]] && db=(--db "${COMP_WORDS[i + 1]}"); done
  echo best
  "${COMP_WORDS[0]}" db words "${db[@]}" -- "${COMP_WORDS[COMP_CWORD]}" 2>/dev/null
}

_msched() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i commands help words
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then # what follows is the script's
      COMPREPLY=($(compgen -f -- "$word"))
      return
    fi
  done
  # After ops: or suite:, which bash takes for words of their own.
  if [[ $word == : ]]; then word="" i=1; elif [[ $before == : ]]; then before=${COMP_WORDS[COMP_CWORD - 2]} i=1; else i=0; fi
  if ((i)) && [[ $before == ops || $before == suite ]]; then
    COMPREPLY=($(compgen -W "$("${COMP_WORDS[0]}" help ops 2>/dev/null | sed -nE "s/^  $before:([a-z0-9_]+).*/\1/p")" -- "$word"))
    return
  fi
  commands=$("${COMP_WORDS[0]}" help commands 2>/dev/null | sed -nE '/^commands:/,/^$/s/^  ([a-z]+) .*/\1/p')
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "$commands --help --version" -- "$word") $(compgen -f -X '!*.lua' -- "$word"))
    return
  fi
  [[ " "$commands" " == *[[:space:]]"$command"[[:space:]]* ]] || { COMPREPLY=($(compgen -f -- "$word")) && return; }
  help=$("${COMP_WORDS[0]}" help "$command" 2>/dev/null)
  [[ $before == -* ]] && _msched_value "$help" "$before" "$word" && return
  words=$(sed -nE "s/^  (-[a-z]), (--[a-z-]+) .*/\1 \2/p; s/^  (-[a-z-]*)( .*)?$/\1/p" <<<"$help")
  # and the words in small letters of the command's forms
  words+=" "$(sed -nE "s/^(usage:|      ) msched $command ([^-]*).*/ \2/p" <<<"$help" | grep -oE '[^A-Z…][a-z]{2,}' | tr -d '[ |')
  [[ $command == help ]] && words+=" instructions queries commands terms targets $commands"
  if [[ $word != -* ]]; then
    case $command:${COMP_WORDS[2]} in
    show:* | replay:* | export:* | diff:* | db:pin | db:unpin) words+=" "$(_msched_ids) ;;
    db:delete) words+=" "$(_msched_ids | grep -xE '[0-9a-f]{4,}') ;;
    esac
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
  [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _msched msched
