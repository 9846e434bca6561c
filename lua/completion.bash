# Completion of msched's words in bash.
_msched() {
  local word=${COMP_WORDS[COMP_CWORD]} before=${COMP_WORDS[COMP_CWORD - 1]} command=${COMP_WORDS[1]} i
  for ((i = 1; i < COMP_CWORD; i++)); do
    if [[ ${COMP_WORDS[i]} == -- ]]; then # what follows is the script's
      COMPREPLY=($(compgen -f -- "$word"))
      return
    fi
  done
  if ((COMP_CWORD == 1)); then
    COMPREPLY=($(compgen -W "apply run bench tune top show replay export db space doctor help --help --version" -- "$word")
      $(compgen -f -X '!*.lua' -- "$word"))
    return
  fi
  case $before in
  --policy) COMPREPLY=($(compgen -W "evolutionary replay_trace" -- "$word")) && return ;;
  --model) COMPREPLY=($(compgen -W "xgboost random" -- "$word")) && return ;;
  --rules | --db | --trace | --intrinsics | -o | --output) COMPREPLY=($(compgen -f -- "$word")) && return ;;
  --data) COMPREPLY=($(compgen -d -- "$word")) && return ;;
  esac
  local options=
  case $command in
  apply) options="--intrinsics --seed --json" ;;
  run) options="--trace --seed --json" ;;
  bench) options="replay gemm tune all growth --seconds --count --seed --profile --trials --target --peer --data --json --" ;;
  tune) options="--task --target --trials --seconds --seed --rules --policy --model --jobs --rule-timeout --simulate --db --json --" ;;
  top) options="-k --target --db --json" ;;
  show) options="--trace --lua --diff --explain --db --json" ;;
  replay) options="--target --db --json" ;;
  export) options="-o --target --db" ;;
  db) options="list check compact export import --db --json" ;;
  space) options="--target --rules --rule-timeout --seed --json --" ;;
  doctor) options="--json" ;;
  help) options="instructions queries apply run bench tune top show replay export db space doctor" ;;
  esac
  COMPREPLY=($(compgen -W "$options" -- "$word"))
  [[ $word == -* ]] || COMPREPLY+=($(compgen -f -- "$word"))
}
complete -o filenames -F _msched msched
