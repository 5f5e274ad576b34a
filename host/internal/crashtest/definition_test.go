//go:build linux

package crashtest_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// scripts are the programs that steps start. Each writes one line when it
// begins to act and one when it has: kind, life, run, step, idempotency key,
// cookie of this start, name, iteration. An append of one line is one write.
var scripts = map[string]string{
	// act NAME SECONDS ITERATION does something that takes a moment.
	"act.sh": `note() { echo "$1 $VIRTUAL_ENV $SENTINEL_RUN $SENTINEL_STEP $SENTINEL_IDEMPOTENCY_KEY $SENTINEL_COOKIE $NAME $PASS" >> "$SENTINEL_WORKSPACE/effects"; }
NAME=$1 PASS=$3
note start; sleep $2; note end
echo "did $NAME nonce=$SENTINEL_COOKIE"
`,
	// job NAME - ITERATION writes for a while in the background and leaves a
	// grandchild in a session of its own.
	"job.sh": `note() { echo "$1 $VIRTUAL_ENV $SENTINEL_RUN $SENTINEL_STEP $SENTINEL_IDEMPOTENCY_KEY $SENTINEL_COOKIE $NAME $PASS" >> "$SENTINEL_WORKSPACE/effects"; }
NAME=$1 PASS=$3
note start
setsid sleep 600 </dev/null >/dev/null 2>&1 &
for i in 1 2 3 4 5; do echo "tick $i"; sleep 0.03; done
note end
echo "job done"
`,
	// server NAME - ITERATION stays until it is ended.
	"server.sh": `note() { echo "$1 $VIRTUAL_ENV $SENTINEL_RUN $SENTINEL_STEP $SENTINEL_IDEMPOTENCY_KEY $SENTINEL_COOKIE $NAME $PASS" >> "$SENTINEL_WORKSPACE/effects"; }
NAME=$1 PASS=$3
note start
setsid sh -c 'trap "" TERM HUP; sleep 600 & wait' &
echo "ready"
exec sleep 600
`,
	// poison NAME - ITERATION kills the host.
	"poison.sh": `echo "start $VIRTUAL_ENV $SENTINEL_RUN $SENTINEL_STEP $SENTINEL_IDEMPOTENCY_KEY $SENTINEL_COOKIE $1 $3" >> "$SENTINEL_WORKSPACE/effects"
kill -9 $(cut -d " " -f 4 /proc/$PPID/stat) # the host, above the supervisor
sleep 600
`,
	// hang NAME - ITERATION acts at once and then stays, until the file go is there.
	"hang.sh": `note() { echo "$1 $VIRTUAL_ENV $SENTINEL_RUN $SENTINEL_STEP $SENTINEL_IDEMPOTENCY_KEY $SENTINEL_COOKIE $NAME $PASS" >> "$SENTINEL_WORKSPACE/effects"; }
NAME=$1 PASS=$3
note start
while [ ! -e "$SENTINEL_WORKSPACE/go" ]; do sleep 0.01; done
note end
echo "did $NAME nonce=$SENTINEL_COOKIE"
`,
}

// everything has every kind of call in every kind of nesting. %INTERRUPT% is
// the value of safety.onInterrupt, with its comma.
const everything = `{"name":"everything","steps":[
	{"type":"shell","command":"sh ./act.sh first 0.03 $iteration","outputTo":"first"},
	{"type":"command","command":"data/create","params":{"collection":"marks","data":{"from":"top","n":"$iteration"}},"outputTo":"mark"},
	{"type":"command","command":"code/shell/execute","params":{"command":"sh ./server.sh server - $iteration","wait":false},"condition":"$iteration === 1","outputTo":"server"},
	{"type":"command","command":"code/shell/execute","params":{"command":"sh ./job.sh job - $iteration","wait":false},"outputTo":"job"},
	{"type":"loop","count":2,"steps":[
		{"type":"shell","command":"sh ./act.sh inner 0.02 $iteration","outputTo":"inner"},
		{"type":"condition","check":"/did inner/.test($inner.output)","then":[
			{"type":"command","command":"data/create","params":{"collection":"marks","data":{"from":"then"}},"outputTo":"then"},
			{"type":"shell","argv":["sh","./act.sh","nested","0.01","$iteration"]}],
		"else":[{"type":"emit","event":"kill:wrong"}]}],"outputTo":"loops"},
	{"type":"parallel","branches":[
		[{"type":"llm","prompt":"Work on iteration $iteration of $run.id.","tools":["code/shell/execute","data/create"],"outputTo":"talk"}],
		[{"type":"shell","command":"sh ./act.sh left 0.03 $iteration","outputTo":"left"},
		 {"type":"wait","durationMs":40},
		 {"type":"emit","event":"kill:tick","data":{"n":"$iteration"}},
		 {"type":"parallel","branches":[
			[{"type":"shell","command":"sh ./act.sh deep1 0.02 $iteration","outputTo":"deep1"}],
			[{"type":"command","command":"data/create","params":{"collection":"marks","data":{"from":"deep2"}},"outputTo":"deep2"}]]}],
		[{"type":"wait","event":"kill:tick","outputTo":"tick"},
		 {"type":"shell","command":"sh ./act.sh heard 0.01 $iteration","outputTo":"heard"}]],"outputTo":"branches"},
	{"type":"watch","executionId":"$job.executionId","until":"finished","outputTo":"watched"},
	{"type":"sentinel","definition":{"name":"kid","steps":[
		{"type":"shell","command":"sh ./act.sh kid 0.02 $iteration","outputTo":"kid"},
		{"type":"wait","durationMs":15},
		{"type":"llm","prompt":"Help iteration $iteration of $run.id.","tools":["code/shell/execute","data/create"],"outputTo":"help"},
		{"type":"command","command":"data/create","params":{"collection":"marks","data":{"from":"kid"}}}],
		"loop":{"type":"count","max":2},"safety":{%INTERRUPT%"timeoutMs":600000}},"outputTo":"kid"},
	{"type":"command","command":"code/shell/status","params":{"executionId":"$server.executionId"},"outputTo":"serving"},
	{"type":"command","command":"code/write","params":{"path":"note.txt","content":"$iteration"}},
	{"type":"shell","command":"sh ./act.sh final 0.01 $iteration","outputTo":"final"}],
	"loop":{"type":"count","max":2},"safety":{%INTERRUPT%"timeoutMs":600000}}`

func everythingWith(interrupt string) string {
	if interrupt != "" {
		interrupt = `"onInterrupt":"` + interrupt + `",`
	}
	return strings.ReplaceAll(everything, "%INTERRUPT%", interrupt)
}

// write makes the workspace: the scripts and the definition.
func write(t *testing.T, workspace, definition string) {
	t.Helper()
	files := map[string]string{"kill.json": definition}
	for name, text := range scripts {
		files[name] = text
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(workspace, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
