package shell

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Commands returns the family over m.
func Commands(m *Manager) []command.Command {
	read := command.Options{Effect: command.Reads, Idempotent: true}
	return slices.Concat(m.logCommands(), []command.Command{
		command.WithPreview(command.New("code/shell/execute",
			"Run a program, as a shell line or as argv, and wait for its end, or with wait false go on at once and watch it. A non-zero exit code is a result with success false.",
			command.Options{Effect: command.Executes, Shell: []string{"command"}, Aliases: map[string]string{"workingDir": "cwd", "workdir": "cwd"}, Began: m.began}, m.execute), m.preview),
		command.New("code/shell/watch", "Wait for the end of an execution, or for a line, and get its classified output.", command.Options{Effect: command.Reads, Idempotent: true, Waits: command.Always},
			func(ctx context.Context, call *command.Call, in WatchRequest) (WatchAnswer, error) {
				if in.TimeoutMs > 0 {
					limited, cancel := context.WithTimeout(ctx, time.Duration(in.TimeoutMs)*time.Millisecond)
					defer cancel()
					ctx = limited
				}
				return m.watch(ctx, call, in)
			}),
		command.New("code/shell/sentinel", "Set the rules that classify the output of an execution, what it has written so far included.",
			command.Options{Effect: command.Changes, Idempotent: true, Private: true}, m.setRules),
		command.New("code/shell/status", "Say where an execution stands, without waiting.", read, m.status),
		command.New("code/shell/list", "List the executions of the run, or without one of the caller, or all for a person.", read, m.list),
		command.New("code/shell/kill", "End an execution with its whole process tree.", command.Options{Effect: command.Changes, Idempotent: true, Private: true, Waits: command.Always}, m.kill),
	})
}

type executeIn struct {
	Command   string                      `json:"command,omitempty" jsonschema:"shell line; with args, the program they are given to"`
	Args      []string                    `json:"args,omitempty" jsonschema:"arguments handed to command as they are, whatever characters they hold"`
	Argv      []string                    `json:"argv,omitempty" jsonschema:"program and arguments, without a shell; instead of command"`
	Cwd       string                      `json:"cwd,omitempty" jsonschema:"folder to run in, relative to the workspace"`
	Env       map[string]command.EnvValue `json:"env,omitempty" jsonschema:"further variables; they have precedence over all others"`
	Stdin     string                      `json:"stdin,omitempty" jsonschema:"text the program reads"`
	Wait      *bool                       `json:"wait,omitempty" jsonschema:"wait for the end; true if not given"`
	TimeoutMs int64                       `json:"timeoutMs,omitempty" jsonschema:"end it after this time" minimum:"0"`
	Rules     []Rule                      `json:"rules,omitempty" jsonschema:"rules that classify its lines"`
	EndsWith  string                      `json:"endsWith,omitempty" jsonschema:"with wait false: it ends with the run, or with the innermost step of type loop around the step that calls, if there is one; run if not given" enum:"run,loop"`
	Ready     *readyIn                    `json:"ready,omitempty" jsonschema:"with wait false: answer when it is ready. It fails if it ends before, or is not ready in time, which ends it"`
}

type executeOut struct {
	ExecutionID string `json:"executionId"`
	Running     bool   `json:"running" jsonschema:"it still runs: watch it"`
	PID         int    `json:"pid,omitempty" jsonschema:"with ready: of the process"`
	URL         string `json:"url,omitempty" jsonschema:"with ready.http: where it answers"`
	Success     *bool  `json:"success,omitempty" jsonschema:"once ended: exit code 0"`
	ExitCode    *int   `json:"exitCode,omitempty" jsonschema:"once ended"`
	Signal      string `json:"signal,omitempty" jsonschema:"what ended it, if a signal did"`
	streams
	Output     string `json:"output" jsonschema:"both streams in the order in which they were read, as a terminal shows them, with a line end at the end; the beginning and the end if it is long"`
	Lines      []Line `json:"lines,omitempty" jsonschema:"with rules: the lines that no rule suppresses, the beginning and the end if there are many"`
	Dropped    int    `json:"dropped" jsonschema:"lines that are not in output"`
	Truncated  bool   `json:"truncated,omitempty" jsonschema:"stdout or stderr is not whole: it has its beginning and its end"`
	ZeroBytes  int64  `json:"zeroBytes,omitempty" jsonschema:"zero bytes that the program wrote; output is without them"`
	DurationMs int64  `json:"durationMs"`
	Hint       string `json:"hint,omitempty" jsonschema:"of an exit code other than 0: variables of the command that are set on the host and that it does not get"`
}

