#!/bin/sh
# run.sh BINARY has a change reviewed, and the review posted to a chat room.
#
# A model answers if the environment names one (OPENAI_API_KEY, OPENAI_BASE_URL,
# ANTHROPIC_API_KEY or OLLAMA_HOST); else its answer comes from cassette.jsonl.
# SENTINEL_DEMO=replay takes the recording in any case. Needs sh and git.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lesson.sh"
sh "$here/setup.sh" "$dir/work"
cd "$dir/work"

say "the change, in $dir/work: git diff"
git --no-pager diff

model code-review.json
"$sentinel" run "$here/code-review.json" "$how" "$cassette" \
	--event '{"type":"git:push","source":"a developer","data":{"branch":"main"}}' ||
	lost "code-review: the run ended with exit code $?"

say "what was posted: sentinel exec collaboration/chat/history --room=general"
"$sentinel" exec collaboration/chat/history --room=general
