package step

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/external"
	"github.com/sentinel-runtime/sentinel/runtime/internal/clock"
	"github.com/sentinel-runtime/sentinel/runtime/internal/failure"
	"github.com/sentinel-runtime/sentinel/runtime/internal/history"
	"github.com/sentinel-runtime/sentinel/runtime/internal/journal"
	"github.com/sentinel-runtime/sentinel/runtime/internal/pluginset"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/runtime/run"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// An attempt is one attempt of a step execution. It calls the guest until the guest
// returns. The guest may be called several times, because it is unloaded while it
// waits: each time it starts from its beginning, or from its last checkpoint, and the
// host calls that it made before are answered from records.
type attempt struct {
	*stepExecution
	n            int                    // number of the attempt, from 1
	retry        json.RawMessage        // value of $retry; nil in a first attempt
	mod          *pluginset.Module      // valid until the iteration ends
	fields       json.RawMessage        // resolved fields, as the guest reads them
	large        []strictjson.LargePart // the large values in them
	tools        []string               // the step's allow-list, nil if it has none
	env          map[string]string      // variables of the step's shell lines
	written      map[string]string      // the references that they stand for
	seed         uint64                 // seed of the guest's randomness
	clockBase    time.Time              // start of the guest's clock
	activeBefore time.Duration          // active time that the attempt used before a crash

	ctx  context.Context // context of the attempt; the guest's own also ends when it is unloaded
	work sync.WaitGroup  // goroutines of the attempt's host calls, which use ctx

	mu            sync.Mutex               // guards the fields below
	timer         *clock.ActiveTimer       // time limit of the attempt
	lastWaitEnd   time.Duration            // active time of the run when a wait or the nested steps ended last
	calls         map[int]*call            // host calls since the checkpoint, by number
	callBytes     int64                    // size of the requests and results of calls
	checkpoint    *journal.CheckpointBody  // last checkpoint, nil before the first one
	state         json.RawMessage          // state that the last checkpoint saved
	queuedFor     time.Duration            // active time in which calls waited at a limit before they began
	block         int                      // number of the next nested list
	logs          int                      // log lines reported so far
	conversations map[string]*conversation // conversations with models, by id

	// The fields below belong to the guest that runs now.
	hasSlot   bool            // the guest holds an execution slot
	seq       int             // number of the guest's last host call
	guestLogs int             // log lines of the guest, with those that are repeated
	used      attemptUse      // what the guest has used of the attempt's limits
	outline   json.RawMessage // of its output, see [wasm.Result]
}

// begin resolves the step's fields and records the start of the attempt.
func (a *attempt) begin(ctx context.Context) error {
	mod, err := a.run.Plugins().Lookup(a.step.Type)
	if err != nil {
		return err
	}
	if err := mod.Ready(ctx); err != nil { // here, since the time limit of the attempt has not begun
		return err
	}
	a.mod = mod
	fields, large, notes, err := a.resolve()
	if err != nil {
		return err
	}
	a.fields, a.large = fields, large
	a.seed = seedOf(a.run.Start().Seed, a.key(), a.enclosing, a.n)
	if seed, ok := mod.Seed(); ok {
		a.seed = seed
	}
	a.clockBase, a.written = time.Now(), notes.Written
	a.calls, a.conversations = map[int]*call{}, map[string]*conversation{}
	kept, err := a.svc.Values.Redacted(fields)
	if err != nil {
		return err
	}
	body := &journal.StepStartBody{
		Type: a.step.Type, ID: a.step.ID, Name: a.step.Name, Address: a.address, Module: mod.Digest(), Fields: kept,
		Env: a.env, Written: notes.Written, Seed: a.seed, ClockBase: a.clockBase.UnixMicro(), Unknown: notes.Unknown, Unset: notes.Unset,
		Condition: a.condition, Reads: a.reads,
	}
	a.begun = true
	ticket := a.write(true, a.n, &journal.Record{Kind: journal.StepStart, Time: body.ClockBase, StepStart: body})
	p := a.progress(run.OnStepStart, a.n)
	ticket.OnDone(func(error) { a.run.Report(p) })
	for _, name := range notes.Unknown {
		a.log("warn", fmt.Sprintf("reference %s has no value and is left as written", name))
	}
	for _, name := range notes.Unset {
		a.log("warn", fmt.Sprintf("reference %s has no value yet and is null", name))
	}
	if list := a.cutList(); list != "" {
		a.log("warn", fmt.Sprintf("each: %s is a part of a list: the result that it is in has truncated true; read further pages, or ask for more at once", list))
	}
	return nil
}

