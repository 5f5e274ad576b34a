package shell

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

type idIn struct {
	ExecutionID string `json:"executionId" jsonschema:"what code/shell/execute gave"`
}

type rulesIn struct {
	ExecutionID string `json:"executionId" jsonschema:"what code/shell/execute gave"`
	Rules       []Rule `json:"rules" jsonschema:"the first rule that matches a line decides; a line that none matches is verbose"`
}

type rulesOut struct {
	ExecutionID string `json:"executionId"`
	Rules       int    `json:"rules"`
}

// setRules replaces the rules of an execution. Lines are classified when they
// are read, so it does not matter what was written before.
func (m *Manager) setRules(ctx context.Context, call *command.Call, in rulesIn) (rulesOut, error) {
	set, stored, err := compileRules(in.Rules, m.knownClassifier)
	if err != nil {
		return rulesOut{}, err
	}
	e, err := m.owned(ctx, call, in.ExecutionID)
	if err != nil {
		return rulesOut{}, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.rules, e.rec.Rules = set, m.keptRules(stored)
	e.announce()
	return rulesOut{ExecutionID: e.id, Rules: len(set)}, e.save(ctx)
}

// owned returns an execution that the caller may change: its own, and each for a person.
func (m *Manager) owned(ctx context.Context, call *command.Call, id string) (*execution, error) {
	e, err := m.visible(ctx, call, id)
	if err != nil {
		return nil, err
	}
	if call.By != command.ByUser && !e.belongsTo(call) {
		return nil, &abi.Error{Code: abi.Denied, Field: "executionId", Permanent: true, Message: fmt.Sprintf("execution %q: belongs to another run", id)}
	}
	return e, nil
}

// Status is where an execution stands.
type Status struct {
	ExecutionID  string          `json:"executionId"`
	Run          sentinels.RunID `json:"run,omitempty"`
	Step         string          `json:"step,omitempty" jsonschema:"execution path of the step that started it"`
	Iteration    int             `json:"iteration,omitempty" jsonschema:"iteration of the run, from 1"`
	Attempt      int             `json:"attempt,omitempty" jsonschema:"attempt of the step, from 1"`
	Command      string          `json:"command"`
	State        State           `json:"state" enum:"running,ended,lost"`
	Success      *bool           `json:"success,omitempty"`
	ExitCode     *int            `json:"exitCode,omitempty"`
	Signal       string          `json:"signal,omitempty"`
	TimedOut     bool            `json:"timedOut,omitempty"`
	PID          int             `json:"pid,omitempty"`
	Lines        int             `json:"lines" jsonschema:"how many it has written"`
	Bytes        int64           `json:"bytes" jsonschema:"of output that are kept"`
	Dropped      int             `json:"dropped" jsonschema:"how many of them are not kept"`
	DroppedBytes int64           `json:"droppedBytes"`
	ZeroBytes    int64           `json:"zeroBytes,omitempty" jsonschema:"zero bytes that it wrote; lines are without them"`
	Starts       int             `json:"starts"`
	StartedAt    time.Time       `json:"startedAt"`
	DurationMs   int64           `json:"durationMs"`
}

// status describes the execution at one moment.
func (e *execution) status() Status {
	e.mu.Lock()
	defer e.mu.Unlock()
	r := e.rec
	s := Status{
		ExecutionID: e.id, Run: r.Run, Step: r.Path, Iteration: r.Iteration, Attempt: r.Attempt, Command: commandLine(r.Argv), State: r.State, ExitCode: r.ExitCode, Signal: r.Signal, TimedOut: r.TimedOut,
		PID: r.PID, Lines: e.out.next, Bytes: e.out.bytesKept(), Dropped: e.out.dropped(), DroppedBytes: e.out.bytes, ZeroBytes: r.ZeroBytes, Starts: r.Starts, StartedAt: r.StartedAt,
	}
	end := r.EndedAt
	if r.State == Running {
		end = time.Now()
	} else {
		ok := r.ExitCode != nil && *r.ExitCode == 0 && !r.TimedOut
		s.Success, s.PID = &ok, 0
	}
	s.DurationMs = end.Sub(r.StartedAt).Milliseconds()
	return s
}

// commandLine shows what was asked for, the line of a shell or else the words,
// at most 400 bytes of it.
func commandLine(argv []string) string {
	text := strings.Join(argv, " ")
	if n := len(shellArgv); len(argv) == n+1 && argv[0] == shellArgv[0] && argv[1] == shellArgv[1] {
		text = argv[n]
	}
	return textcut.Mark(text, 400)
}

// status changes nothing, so that every caller may read that of a run.
func (m *Manager) status(ctx context.Context, call *command.Call, in idIn) (Status, error) {
	e, err := m.visible(ctx, call, in.ExecutionID)
	if err != nil {
		return Status{}, err
	}
	return e.status(), nil
}

type listIn struct {
	Running bool   `json:"running,omitempty" jsonschema:"only those that live"`
	Limit   int    `json:"limit,omitempty" jsonschema:"how many to return, the newest first; 100 if not given" minimum:"1" maximum:"200"`
	Before  string `json:"before,omitempty" jsonschema:"next of the page before: only older ones"`
}

type listOut struct {
	Executions []Status `json:"executions"`
	Total      int      `json:"total"`
	Next       string   `json:"next,omitempty" jsonschema:"there are older ones: give it as before"`
}

// list shows a caller its own executions only, and a person all.
func (m *Manager) list(_ context.Context, call *command.Call, in listIn) (listOut, error) {
	m.mu.Lock()
	all := m.snapshot(func(e *execution) bool {
		return (call.By == command.ByUser || e.belongsTo(call)) && (!in.Running || e.isLive())
	})
	m.mu.Unlock()
	return newestOf(all, in.Before, in.Limit)
}

var executionIDPattern = lazyregexp.New(`^[0-9a-f]{16}$`)

// newestOf returns the newest of a list that begins with the oldest, or the newest of those
// before one; 0 means 100. If that one is no longer kept, no older one is either.
func newestOf(all []*execution, before string, limit int) (listOut, error) {
	out := listOut{Executions: []Status{}, Total: len(all)}
	if before != "" {
		if !executionIDPattern.MatchString(before) {
			return out, &abi.Error{Code: abi.BadFields, Field: "before", Permanent: true, Message: fmt.Sprintf("invalid before %.50q: want the next of an earlier page", before)}
		}
		all = all[:max(slices.IndexFunc(all, func(e *execution) bool { return e.id == before }), 0)]
	}
	for i := len(all) - 1; i >= 0; i-- {
		if len(out.Executions) == cmp.Or(limit, 100) {
			out.Next = all[i+1].id
			break
		}
		out.Executions = append(out.Executions, all[i].status())
	}
	return out, nil
}

type killOut struct {
	ExecutionID string `json:"executionId"`
	Killed      bool   `json:"killed" jsonschema:"it lived"`
	Status      Status `json:"status"`
}

// kill ends an execution and returns when its process tree has ended.
func (m *Manager) kill(ctx context.Context, call *command.Call, in idIn) (killOut, error) {
	e, err := m.owned(ctx, call, in.ExecutionID)
	if err != nil {
		return killOut{}, err
	}
	lived := e.isLive()
	e.stop(reasonKilled)
	if err := e.wait(ctx); err != nil {
		return killOut{}, err
	}
	return killOut{ExecutionID: e.id, Killed: lived, Status: e.status()}, nil
}
