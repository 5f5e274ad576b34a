# lesson.sh is how the scripts of the lessons begin: they source it with the
# lesson's folder in $here and the sentinel program as their first argument. It
# makes the folder $dir, in which $dir/work becomes the workspace, and defines
# say and model.
sentinel=${1:?usage: $0 BINARY}
case $sentinel in
*/*) sentinel=$(cd "$(dirname "$sentinel")" && pwd)/$(basename "$sentinel") ;;
esac

# What a lesson builds is no part of our own module.
export GOWORK=off GOFLAGS=

dir=$(mktemp -d "${TMPDIR:-/tmp}/sentinel-lesson.XXXXXX")
dir=$(cd "$dir" && pwd)
# What a lesson writes counts without a question, as what you write does.
export SENTINEL_TRUST_ROOTS="$dir"
# The nearest .sentinel upwards holds the state: so it is outside the workspace.
mkdir "$dir/.sentinel"

if [ -t 1 ]; then
	say() { printf '\n\033[1m== %s\033[0m\n' "$*"; }
else
	say() { printf '\n== %s\n' "$*"; }
fi

# model says who answers in the lesson: the model that the environment names, or
# the recording if it names none or SENTINEL_DEMO=replay. It leaves the flag for
# `sentinel run` in $how and $cassette.
model() {
	if [ -z "${OPENAI_API_KEY:-}${OPENAI_BASE_URL:-}${ANTHROPIC_API_KEY:-}${OLLAMA_HOST:-}" ] || [ "${SENTINEL_DEMO:-}" = replay ]; then
		how=--replay cassette=$here/cassette.jsonl
		say "sentinel run $1 --replay cassette.jsonl"
		echo "The model's answers come from a recording, cassette.jsonl: no model is asked."
		echo "All else is real: what is run, read, written and committed."
	else
		how=--record cassette=$dir/cassette.jsonl
		say "sentinel run $1 --record cassette.jsonl"
		echo "The model that your environment names is asked; what it answers is recorded."
		echo "With SENTINEL_DEMO=replay the example's own recording answers instead."
	fi
	echo
}

# lost ends a script whose lesson did not work out.
lost() {
	echo "$*" >&2
	echo "what happened is in $dir; look with: cd $dir && $sentinel list" >&2
	exit 1
}
