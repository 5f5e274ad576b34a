package shell

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Commands returns the family over m.
func Commands(m *Manager) []command.Command {
	read := command.Options{ReadOnly: true, Idempotent: true}
	return []command.Command{
		command.New("code/shell/execute",
			"Run a program, as a shell line or as argv, and wait for its end, or with wait false go on at once and watch it. A non-zero exit code is a result with success false.",
			command.Options{Executes: true, Shell: []string{"command"}, Aliases: map[string]string{"workingDir": "cwd", "workdir": "cwd"}}, m.execute),
		command.New("code/shell/watch", "Wait for the end of an execution, or for a line, and get its classified output.", read,
			func(ctx context.Context, call *command.Call, in WatchRequest) (WatchAnswer, error) {
				return m.watch(ctx, call.Run, in)
			}),
		command.New("code/shell/sentinel", "Set the rules that classify the output of an execution, what it has written so far included.",
			command.Options{Idempotent: true, Private: true}, m.setRules),
		command.New("code/shell/status", "Say where an execution stands, without waiting.", read, m.status),
		command.New("code/shell/list", "List the executions of the run, or all for a person.", read, m.list),
		command.New("code/shell/kill", "End an execution with its whole process tree.", command.Options{Idempotent: true, Private: true}, m.kill),
	}
}

type executeIn struct {
	Command   string            `json:"command,omitempty" jsonschema:"shell line; with args, the program they are given to"`
	Args      []string          `json:"args,omitempty" jsonschema:"arguments handed to command as they are, whatever characters they hold"`
	Argv      []string          `json:"argv,omitempty" jsonschema:"program and arguments, without a shell; instead of command"`
	Cwd       string            `json:"cwd,omitempty" jsonschema:"folder to run in, relative to the workspace"`
	Env       map[string]string `json:"env,omitempty" jsonschema:"further variables"`
	Stdin     string            `json:"stdin,omitempty" jsonschema:"text the program reads"`
	Wait      *bool             `json:"wait,omitempty" jsonschema:"wait for the end; true if not given"`
	TimeoutMs int64             `json:"timeoutMs,omitempty" jsonschema:"end it after this time" minimum:"0"`
	Rules     []Rule            `json:"rules,omitempty" jsonschema:"rules that classify its lines"`
}