// resolve replaces the references in the step's fields, each field according to its
// mark. It also returns the large values in them, and the references that have no value.
func (a *attempt) resolve() (json.RawMessage, []strictjson.LargePart, reference.Notes, error) {
	spec, marks := a.mod.Fields(a.step.Type)
	lookup := a.run.Lookup(a.sc, a.retry)
	out := make(map[string]json.RawMessage, len(a.step.Fields)+1)
	var notes reference.Notes
	interpreter, field := spec.Interpreter(a.step, a.run.Definition().Shell)
	for name, raw := range a.step.Fields {
		var more reference.Notes
		var err error
		if spec.Evaluates(name) && sentinels.IsExpression(raw) {
			out[name] = raw
			continue
		}
		switch marks[name] {
		case abi.MarkExpression, abi.MarkRaw:
			out[name] = raw
		case abi.MarkDefinition:
			if out[name] = raw; isString(raw) {
				out[name], more, err = a.definitionValue(raw, lookup)
			}
		case abi.MarkInterpreter: // below
		case abi.MarkShell:
			if out[name] = raw; interpreter.IsShell() {
				out[name], more, err = a.shellLine(raw, lookup)
			}
		case abi.MarkParams:
			out[name], more, err = a.resolveParams(raw, lookup)
		case abi.MarkValues:
			out[name], more, err = resolveValues(raw, lookup)
		default:
			out[name], more, err = spec.ResolveField(name, raw, lookup)
		}
		if err != nil {
			return nil, nil, notes, resolveError(name, err)
		}
		notes.Add(more)
		if marks[name] == abi.MarkTools {
			a.tools = toolList(out[name])
		}
	}
	if program := interpreter.Arguments(); program != nil {
		var err error
		if out[field], err = json.Marshal(program); err != nil {
			return nil, nil, notes, err
		}
	}
	pluginset.AddCounts(out, a.step, marks)
	fields, err := EncodeValues(out)
	if err != nil {
		return nil, nil, notes, err
	}
	large := wasm.LargeParts(fields)
	// Check again: values of references were not known when the definition was checked.
	if err := spec.CheckLarge(fields, large); err != nil {
		if shown := spec.CheckFields(a.svc.Redact.JSON(fields)); shown != nil {
			err = shown // the message has the first bytes of values
		}
		return nil, nil, notes, &abi.Error{
			Code: abi.BadFields, Permanent: true, Message: a.ofReferences(err).Error(), Hint: a.parseHint(out),
		}
	}
	return fields, large, notes, nil
}

// resolveError returns the error of a step whose field cannot be resolved.
func resolveError(field string, err error) error {
	e := &abi.Error{Code: abi.BadFields, Field: field, Message: fmt.Sprintf("%s: %v", field, err)}
	var missing *reference.MissingError
	if errors.As(err, &missing) {
		e.Permanent, e.Hint = true, missing.Hint
	}
	return e
}

// ofReferences returns the problems of resolved fields without those of the parts of a value that a reference
// has put there as a whole: the author did not write the parts.
func (a *attempt) ofReferences(err error) error {
	var found sentinels.Problems
	if !errors.As(err, &found) {
		return err
	}
	var out sentinels.Problems
	for _, p := range found {
		field := p.Path
		if i := strings.IndexAny(field, ".["); i > 0 {
			field = field[:i]
		}
		var written string
		if json.Unmarshal(a.step.Fields[field], &written) == nil && reference.IsReference(written) {
			if strings.HasPrefix(p.Hint, "write [") { // that would put the reference into a list
				p.Hint = ""
			}
			if p.Path != field {
				p = sentinels.Problem{Path: field, Kind: p.Kind, Message: "the value of " + written + " is none that it takes"}
			}
		}
		if !slices.Contains(out, p) {
			out = append(out, p)
		}
	}
	return out
}