// streams is what a program wrote, once it has ended. A model gets only output, which
// has the same text: it pays for every copy.
type streams struct {
	Stdout *string         `json:"stdout,omitempty" jsonschema:"standard output as it was written; not for a model"`
	Stderr *string         `json:"stderr,omitempty" jsonschema:"standard error as it was written; not for a model"`
	Text   *string         `json:"text,omitempty" jsonschema:"stdout without the last line end: what a reference to the whole result is in a text; not for a model"`
	JSON   json.RawMessage `json:"json,omitempty" jsonschema:"stdout as a value, if it is JSON of at most 2 MiB; absent otherwise"`
}

// execute has two ends: with wait the program ends with its call, without it
// belongs to the run. A program that did not reach its own end is an error in
// the first case and part of the status in the second.
func (m *Manager) execute(ctx context.Context, call *command.Call, in executeIn) (executeOut, error) {
	argv, err := in.argv()
	if err != nil {
		return executeOut{}, err
	}
	j := job{
		call: call, argv: argv, dir: in.Cwd, env: in.Env, stdin: in.Stdin,
		timeout: time.Duration(in.TimeoutMs) * time.Millisecond, rules: in.Rules,
	}
	if in.Wait != nil && !*in.Wait {
		j.background, j.loop = true, in.EndsWith == "loop"
		if in.Ready != nil {
			return m.startReady(ctx, j, in.Ready)
		}
		e, _, err := m.start(ctx, j)
		if err != nil {
			return executeOut{}, err
		}
		return executeOut{ExecutionID: e.id, Running: true}, nil
	}
	if in.Ready != nil {
		return executeOut{}, badReady("http", "ready needs wait false: otherwise the call ends with the program")
	}
	e, r, err := m.runToEnd(ctx, j)
	if err != nil {
		return executeOut{}, err
	}
	ok := *r.ExitCode == 0
	out := executeOut{
		ExecutionID: e.id, Success: &ok, ExitCode: r.ExitCode, Signal: r.Signal, DurationMs: r.EndedAt.Sub(r.StartedAt).Milliseconds(),
	}
	out.ZeroBytes = r.ZeroBytes
	if !ok && in.Command != "" && !call.Held() {
		out.Hint = m.withheldHint(call, in.Command, in.Env)
	}
	size := 1 // of an answer, in parts of its limit
	if len(in.Rules) > 0 {
		size = 2
	}
	output, stdout, stderr := excerpt{size: outputSize / size}, excerpt{size: stdoutSize, short: cutSize, data: true}, excerpt{size: stderrSize, data: true}
	if err := e.excerpts(r.First, &output, &stdout, &stderr); err != nil {
		return executeOut{}, err
	}
	out.Output, out.Dropped = lineEnd(output.text()), output.dropped
	if call.By != command.ByModel || call.Step {
		out.streams = newStreams(&stdout, &stderr)
		out.Truncated = !stdout.complete() || !stderr.complete()
	}
	if len(in.Rules) > 0 {
		a, err := e.follow(ctx, r.First, "", nil, collector{size: linesSize})
		if err != nil {
			return executeOut{}, err
		}
		out.Lines = a.Lines
	}
	return out, nil
}

