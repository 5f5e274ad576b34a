#!/bin/sh
# tour.sh BINARY does what a new user of `sentinel serve` does, on real files,
# and checks what comes of it: a schedule, live edits, kill -9, events between
# sentinels, a webhook, retries, a clean end. Needs sh, git, go, curl, openssl.
#
# The review in it is written by a model if the environment names one
# (OPENAI_API_KEY, OPENAI_BASE_URL, ANTHROPIC_API_KEY or OLLAMA_HOST); else it
# comes from the recording of ../code-review. SENTINEL_DEMO=replay takes the
# recording in any case.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lesson.sh"
# This lesson's project has a folder for its sentinels itself.
rmdir "$dir/.sentinel"
review=$here/../code-review
server='' follower='' log=/dev/null lives=0
unset SENTINEL_URL SENTINEL_TOKEN

# Whatever happens, the script leaves no process behind.
trap 'kill -9 $server $follower 2>/dev/null || :' EXIT

sentinel() { "$sentinel" "$@"; }
ok() { echo "   ok: $*"; }
broken() {
	echo "NOT SO: $*" >&2
	tail -n 20 "$log" >&2
	lost "tour: it did not go as it should"
}

# show COMMAND... prints a command and what it says, and keeps that in $said.
show() {
	echo "\$ $*"
	said=$("$@" 2>&1) || { echo "$said"; broken "exit code $? of: $*"; }
	echo "$said"
}

# said TEXT checks that the last command said so.
said() {
	case $said in
	*"$1"*) ok "it says $1" ;;
	*) broken "it does not say $1" ;;
	esac
}

# until_so WHAT COMMAND... waits for a command to succeed, 20 s at most.
until_so() {
	what=$1 tries=200
	shift
	until "$@" >"$dir/last" 2>&1; do
		tries=$((tries - 1))
		[ $tries -gt 0 ] || { cat "$dir/last" >&2; broken "$what"; }
		sleep 0.1
	done
	ok "$what"
}

