#!/bin/sh
# demo.sh BINARY lets the sentinel in build-fix.json repair a copy of project/.
#
# A model answers if the environment names one (OPENAI_API_KEY, OPENAI_BASE_URL,
# ANTHROPIC_API_KEY or OLLAMA_HOST); else its answers come from cassette.jsonl.
# SENTINEL_DEMO=replay takes the recording in any case.
#
# Needs sh, git and Go, and with the recording no network. Ends with 0 only if
# the project is green and the repair is committed.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lesson.sh"
sh "$here/setup.sh" "$dir/work"
cd "$dir/work"

say "a broken project, $dir/work: go test ./..."
if go test ./... 2>&1; then
	lost "demo: the project should be broken and is not"
fi

model build-fix.json
"$sentinel" run "$here/build-fix.json" "$how" "$cassette" || lost "demo: the run ended with exit code $?"

say "the project now: go test ./..."
go test -count=1 ./... || lost "demo: the tests are red"

say "the commit: git log --oneline, git show --stat --patch"
git --no-pager log --oneline
git --no-pager show --stat --patch -U1 --format= HEAD
if [ -n "$(git status --porcelain)" ] || [ "$(git rev-list --count HEAD)" -lt 2 ]; then
	lost "demo: the repair is not committed"
fi

say "where to look next"
cat <<END
  cd $dir/work
  $sentinel trace -v build-fix
      each step and call, with what was asked and answered
  $sentinel logs build-fix
      what you saw, with times
  $here/build-fix.json
      the loop
  $(dirname "$here")/README.md
      more lessons
Nothing but $dir and Go's build cache was written to.
END
