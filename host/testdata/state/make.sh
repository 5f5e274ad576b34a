#!/bin/sh
# Makes a fixture: the .sentinel folder that a version of sentinel leaves when it is
# killed, with runs in all states, tickets, large values, outputs and events.
# TestStateFixtures in package host opens every fixture of this folder.
#
#	make.sh PROGRAM NAME    writes NAME.tar.gz in the folder of this script
#
# It is executed once for each release, with the released program, and for each new
# format before it is changed. NAME is the version, or format-N.
set -eu
program=$(realpath "$1")
to=$(realpath "$(dirname "$0")")/$2.tar.gz
project=/tmp/sentinel-fixture # runs have the path, so it is that of no user
test ! -e "$project"
mkdir -p "$project/.sentinel/sentinels" "$project/config"
server=
trap 'test -z "$server" || kill -9 $server 2>/dev/null || true; rm -rf "$project"' EXIT
cd "$project"
export XDG_CONFIG_HOME="$project/config" XDG_CACHE_HOME="$project/cache"
write() { cat >".sentinel/sentinels/$1.json"; }

write done <<'JSON'
{"id": "done", "steps": [
  {"type": "shell", "command": "echo printed; head -c 100000 /dev/zero | tr '\\0' x", "outputTo": "big"},
  {"type": "emit", "event": "fixture:done", "data": {"n": 1}}
]}
JSON
write broken <<'JSON'
{"id": "broken", "steps": [{"type": "shell", "command": "echo no >&2; exit 3"}]}
JSON
write ask <<'JSON'
{"id": "ask", "steps": [{"type": "approve", "prompt": "Continue?"}, {"type": "set", "values": {"answer": "yes"}}]}
JSON
write event <<'JSON'
{"id": "event", "steps": [{"type": "wait", "event": "fixture:go", "outputTo": "went"}, {"type": "set", "values": {"answer": "gone"}}]}
JSON
write held <<'JSON'
{"id": "held", "loop": {"type": "count", "max": 3}, "steps": [{"type": "wait", "durationMs": 100}, {"type": "wait", "event": "fixture:never"}]}
JSON
write cut <<'JSON'
{"id": "cut", "steps": [{"type": "shell", "command": "echo begun; touch begun; sleep 600", "onInterrupt": "fail"}]}
JSON
write timed <<'JSON'
{"id": "timed", "trigger": {"type": "schedule", "cronExpression": "0 0 1 1 *"}, "steps": [{"type": "set", "values": {"a": 1}}]}
JSON

"$program" trust --yes >/dev/null 2>&1 || true
"$program" serve >"$project/log" 2>&1 &
server=$!
until test -S .sentinel/state/control.sock && "$program" -q list >/dev/null 2>&1; do sleep 0.2; done
for name in done broken ask event held cut; do "$program" -q start "$name" >/dev/null; done
"$program" -q exec ticket/create --title="First ticket" --description="Kept by a fixture" >/dev/null
"$program" -q exec ticket/create --title="Second ticket" --description="Kept by a fixture" >/dev/null
"$program" -q exec data/create --json '{"collection": "notes", "data": {"text": "a note"}}' >/dev/null
until "$program" -q -o json list --status completed | grep -q '"done"' &&
	"$program" -q -o json list --status failed | grep -q '"broken"' &&
	test -e begun; do sleep 0.2; done
held=$("$program" -q -o jsonl list | grep '"sentinel":"held"' | grep -o '[0-9a-f-]\{36\}' | head -1)
"$program" -q pause "$held" >/dev/null
until "$program" -q -o jsonl list --status paused | grep -q "$held"; do sleep 0.2; done
"$program" -q -o json list >&2
kill -9 $server
wait $server 2>/dev/null || true
rm -rf .sentinel/state/cache .sentinel/state/control.sock .sentinel/state/token .sentinel/state/ballast
# The module of the built-in steps is a blob, which an interrupted step needs. Fixtures
# with the same one share it.
modules=$(dirname "$to")/modules
find .sentinel/state/blobs -type f | while read -r blob; do
	if test "$(head -c 4 "$blob" | od -An -tx1 | tr -d ' ')" = 0061736d; then
		mkdir -p "$modules"
		name=$(echo "$blob" | sed 's|.*/blobs/||; s|/||g')
		test -e "$modules/$name.gz" || gzip -9 -n <"$blob" >"$modules/$name.gz"
		rm "$blob"
	fi
done
tar -C "$project" --owner=0 --group=0 --numeric-owner --sort=name -cf - .sentinel | gzip -9 >"$to"
ls -l "$to" >&2
