#!/bin/sh
# setup.sh DIR makes the folder the lesson works in: a copy of the broken project
# with one commit. Names and dates are fixed, so that every copy is the same.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1

mkdir -p "$dir"
cp -R "$here/project/." "$dir"
cd "$dir"
git init -q
git symbolic-ref HEAD refs/heads/main
git config user.name "Shop"
git config user.email shop@example.com
git config commit.gpgsign false
git add .
GIT_AUTHOR_DATE="2025-01-01T12:00:00Z" GIT_COMMITTER_DATE="2025-01-01T12:00:00Z" \
	git commit -q -m "Count lines"
