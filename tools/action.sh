#!/usr/bin/env bash
# The step of action.yml: audit data, write the summary and the outputs of the job, fail above a limit.
# Inputs come as INPUT_... in the environment and are never evaluated by the shell; lists have one item per line.
set -uo pipefail

lines() {  # the lines of a text that are not empty, into the array named by the first argument
  local -n into=$1
  into=()
  local line
  while IFS= read -r line; do
    [ -z "$line" ] || into+=("$line")
  done <<< "$2"
}

output() {
  [ -z "${GITHUB_OUTPUT:-}" ] || printf '%s=%s\n' "$1" "$2" >> "$GITHUB_OUTPUT"
}

summary=${GITHUB_STEP_SUMMARY:-/dev/null}
lines data "${INPUT_DATA:-}"
lines groups "${INPUT_GROUP:-group}"
lines more "${INPUT_ARGUMENTS:-}"
if [ ${#data[@]} -eq 0 ]; then
  echo "::error title=isocost::The input data is empty; name a file."
  exit 2
fi
options=(--score "${INPUT_SCORE:-score}" --label "${INPUT_LABEL:-label}" --cost "${INPUT_COST:-fnr}" --threshold "${INPUT_THRESHOLD:-0.5}")
for group in "${groups[@]}"; do
  options+=(--group "$group")
done
options+=(${more[@]+"${more[@]}"})
limit=()
[ -z "${INPUT_FAIL_ABOVE:-}" ] || limit=(--fail-above "$INPUT_FAIL_ABOVE")

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
isocost audit "${options[@]}" ${limit[@]+"${limit[@]}"} --json -- "${data[@]}" > "$work/audit.json" 2> "$work/said"
code=$?
cat "$work/said" >&2
output exit-code "$code"

if [ "$code" -gt 1 ]; then
  # A message of several lines is one annotation if its line ends are escaped.
  message=$(sed -e 's/%/%25/g' -e 's/\r/%0D/g' "$work/said" | awk 'NR > 1 { printf "%%0A" } { printf "%s", $0 }')
  echo "::error title=isocost could not audit the data::$message"
  { echo '### isocost could not audit the data'; echo '```text'; cat "$work/said"; echo '```'; } >> "$summary"
  exit "$code"
fi

python3 - "$work/audit.json" > "$work/numbers" <<'PYTHON'
import json, sys
audit = json.load(open(sys.argv[1], encoding="utf-8"))
verdict = audit["verdict"]
print(f"difference={audit['disparity']['difference']}")
print(f"established={str(verdict['established']).lower()}")
print(f"feasible={verdict['feasible']}")
PYTHON
[ -z "${GITHUB_OUTPUT:-}" ] || cat "$work/numbers" >> "$GITHUB_OUTPUT"
cat "$work/numbers"
isocost audit "${options[@]}" --format markdown -- "${data[@]}" >> "$summary" 2> /dev/null
if [ -n "${INPUT_REPORT:-}" ]; then
  isocost report "${options[@]}" --force --output "$INPUT_REPORT" -- "${data[@]}" || exit 2
  output report "$INPUT_REPORT"
fi
if [ "$code" -eq 1 ]; then
  echo "::error title=isocost::$(tr '\n' ' ' < "$work/said")"
  { echo; echo "**Failed:** $(tr '\n' ' ' < "$work/said")"; } >> "$summary"
fi
exit "$code"