# api PATH [BODY] asks the server as any program can: GET, or POST with a body.
api() {
	path=$1
	shift
	[ $# -eq 0 ] || set -- -H 'Content-Type: application/json' -d "$1"
	curl -sS --fail-with-body -H "Authorization: Bearer $SENTINEL_TOKEN" "$@" "$SENTINEL_URL$path"
}

# field NAME takes the first text or number of that name out of JSON.
field() { sed -n "s/.*\"$1\": *\"\{0,1\}\([^\",}]*\).*/\1/p" | head -n 1; }

# messages ROOM prints the texts of a room, one a line.
messages() {
	sentinel -q exec collaboration/chat/history --room="$1" --limit=500 | sed -n 's/^      "text": "\(.*\)",\{0,1\}$/\1/p'
}
has() { messages "$1" | grep -q -- "$2"; }
count() { messages "$1" | wc -l | tr -d ' '; }
more() { [ "$(count "$1")" -gt "$2" ]; }

# status NAME prints how the newest run of a sentinel stands.
status() { sentinel -q status "$1" | sed -n 's/^status *//p'; }
is() { [ "$(status "$1")" = "$2" ]; }

# serve starts the server in the background, on a port that is free, and finds
# out its address as a person would: from its log.
serve() {
	lives=$((lives + 1))
	log=$dir/serve.$lives.log
	echo "\$ sentinel serve --listen 127.0.0.1:0 $* &"
	"$sentinel" serve --listen 127.0.0.1:0 "$@" >"$log" 2>&1 &
	server=$!
	until_so "the server is up" grep -q msg=serving "$log"
	SENTINEL_URL=$(sed -n 's/.*msg=serving.* url=\([^ ]*\).*/\1/p' "$log")
}

say "a project: a repository, and an empty folder for sentinels"
sh "$review/setup.sh" "$dir/work"
cd "$dir/work"
git apply -R "$review/change.patch"
echo "$dir/work"

say "serve it"
# What hooks must be signed with; see sentinels/hook.json.
export TOUR_SECRET=not-much-of-a-secret
if [ -z "${OPENAI_API_KEY:-}${OPENAI_BASE_URL:-}${ANTHROPIC_API_KEY:-}${OLLAMA_HOST:-}" ] || [ "${SENTINEL_DEMO:-}" = replay ]; then
	echo "The model's answer is scripted: it comes from a recording, code-review/cassette.jsonl."
	echo "No model is asked. All else is real."
	set -- --replay "$review/cassette.jsonl"
else
	echo "The model that your environment names writes the review."
	set --
fi
serve "$@"
SENTINEL_TOKEN=$(sentinel -q token)
echo "Below, api PATH [BODY] is: curl -H \"Authorization: Bearer \$(sentinel token)\" [-d BODY] \$SENTINEL_URL/PATH"
show sentinel list
said "nothing yet"
show curl -sS "$SENTINEL_URL/ready"
said ok

say "drop a file: it runs on its schedule"
cp "$here/sentinels/heartbeat.json" .sentinel/sentinels/
until_so "it beats every second" more beats 1
show api /v1/sentinels/heartbeat/triggers
said '"next"'
messages beats | sort | uniq -d | grep . && broken "a schedule fired twice"
show rm .sentinel/sentinels/heartbeat.json
until_so "without its file it is gone" sh -c '! "$0" -q list | grep -q "^heartbeat"' "$sentinel"

say "edit steps while they loop"
cp "$here/sentinels/counter.json" .sentinel/sentinels/
until_so "counter loops" has count "^pass 3$"
show sentinel step update --sentinelId=counter --index=0 --params='{"room":"count","message":"PASS $iteration"}'
until_so "the next pass does the new thing" has count "^PASS"
show sentinel step add --sentinelId=counter --index=1 --step='{"command":"code/tree","outputTo":"files"}'
show sentinel step list --sentinelId=counter
said code/tree
looks_at_tree() { api /v1/runs/"$run"/trace | grep -q code/tree; }
run=$(sentinel -q -o json status counter | field id)
until_so "and the one after that looks at the tree" looks_at_tree
show sentinel step remove --sentinelId=counter --index=1
show sentinel revisions counter
trace_shows() { sentinel -q trace counter >"$dir/trace" && grep -q "revision $1" "$dir/trace"; }
for revision in 1 2 3 4; do
	until_so "the trace has passes of revision $revision" trace_shows $revision
done
show cat .sentinel/sentinels/counter.json
said "PASS"
said "The comments of this file stay"

say "an edit that cannot be is refused, and changes nothing"
echo "\$ sentinel step add --sentinelId=counter --step='{\"type\":\"comand\"}'"
if sentinel step add --sentinelId=counter --step='{"type":"comand"}' >"$dir/last" 2>&1; then
	cat "$dir/last"
	broken "a step of a type that is none was taken"
fi
cat "$dir/last"
if sentinel -q revisions counter | grep '^5 '; then broken "a refused edit made a revision"; fi
ok "there is no revision 5"

say "kill -9"
before=$(count count)
echo "\$ kill -9 $server    # after $before passes"
kill -9 $server
wait $server 2>/dev/null || :
serve "$@"
cat "$log"
until_so "the loop goes on" more count $((before + 5))
[ "$(sentinel -q -o json status counter | field id)" = "$run" ] || broken "it is another run"
ok "it is the same run"
# Each pass once, none left out, whenever the process died.
messages count | sed 's/.* //' >"$dir/passes"
seq 1 "$(wc -l <"$dir/passes")" | cmp - "$dir/passes" || broken "a pass is missing, or was made twice"
ok "$(wc -l <"$dir/passes" | tr -d ' ') passes, each made once"

say "pause, resume, stop"
show sentinel pause counter
until_so "it is paused" is counter paused
before=$(count count)
sleep 0.5
[ "$(count count)" = "$before" ] || broken "a paused run went on"
show api /v1/runs/"$run"/resume '{}'
until_so "it goes on" more count "$before"
show sentinel stop counter
is counter stopped || broken "it is not stopped"

say "two sentinels, chained by events"
echo "developer commits when a file is saved, and says so: git:push."
echo "code-review, the second example of the specification as it is, starts at that and posts to the chat."
echo "developer starts at what is posted."
(cd "$here" && go build -o "$dir/follow" ./follow)
# The live feed by the Go client, beside all that comes.
export SENTINEL_URL SENTINEL_TOKEN
"$dir/follow" >"$dir/feed" 2>&1 &
follower=$!
# It has the address and the token; we ask by the socket in the state folder.
url=$SENTINEL_URL token=$SENTINEL_TOKEN
unset SENTINEL_URL SENTINEL_TOKEN # they are no longer exported
SENTINEL_URL=$url SENTINEL_TOKEN=$token
show sentinel create --file="$review/code-review.json"
cp "$here/sentinels/developer.json" .
show api /v1/commands/sentinel/create '{"file":"developer.json"}'
# A watch that has begun sees what is emitted from then on.
watched() { api /v1/events '{"event":"tour:begins"}' >/dev/null && grep -q tour:begins "$dir/feed"; }
until_so "the live feed shows events" watched
echo "\$ git apply change.patch    # somebody saves accounts/accounts.go"
git apply "$review/change.patch"
until_so "A commits" sh -c 'git log -1 --format=%s | grep "Limit what is found"'
until_so "B reviews and posts" has general .
until_so "A takes the review" test -s REVIEW.txt
cat REVIEW.txt
show git log --oneline
until_so "the live feed saw all of it" grep -q review:taken "$dir/feed"
grep -v tour:begins "$dir/feed"
kill $follower
follower=''
show sentinel events 'git:*'
said git:push
show sentinel list

say "go on from where it failed"
show sentinel load "$here/sentinels/release.json"
show api /v1/sentinels/release/runs '{}'
until_so "it fails: nobody approved" is release failed
touch approved
show sentinel retry release --from 1
until_so "it is released" is release completed
[ "$(messages releases | tr '\n' ' ')" = "built released " ] || broken "a step before the failed one was made again"
ok "and built once"

say "a webhook with a signature"
show sentinel create --file="$here/sentinels/hook.json"
body='{"text":"hello"}'
signature=sha256=$(printf %s "$body" | openssl dgst -sha256 -hmac "$TOUR_SECRET" | sed 's/.* //')
hook() { curl -sS -w '\n%{http_code}\n' -H 'Content-Type: application/json' -H "X-Hub-Signature-256: $1" -d "$body" "$SENTINEL_URL/v1/hooks/hook"; }
show hook "$signature"
said started
until_so "it ran" has hooks "^a webhook says hello$"
show hook sha256=0000000000000000000000000000000000000000000000000000000000000000
said 401

say "what the machine room sees"
show sentinel doctor
metrics() { api /metrics | grep -E '^sentinel_(events|runs|iterations|trigger_fires)_total'; }
show metrics
said "sentinel_events_total"
echo "\$ curl \$SENTINEL_URL/v1/sentinels    # without the token"
curl -sS -w '\n%{http_code}\n' "$SENTINEL_URL/v1/sentinels" | tee "$dir/last"
grep -q '^401$' "$dir/last" || broken "the API answers without a token"

say "an end in order"
show sentinel create --file="$here/sentinels/slow.json"
show api /v1/sentinels/slow/runs '{}'
until_so "slow is in its step" sh -c '"$0" -q step list --sentinelId=slow | grep "^0 .* running"' "$sentinel"
echo "\$ kill $server"
kill $server
code=0
wait $server || code=$?
server=''
tail -n 2 "$log"
[ $code = 0 ] || broken "the server ended with exit code $code"
[ "$(cat slow.txt)" = whole ] || broken "the step under way was cut off"
ok "the step under way came to its end"
serve "$@"
until_so "the run goes on behind it" is slow completed
[ "$(wc -l <slow.txt | tr -d ' ')" = 1 ] || broken "the step was made again"
if grep -q 'did not end by itself' "$log"; then broken "that was no clean end"; fi
ok "and no decision was needed"
kill $server
wait $server || broken "the server ended with exit code $?"
server=''

say "the tour is over"
echo "All that was made is in $dir"
