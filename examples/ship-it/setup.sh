#!/bin/sh
# setup.sh DIR green|red makes the folder the lesson works in: a repository with
# one commit that its remote, the bare repository DIR/../remote.git, has, and one
# that it does not have yet. With red that second commit breaks the test.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
dir=$1
kind=$2

mkdir -p "$dir"
remote=$(cd "$dir/.." && pwd)/remote.git
cp -R "$here/project/." "$dir"
cd "$dir"
git init -q
git symbolic-ref HEAD refs/heads/main
git config user.name "A Developer"
git config user.email developer@example.com
git config commit.gpgsign false
git add .
GIT_AUTHOR_DATE="2025-01-01T12:00:00Z" GIT_COMMITTER_DATE="2025-01-01T12:00:00Z" \
	git commit -q -m "Begin"

git init -q --bare "$remote"
git --git-dir="$remote" symbolic-ref HEAD refs/heads/main
git remote add origin "$remote"
git push -q -u origin main

case $kind in
green) sed 's/greets by name/greets somebody by name/' greet/greet.go >greet/new ;;
red) sed 's/Hello, /Helo, /' greet/greet.go >greet/new ;;
*) echo "setup.sh: $kind is neither green nor red" >&2 && exit 2 ;;
esac
mv greet/new greet/greet.go
git commit -q -a -m "Change the greeting"