// parseHint returns what to do about a field that got a text with JSON, and not the value in it, or that
// wants a list and got a text or an output; "" if there is none.
func (a *attempt) parseHint(resolved map[string]json.RawMessage) string {
	for name, raw := range resolved {
		var written, text string
		if json.Unmarshal(a.step.Fields[name], &written) != nil || !reference.IsReference(written) {
			continue
		}
		var output struct{ Text *string }
		if isText := json.Unmarshal(raw, &text) == nil; !isText && (name != "each" || json.Unmarshal(raw, &output) != nil || output.Text == nil) {
			continue
		}
		if text = strings.TrimSpace(text); text != "" && (text[0] == '[' || text[0] == '{') && json.Valid([]byte(text)) {
			return fmt.Sprintf("%s is a text with JSON: add \"parse\": \"json\" to the step that sets it, and use the variable itself", written)
		}
		if name == "each" {
			return fmt.Sprintf("for the lines of %s add \"parse\": \"lines\" to the step that sets it, and use the variable itself", written)
		}
	}
	return ""
}

// definitionValue resolves a field that is a reference to a definition: an object, or its
// JSON as a text. One without a name gets that of the step, as in a file.
func (a *attempt) definitionValue(raw json.RawMessage, lookup reference.Lookup) (json.RawMessage, reference.Notes, error) {
	out, notes, err := reference.Resolve(raw, lookup)
	if err != nil {
		return nil, notes, err
	}
	var text string
	if json.Unmarshal(out, &text) == nil {
		out = json.RawMessage(text)
	}
	var keys map[string]json.RawMessage
	if json.Unmarshal(out, &keys) != nil || keys == nil {
		return nil, notes, fmt.Errorf("%s is not a definition: want a JSON object, or a text with one", raw)
	}
	for _, part := range []string{"json", "text"} { // it is the output of a model or a command
		if given := keys[part]; given != nil && string(given) != "null" {
			path := strings.Trim(string(raw), `"`)
			return nil, notes, fmt.Errorf("%s is not a definition: it is an output with the fields %s; did you mean %s.%s?",
				path, strings.Join(slices.Sorted(maps.Keys(keys)), ", "), path, part)
		}
	}
	for _, key := range []string{"$ref", "name", "id", "uniqueId"} {
		if keys[key] != nil {
			return out, notes, nil
		}
	}
	keys["name"], err = json.Marshal(cmp.Or(a.step.Name, a.step.ID, "step-"+strings.ReplaceAll(a.address, ".", "-")))
	if err != nil {
		return nil, notes, err
	}
	out, err = json.Marshal(keys)
	return out, notes, err
}

// resolveValues resolves a field that is marked as values, except the expressions in it.
func resolveValues(raw json.RawMessage, lookup reference.Lookup) (json.RawMessage, reference.Notes, error) {
	var notes reference.Notes
	var entries map[string]json.RawMessage
	if json.Unmarshal(raw, &entries) != nil {
		return nil, notes, errors.New("want an object of values by name")
	}
	plain := map[string]bool{} // values that are not expressions
	for name, value := range entries {
		if sentinels.IsExpression(value) {
			continue
		}
		resolved, more, err := reference.Resolve(value, lookup)
		if err != nil {
			return nil, notes, fmt.Errorf("%s: %w", name, err)
		}
		notes.Add(more)
		entries[name], plain[name] = resolved, true
	}
	out, err := joinValues(entries, func(b *bytes.Buffer, name string, v json.RawMessage) { // the fields are encoded as a whole
		if !plain[name] {
			b.Write(v)
			return
		}
		b.WriteString(`{"value":`)
		b.Write(v)
		b.WriteByte('}')
	})
	return out, notes, err
}

