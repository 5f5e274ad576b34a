#!/bin/sh
# test.sh checks count.sh.
set -eu
cd "$(dirname "$0")"
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT

# want NAME NUMBER TEXT counts the lines of a file with a name and a text.
want() {
	printf "$3" >"$dir/$1"
	got=$(sh count.sh "$dir/$1") || { echo "not ok: count.sh $1 ended with exit code $?"; exit 1; }
	[ "$got" = "$2" ] || { echo "not ok: count.sh $1 printed $got, want $2"; exit 1; }
	echo "ok: $1 has $2"
}

want lines.txt 2 'one\n\ntwo\n'
want empty.txt 0 ''