type executeOut struct {
	ExecutionID string `json:"executionId"`
	Running     bool   `json:"running" jsonschema:"it still runs: watch it"`
	Success     *bool  `json:"success,omitempty" jsonschema:"once ended: exit code 0"`
	ExitCode    *int   `json:"exitCode,omitempty"`
	Signal      string `json:"signal,omitempty" jsonschema:"what ended it, if a signal did"`
	Output      string `json:"output" jsonschema:"both streams in order, the beginning and the end if it is long"`
	Lines       []Line `json:"lines,omitempty" jsonschema:"with rules: the lines they emit"`
	Dropped     int    `json:"dropped" jsonschema:"lines that are not in output"`
	Stderr      string `json:"stderr,omitempty" jsonschema:"after an exit code other than 0: the last lines of standard error, up to 10 and 2 KiB"`
	ZeroBytes   int64  `json:"zeroBytes,omitempty" jsonschema:"zero bytes that the program wrote; output is without them"`
	DurationMs  int64  `json:"durationMs"`
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
		e, _, err := m.start(ctx, j)
		if err != nil {
			return executeOut{}, err
		}
		return executeOut{ExecutionID: e.id, Running: true}, nil
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
	if out.Output, out.Dropped, err = e.output(r.First, outputSize); err != nil {
		return executeOut{}, err
	}
	if !ok {
		if out.Stderr, err = e.lastErrors(r.First); err != nil {
			return executeOut{}, err
		}
	}
	if len(in.Rules) > 0 {
		a, err := e.follow(ctx, r.First, "", nil, collector{size: outputSize})
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

// outputSize bounds the output of one answer, as JSON, in bytes.
const outputSize = 96 << 10

// runToEnd starts a program and returns when its whole tree has ended; the
// program ends with ctx. Not reaching its own end is an error.
func (m *Manager) runToEnd(ctx context.Context, j job) (*execution, Record, error) {
	e, c, err := m.start(ctx, j)
	if err != nil {
		return nil, Record{}, err
	}
	select {
	case <-c.over:
	case <-ctx.Done():
		c.stop(reasonCancelled)
		<-c.over
	}
	why := c.reason()
	if why == reasonNone {
		return e, c.result, nil
	}
	fail := &abi.Error{Code: abi.Cancelled, Message: fmt.Sprintf("execute %q: ended before its end", commandLine(j.argv))}
	if why == reasonTimeout || why == reasonCancelled && ctx.Err() == context.DeadlineExceeded {
		fail.Code = abi.Timeout
		fail.Message = fmt.Sprintf("execute %q: did not end in time", commandLine(j.argv))
	}
	fail.Hint = "its output: code/shell/watch with executionId " + e.id
	if text, _, err := e.output(c.result.First, 1<<10); err == nil && text != "" {
		fail.Message += ", after writing:\n" + text
	}
	return nil, Record{}, fail
}

// Run executes argv in a folder of the call's workspace and returns its exit
// code and output, the beginning and the end if it is long. It ends with ctx.
func (m *Manager) Run(ctx context.Context, call *command.Call, dir string, argv []string) (exitCode int, output string, err error) {
	e, r, err := m.runToEnd(ctx, job{call: call, argv: argv, dir: dir, variant: dir + "\x00" + strings.Join(argv, "\x00")})
	if err != nil {
		return 0, "", err
	}
	output, _, err = e.output(r.First, outputSize)
	return *r.ExitCode, output, err
}

// Bounds of the standard error that stands beside an exit code.
const (
	errorLines = 10
	errorBytes = 2 << 10
)

// lastErrors returns the last lines of standard error from a line on.
func (e *execution) lastErrors(from int) (string, error) {
	var tail []string
	size := 0
	for at := from; ; {
		lines, _, _, _, err := e.look(at)
		if err != nil {
			return "", err
		}
		for _, l := range lines {
			at = l.number + 1
			if l.stream != 'e' {
				continue
			}
			tail, size = append(tail, l.text), size+len(l.text)+1
			for len(tail) > 1 && (len(tail) > errorLines || size > errorBytes) {
				tail, size = tail[1:], size-len(tail[0])-1
			}
		}
		if len(lines) < batch {
			break
		}
	}
	if len(tail) == 0 {
		return "", nil
	}
	text := strings.Join(tail, "\n")
	if len(text) > errorBytes { // one long line
		text = strings.ToValidUTF8(text[len(text)-errorBytes:], "")
	}
	return text + "\n", nil
}

// output returns the lines from one on as text of at most size bytes in JSON:
// a quarter from the beginning, the rest from the end.
func (e *execution) output(from, size int) (text string, dropped int, err error) {
	var head, tail []string
	headSize, tailSize, at := 0, 0, from
	var total int
	for {
		lines, _, v, _, err := e.look(at)
		if err != nil {
			return "", 0, err
		}
		for _, l := range lines {
			n := jsonSize(l.text) + 2
			at = l.number + 1
			if len(tail) == 0 && headSize+n <= size/4 {
				head, headSize = append(head, l.text), headSize+n
				continue
			}
			tail, tailSize = append(tail, l.text), tailSize+n
			for tailSize > size-size/4 && len(tail) > 1 {
				tailSize -= jsonSize(tail[0]) + 2
				tail = tail[1:]
			}
		}
		total = v.next - from
		if len(lines) < batch {
			break
		}
	}
	dropped = total - len(head) - len(tail)
	if dropped > 0 {
		head = append(head, fmt.Sprintf("[%d lines dropped]", dropped))
	}
	if all := slices.Concat(head, tail); len(all) > 0 {
		text = strings.Join(all, "\n") + "\n"
	}
	return text, dropped, nil
}