// shellLine rewrites a shell line so that the values of variables reach it
// through its environment, never as text of the line. The built-in variables that the
// line names are environment variables of that name.
func (a *attempt) shellLine(raw json.RawMessage, lookup reference.Lookup) (json.RawMessage, reference.Notes, error) {
	var line string
	if err := json.Unmarshal(raw, &line); err != nil {
		return nil, reference.Notes{}, errors.New("invalid shell line: want a string")
	}
	if a.env == nil {
		a.env = map[string]string{}
	}
	rewritten, notes, problems := reference.ShellLine(a.env, line, func(name string) (json.RawMessage, bool) {
		if slices.Contains(sentinels.BuiltIn, name) {
			return nil, false
		}
		return lookup(name)
	})
	if len(problems) > 0 {
		return nil, notes, problems[0]
	}
	for _, name := range sentinels.BuiltIn {
		if strings.Contains(line, name) {
			value, _ := lookup(name)
			a.env[name] = reference.Text(value)
		}
	}
	b, err := json.Marshal(rewritten)
	return b, notes, err
}

// resolveParams resolves the parameters of the command that the field "command" names,
// according to that command's schema.
func (a *attempt) resolveParams(raw json.RawMessage, lookup reference.Lookup) (json.RawMessage, reference.Notes, error) {
	var name string
	var notes reference.Notes
	if json.Unmarshal(a.step.Fields["command"], &name) == nil {
		var err error
		if name, _, err = reference.ResolveText(name, lookup); err != nil {
			return nil, notes, err
		}
	}
	var params map[string]json.RawMessage
	info, ok := external.CommandInfo{}, false
	if a.svc.Commands != nil {
		info, ok = a.svc.Commands.Lookup(name)
	}
	if !ok || json.Unmarshal(raw, &params) != nil {
		return reference.Resolve(raw, lookup) // an unknown command is refused when it is called
	}
	shape, err := a.svc.shapes.of(info)
	if err != nil {
		return nil, notes, err
	}
	if len(info.Raw) == 0 && len(info.Shell) == 0 {
		return shape.Resolve(raw, lookup)
	}
	special := map[string]json.RawMessage{}
	for field, value := range params {
		switch {
		case slices.Contains(info.Raw, field):
			special[field] = value
		case slices.Contains(info.Shell, field) && isString(value):
			line, more, err := a.shellLine(value, lookup)
			if err != nil {
				return nil, notes, fmt.Errorf("%s: %w", field, err)
			}
			notes.Add(more)
			special[field] = line
		}
	}
	for field := range special {
		delete(params, field)
	}
	rest, err := json.Marshal(params)
	if err != nil {
		return nil, notes, err
	}
	rest, more, err := shape.Resolve(rest, lookup)
	if err != nil {
		return nil, notes, err
	}
	notes.Add(more)
	if err := json.Unmarshal(rest, &params); err != nil {
		return nil, notes, err
	}
	for field, value := range special {
		params[field] = value
	}
	b, err := json.Marshal(params)
	return b, notes, err
}

// isString reports whether raw is a JSON string.
func isString(raw json.RawMessage) bool { return len(raw) > 0 && raw[0] == '"' }

// toolList decodes a list of tools. A value that is not a list allows no tool.
func toolList(raw json.RawMessage) []string {
	tools := []string{}
	if json.Unmarshal(raw, &tools) != nil {
		return []string{} // not a list: allows nothing
	}
	return tools
}

// restore continues an attempt that a crash interrupted, with the fields and the module
// that its start recorded.
func (a *attempt) restore(ctx context.Context, past *history.Attempt) error {
	s := past.Start
	a.begun = true
	fields, err := a.svc.Values.Load(s.Fields)
	if err != nil {
		return err
	}
	if a.mod, err = a.run.Plugins().ByDigest(ctx, s.Module); err != nil {
		return err
	}
	if err := a.mod.Ready(ctx); err != nil {
		return err
	}
	a.fields, a.env, a.written, a.seed, a.clockBase = fields, s.Env, s.Written, s.Seed, time.UnixMicro(s.ClockBase)
	a.large, a.logs = wasm.LargeParts(fields), past.Logs
	a.activeBefore = a.run.Clock().Elapsed() - time.Duration(past.Elapsed)*time.Microsecond
	_, marks := a.mod.Fields(s.Type)
	var values map[string]json.RawMessage
	if json.Unmarshal(fields, &values) == nil {
		for name, mark := range marks {
			if raw, ok := values[name]; ok && mark == abi.MarkTools {
				a.tools = toolList(raw)
			}
		}
	}
	a.retry = a.retryValue(a.n, a.recorded.Failed)
	if err := a.restoreCalls(past); err != nil {
		return err
	}
	a.recorded.Attempt = nil // release the records: the run may wait for days
	return nil
}

