#!/bin/sh
# tickets.sh BINARY types the lines of README.md that begin with $, in a temporary
# folder, and shows what they print.
#
# A model answers if the environment names one (OPENAI_API_KEY, OPENAI_BASE_URL,
# ANTHROPIC_API_KEY or OLLAMA_HOST); else its answers come from cassette.jsonl.
# SENTINEL_DEMO=replay takes the recording in any case.
#
# Needs sh and git, and with the recording no network. Ends with 0 only if the
# branch that came of the ticket is merged and its tests pass.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lesson.sh"
# This lesson's project has a folder for its sentinels itself.
rmdir "$dir/.sentinel"
unset SENTINEL_URL SENTINEL_TOKEN

# The lines name the program and the lesson as seen from the repository.
mkdir -p "$dir/bin" "$dir/examples"
ln -s "$sentinel" "$dir/bin/sentinel"
ln -s "$here" "$dir/examples/tickets"
sed -n 's/^\$ //p' "$here/README.md" >"$dir/lines"
model "README.md: sentinel serve"
if [ "$how" = --record ]; then
	sed "s|--replay [^ ]*|--record $cassette|" "$dir/lines" >"$dir/live"
	mv "$dir/live" "$dir/lines"
fi

# The server ends with the lines, whatever happens.
{
	echo 'set -e'
	echo 'trap '\''[ -z "${!-}" ] || kill "$!" 2>/dev/null || :; : >"'"$dir"'/ended"'\'' EXIT'
	sed 's/.*/printf "\\n$ %s\\n" "$(cat <<'\''LINE'\''\n&\nLINE\n)"\n&/' "$dir/lines"
} >"$dir/page.sh"
cd "$dir"
sh "$dir/page.sh" &
page=$! left=180
while [ ! -e "$dir/ended" ]; do
	left=$((left - 1))
	if [ $left -eq 0 ]; then
		kill "$page"
	fi
	sleep 1
done
wait "$page" || {
	code=$?
	cat "$dir/shop/serve.log" >&2
	lost "tickets: the lines ended with exit code $code"
}

say "the project is in $dir/shop"
if ! sh "$dir/shop/test.sh" || [ "$(git -C "$dir/shop" rev-parse main)" != "$(git -C "$dir/shop" rev-parse sentinel/T-1)" ]; then
	lost "tickets: the repair is not merged"
fi
