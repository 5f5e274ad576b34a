#!/bin/sh
# run.sh BINARY has a model find its way in code it does not know.
#
# A model answers if the environment names one (OPENAI_API_KEY, OPENAI_BASE_URL,
# ANTHROPIC_API_KEY or OLLAMA_HOST); else its answers come from cassette.jsonl.
# SENTINEL_DEMO=replay takes the recording in any case. Needs sh and git.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lesson.sh"
sh "$here/setup.sh" "$dir/work"
cd "$dir/work"

model explore-codebase.json
"$sentinel" run "$here/explore-codebase.json" "$how" "$cassette" -o json \
	--var query="Where are passwords checked, and what happens after too many wrong ones?" >"$dir/result.json" ||
	lost "explore: the run ended with exit code $?"

say "what it did: sentinel trace explore-codebase"
"$sentinel" trace explore-codebase

say "what it found: the text of \$findings, from run -o json"
text=$(sed -n 's/^ *"text": "\(.*\)",\{0,1\}$/\1/p' "$dir/result.json" | sed -n 's/\\"/"/g; 1p')
printf '%b\n' "$text"