// execute calls the guest until it returns. A guest that was parked during a long wait
// is called again when the wait is over.
func (a *attempt) execute(ctx context.Context) (json.RawMessage, error) {
	limit, named := a.timeLimit()
	end := a.startTimeLimit(ctx, limit, named)
	defer end()
	for {
		if err := a.awaitOpenCall(a.ctx); err != nil {
			return nil, err
		}
		out, err := a.callGuest(a.ctx, limit)
		if err != nil {
			if err = a.guestError(err); err == nil {
				continue
			}
		}
		return out, err
	}
}

// startTimeLimit sets the attempt's context, which ends at its time limit. The returned
// function ends the attempt's work. named reports that the step or the grant sets
// the limit. The default limit only detects calls that hang, so it starts again after a
// wait for a time, an event, a person or a child, and after nested steps, which have
// limits of their own.
//
//go:noinline
func (a *attempt) startTimeLimit(ctx context.Context, limit time.Duration, named bool) (end func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	var arm func(due time.Duration)
	arm = func(due time.Duration) {
		t := a.run.Clock().At(due+a.queueTime(), func() {
			if queued := a.queueTime(); a.run.Clock().Elapsed() < due+queued {
				arm(due) // a call waits, or waited, at a limit; that is not the step's time
				return
			}
			if next := a.waitLimit(limit); !named && next > 0 {
				arm(next)
				return
			}
			cancel(failure.New(abi.Timeout, "step %s timed out after %s", a.address, limit))
		})
		a.mu.Lock()
		a.timer = t
		a.mu.Unlock()
	}
	arm(a.run.Clock().Elapsed() - a.activeBefore + limit)
	a.ctx = ctx
	return func() {
		a.cancelWork(cancel)
		a.mu.Lock()
		t := a.timer
		a.mu.Unlock()
		t.Stop()
	}
}

// queueTime returns the active time in which calls of the attempt waited at a limit of what
// may execute at once. While one waits, it is a little ahead, so that the timer is not due
// again at once.
func (a *attempt) queueTime() time.Duration {
	a.mu.Lock()
	defer a.mu.Unlock()
	total := a.queuedFor
	for _, c := range a.calls {
		if c.queue != "" && c.queuedSince >= 0 {
			total += a.run.Clock().Elapsed() - c.queuedSince + time.Second
		}
	}
	return total
}

// waitLimit returns the active time of the run at which the default limit is due: limit
// after the wait that is under way, or after the one that ended last. It returns 0 if
// that time is over.
func (a *attempt) waitLimit(limit time.Duration) time.Duration {
	now := a.run.Clock().Elapsed()
	if a.hasOpenWait() {
		return now + limit
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if due := a.lastWaitEnd + limit; a.lastWaitEnd > 0 && due > now {
		return due
	}
	return 0
}

// isWait reports whether a call is not subject to the default time limit: a wait, nested
// steps, a command that is a run, or a watch with a limit of its own.
func (c *call) isWait() bool {
	switch c.function {
	case abi.FuncWait, abi.FuncBlock:
		return true
	case abi.FuncCommand:
		return c.asRun
	case abi.FuncWatch:
		req, e := watchOf(c)
		return e == nil && req.TimeoutMs > 0
	}
	return false
}

// hasOpenWait reports whether the attempt's open call is one of [call.isWait].
func (a *attempt) hasOpenWait() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, c := range a.calls {
		select {
		case <-c.done:
		default:
			return c.isWait()
		}
	}
	return false
}

