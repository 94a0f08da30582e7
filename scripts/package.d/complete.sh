# shellcheck shell=bash
# complete.sh COMPLETIONS WORD…: what bash offers for the last word.
set -euo pipefail

# shellcheck source=/dev/null
source "$1"
shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMPREPLY=()
"_${1//-/_}"
printf '%s\n' "${COMPREPLY[@]}"