// argv returns what to execute.
func (in executeIn) argv() ([]string, error) {
	bad := func(field, problem string) error {
		return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: fmt.Sprintf("execute: field %q: %s", field, problem)}
	}
	switch {
	case len(in.Argv) > 0 && (in.Command != "" || len(in.Args) > 0):
		return nil, bad("argv", "takes the place of command and args: give one of the two")
	case len(in.Argv) > 0 && in.Argv[0] == "":
		return nil, bad("argv", "names no program")
	case len(in.Argv) > 0:
		return in.Argv, nil
	case strings.TrimSpace(in.Command) == "":
		return nil, bad("command", "is missing")
	}
	return slices.Concat(shellArgv, withArguments(in.Command, in.Args)), nil
}

// Bounds of the parts of one answer, as JSON, in bytes. output is for people and models; with
// lines it is halved. Steps read the streams, which are whole up to their bounds: stdout
// counts twice, as text too, and together they are below the 17 MiB of sdk/ABI.md A8. A stdout
// that is not whole is not a value that a step computes with: only its beginning and end are passed.
const (
	outputSize = 72 << 10
	stdoutSize = 8 << 20
	stderrSize = 256 << 10
	cutSize    = 256 << 10 // of stdout that exceeds stdoutSize
	linesSize  = 96 << 10
	jsonSource = 2 << 20 // of stdout that is a value, too
)

// newStreams reads standard output as text and as JSON.
func newStreams(stdout, stderr *excerpt) streams {
	out, problems := stdout.text(), stderr.text()
	text := strings.TrimSuffix(out, "\n")
	s := streams{Stdout: &out, Stderr: &problems, Text: &text}
	if stdout.complete() && len(out) <= jsonSource && strictjson.Check([]byte(out), strictjson.Limits{Bytes: jsonSource, Keys: jsonSource, StringBytes: jsonSource}) == nil {
		s.JSON = json.RawMessage(out)
	}
	return s
}

// runToEnd starts a program and returns when it is known how it ended; the
// program ends with ctx. Not reaching its own end is an error.
func (m *Manager) runToEnd(ctx context.Context, j job) (*execution, Record, error) {
	e, c, err := m.start(ctx, j)
	if err != nil {
		return nil, Record{}, err
	}
	select {
	case <-c.known:
	case <-ctx.Done():
		c.stop(reasonCancelled)
		<-c.known
	}
	why := c.reason()
	if why == reasonNone {
		return e, c.result, nil
	}
	line := commandLine(m.keptWords(j.argv)) // it is cut, and a part of a secret is not found any more
	fail := &abi.Error{Code: abi.Cancelled, Message: fmt.Sprintf("execute %q: ended before its end", line)}
	if why == reasonTimeout || why == reasonCancelled && ctx.Err() == context.DeadlineExceeded {
		fail.Code = abi.Timeout
		fail.Message = fmt.Sprintf("execute %q: did not end in time", line)
	}
	fail.Hint = "its output: code/shell/watch with executionId " + e.id
	last := excerpt{size: 1 << 10}
	if err := e.excerpts(c.result.First, &last, nil, nil); err == nil && last.text() != "" {
		fail.Message += ", after writing:\n" + lineEnd(last.text())
	}
	return nil, Record{}, fail
}

// Run executes argv with stdin in a folder of the call's workspace and returns its
// exit code and output, the beginning and the end if it is long. It ends with ctx.
func (m *Manager) Run(ctx context.Context, call *command.Call, dir string, argv []string, stdin string) (exitCode int, output string, err error) {
	e, r, err := m.runToEnd(ctx, job{call: call, argv: argv, dir: dir, stdin: stdin, variant: dir + "\x00" + strings.Join(argv, "\x00")})
	if err != nil {
		return 0, "", err
	}
	x := excerpt{size: outputSize}
	err = e.excerpts(r.First, &x, nil, nil)
	return *r.ExitCode, lineEnd(x.text()), err
}