// guestError returns the cause of a guest's error, nil if the guest was parked.
func (a *attempt) guestError(err error) error {
	if errors.Is(err, errPark) {
		return nil
	}
	if cause := context.Cause(a.ctx); cause != nil {
		return cause
	}
	e := abi.As(err)
	if e == nil {
		return err
	}
	own := *e
	own.End, own.Message = "", reference.AsWritten(e.Message, a.written)
	switch {
	case e.End != "" && a.mod.Trusted():
		return a.endError(sentinels.Status(e.End), own.Message)
	case e.End == "" && own.Message == e.Message:
		return err
	}
	return &own
}

// endError returns the error that ends the run with a status, as ABI clause A5.4 says.
func (a *attempt) endError(status sentinels.Status, message string) error {
	end := &EndError{Status: status, Step: a.address}
	switch status {
	case sentinels.StatusCompleted:
		if a.step.Fields["message"] != nil {
			a.log("info", message) // it has no error that would show it
		}
	case sentinels.StatusStopped:
		e := &abi.Error{Code: abi.Cancelled, Message: message, Permanent: true}
		if a.step.Fields["status"] == nil {
			e.Hint = `for an end that is a success write "status": "completed" in the step`
		}
		end.Err = e
	default:
		end.Status, end.Err = sentinels.StatusFailed, &abi.Error{Code: "failed", Message: message, Permanent: true}
	}
	return end
}

// timeLimit returns the active time that the attempt may take: the smaller of the limits
// of the step and the grant. named is false if neither is set: then the run's limit for
// such steps applies, or else the host's.
func (a *attempt) timeLimit() (limit time.Duration, named bool) {
	grant, _ := a.mod.Allowed()
	for _, ms := range []int64{a.step.TimeoutMs, grant.TimeoutMs} {
		own := time.Duration(ms) * time.Millisecond
		if ms > 0 && (!named || own < limit) {
			limit, named = own, true
		}
	}
	if named {
		return limit, true
	}
	if ms := a.run.Definition().Safety.MaxStepTimeoutMs; ms > 0 {
		return time.Duration(ms) * time.Millisecond, false
	}
	return a.svc.Limits.StepTimeout, false
}

// callGuest runs the guest until it returns or is parked.
func (a *attempt) callGuest(ctx context.Context, limit time.Duration) (json.RawMessage, error) {
	if err := a.takeTurn(ctx); err != nil {
		return nil, err
	}
	if err := a.run.Enter(ctx); err != nil {
		return nil, err
	}
	a.hasSlot = true
	defer func() {
		if a.hasSlot {
			a.run.Leave()
		}
	}()
	input, large, err := a.input()
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	a.seq, a.guestLogs, a.used = 0, 0, attemptUse{}
	replayed := a.n > 1 || len(a.calls) > 0 || a.checkpoint != nil
	if a.checkpoint != nil {
		a.seq = a.checkpoint.Seq
		a.guestLogs = a.checkpoint.Logs
		a.used = attemptUse{logs: a.checkpoint.LogBytes, stored: a.checkpoint.Stored}
	}
	a.mu.Unlock()
	res, err := a.mod.Run(ctx, wasm.Invocation{
		Input: input, Large: large, Seed: a.seed, ClockBase: a.clockBase, Call: a.handleHostCall, Compute: limit, Pure: replayed,
		Limits: wasm.Limits{MemoryBytes: a.memory(), MessageBytes: maxMessage, OutputBytes: maxMessage},
	})
	if !errors.Is(err, errPark) {
		a.reportDropped()
	}
	if e := abi.As(err); e != nil && e.Code == abi.Memory && e.Hint == "" {
		hinted := *e
		if hinted.Hint = a.memoryHint(); a.memory() == a.run.MemoryLimit() {
			hinted.Field, hinted.Message = run.ReasonMemory, run.ReasonMemory+" reached: "+e.Message
		}
		return nil, &hinted
	}
	if err != nil {
		return nil, err
	}
	a.outline = res.Outline
	return res.Output, nil
}

