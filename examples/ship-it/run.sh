#!/bin/sh
# run.sh BINARY runs the tests of two repositories and pushes the one that is
# green. Needs sh, git and Go; no model takes part.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/../lesson.sh"

for kind in green red; do
	mkdir "$dir/$kind"
	sh "$here/setup.sh" "$dir/$kind/work" "$kind"
	cd "$dir/$kind/work"

	say "$kind: the commit that $dir/$kind/remote.git does not have"
	git --no-pager log --oneline origin/main..main
	git --no-pager show -U0 --format= main

	say "$kind: sentinel run ship-it.json"
	"$sentinel" run "$here/ship-it.json" || lost "ship-it: the run ended with exit code $?"

	say "$kind: what the remote has now"
	git --no-pager --git-dir="$dir/$kind/remote.git" log --oneline main
done

say "what was told to whoever listens: sentinel events"
"$sentinel" events