// memory returns the limit of the guest's linear memory in bytes, ABI clause A8.1. The
// grant may raise or lower the default, within the limit of the run.
func (a *attempt) memory() int64 {
	most := a.svc.Limits.GuestMemory
	if grant, _ := a.mod.Allowed(); grant.Memory > 0 {
		most = grant.Memory
	}
	return min(most, a.run.MemoryLimit(), plugin.MaxMemory)
}

// memoryHint says how to raise the limit of the guest's memory that was reached.
func (a *attempt) memoryHint() string {
	grant, _ := a.mod.Allowed()
	switch limit := a.memory(); {
	case limit == plugin.MaxMemory:
		return "no guest gets more memory; let the step work on less at once"
	case limit == a.run.MemoryLimit():
		return a.run.MemoryHint("limits.memory")
	case grant.Memory > 0:
		return fmt.Sprintf("`sentinel plugin allow --memory` of plugin %q raises the limit", a.mod.Manifest().Name)
	}
	return "raise the setting limits.guestMemory, or use `sentinel plugin allow --memory`"
}

// input returns the guest's input, ABI clause A3, and the large values of the fields, which belong into it.
func (a *attempt) input() (text []byte, large []wasm.LargeValue, err error) {
	type stepInput struct {
		Type    sentinels.StepType `json:"type"`
		ID      string             `json:"id,omitempty"`
		Name    string             `json:"name,omitempty"`
		Address string             `json:"address"`
		Path    string             `json:"path"`
		OnError string             `json:"onError,omitempty"`
	}
	type runInput struct {
		ID        sentinels.RunID `json:"id"`
		Sentinel  sentinels.ID    `json:"sentinel"`
		Iteration int             `json:"iteration"`
		Workspace string          `json:"workspace"`
		Key       string          `json:"key"`
	}
	onError := string(a.onError().Action)
	if onError == string(sentinels.ActionFail) {
		onError = ""
	}
	step, err := json.Marshal(stepInput{a.step.Type, a.step.ID, a.step.Name, a.address, a.path, onError})
	if err != nil {
		return nil, nil, err
	}
	run, err := json.Marshal(runInput{a.run.ID(), a.run.Start().Sentinel, a.run.Iteration(), a.run.Start().Workspace, a.key()})
	if err != nil {
		return nil, nil, err
	}
	size := len(step) + len(a.fields) + len(run) + len(a.retry) + len(a.state) + 100
	for _, p := range a.large {
		size -= p.To - p.From
	}
	var b bytes.Buffer
	b.Grow(size)
	fmt.Fprintf(&b, `{"abi":%d,"step":%s,"fields":`, abi.Version, step[:len(step)-1])
	done := 0
	for _, p := range a.large {
		b.Write(a.fields[done:p.From]) // they are encoded
		large = append(large, wasm.LargeValue{At: b.Len(), Value: a.fields[p.From:p.To:p.To]})
		done = p.To
	}
	b.Write(a.fields[done:])
	fmt.Fprintf(&b, `},"run":%s,"attempt":%d`, run, a.n)
	own := a.retry
	if a.n <= 1 { // a $retry of a step around is not part of the input
		own = nil
	}
	for _, part := range []struct {
		name  string
		value json.RawMessage
	}{{"retry", own}, {"state", a.state}} {
		if len(part.value) > 0 {
			fmt.Fprintf(&b, `,%q:`, part.name)
			appendValue(&b, part.value)
		}
	}
	b.WriteByte('}')
	return b.Bytes(), large, nil
}

// log reports a log line of the step.
func (a *attempt) log(level, message string) {
	p := a.progress(run.OnLog, a.n)
	p.Level, p.Message = level, message
	a.run.Report(p)
}

// seedOf derives the seed of attempt n from the seed of the run, so that a replay uses
// the same one.
func seedOf(run uint64, key string, enclosing []int, n int) uint64 {
	sum := digestSum(fmt.Sprint(run), key, fmt.Sprint(enclosing), fmt.Sprint(n))
	return uint64(sum[0]) | uint64(sum[1])<<8 | uint64(sum[2])<<16 | uint64(sum[3])<<24 |
		uint64(sum[4])<<32 | uint64(sum[5])<<40 | uint64(sum[6])<<48 | uint64(sum[7])<<56
}
