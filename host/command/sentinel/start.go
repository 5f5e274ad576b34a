package sentinel

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

type startIn struct {
	SentinelID string          `json:"sentinelId,omitempty" jsonschema:"id of the sentinel"`
	File       string          `json:"file,omitempty" jsonschema:"in place of a stored sentinel, a file that holds the definition, below the workspace or absolute"`
	Definition json.RawMessage `json:"definition,omitempty" jsonschema:"in place of a stored sentinel, the definition itself"`
	besideIn
	Inputs    map[string]json.RawMessage `json:"inputs,omitempty" jsonschema:"values of its inputs"`
	Variables map[string]json.RawMessage `json:"variables,omitempty" jsonschema:"variables that are set before the first step"`
	Event     json.RawMessage            `json:"event,omitempty" jsonschema:"$event: its data, or a CloudEvents record with type and source"`
	Workspace string                     `json:"workspace,omitempty" jsonschema:"folder the run works in; the caller's if not given. Models and agents name one in it"`
	Key       string                     `json:"key,omitempty" jsonschema:"idempotency key: a repeated start with it returns the first run"`
	Pinned    bool                       `json:"pinned,omitempty" jsonschema:"stay on this revision when the sentinel is edited"`
	forceIn
	OnInterrupt string `json:"onInterrupt,omitempty" jsonschema:"for calls in doubt where neither a step nor the definition decides" enum:"retry,fail,ask"`
}

// answers returns the error of a caller that decides in advance about calls in doubt, which are questions to persons.
// The setting also holds for the sentinels of persons that a definition of the caller starts.
func (in startIn) answers(call *command.Call, id sentinels.ID) error {
	if answer := sentinels.Interrupt(in.OnInterrupt); answer == "" || answer == sentinels.InterruptAsk || !setsInputsOnly(call) {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "onInterrupt", Message: fmt.Sprintf("start %s: only a person says what happens to its calls in doubt", id),
		Hint: "leave onInterrupt out: a person is asked, unless the definition decides",
	}
}

type forceIn struct {
	Force bool `json:"force,omitempty" jsonschema:"start beside active runs, whatever concurrency of the definition says; for persons"`
}

// allowed returns the error of a caller that forces a run and is not a person, nor a step of a person's
// definition.
func (in forceIn) allowed(call *command.Call, id sentinels.ID) error {
	if !in.Force || !setsInputsOnly(call) {
		return nil
	}
	return &abi.Error{
		Code: abi.Denied, Permanent: true, Field: "force",
		Message: fmt.Sprintf("%s: only a person starts a run of %s beside another one", strings.TrimPrefix(call.Command, "sentinel/"), id),
		Hint:    "leave force out: concurrency of the definition then says what happens while a run is active",
	}
}

type runOut struct {
	ID        sentinels.RunID  `json:"id" jsonschema:"equal to run"`
	Run       sentinels.RunID  `json:"run"`
	Sentinel  sentinels.ID     `json:"sentinel"`
	Revision  int              `json:"revision,omitempty"`
	Status    sentinels.Status `json:"status" jsonschema:"with a start key that was used, of the run that it started"`
	StartedAt int64            `json:"startedAt" jsonschema:"milliseconds since 1970"`
}

// start returns when the run is durable; what it does goes on behind.
func (f family) start(ctx context.Context, call *command.Call, in startIn) (runOut, error) {
	return f.begin(ctx, call, in, false)
}

// begin starts a run, with child as a child of the run that calls.
func (f family) begin(ctx context.Context, call *command.Call, in startIn, child bool) (runOut, error) {
	def, revision, origin, named, err := f.startable(ctx, call, in)
	if err != nil {
		return runOut{}, err
	}
	if err := in.answers(call, def.ID); err != nil {
		return runOut{}, err
	}
	opt := runtime.StartOptions{
		Inputs: in.Inputs, Variables: in.Variables, Workspace: in.Workspace, Key: call.Key,
		Revision: revision, Named: named, Pinned: in.Pinned, Starter: causingRun(call), Child: child, GivenBy: call.Share(),
		Durable:     call.Run == "", // else the result is in the journal of the run that calls, behind the start
		OnInterrupt: sentinels.Interrupt(in.OnInterrupt),
	}
	if child && call.Run != "" && in.Key == "" {
		opt.Key = "" // the run is one of this attempt of the step
	}
	if in.SentinelID == "" {
		// Otherwise the caller would do by a definition of its own what it may not do itself.
		if opt.Within, err = f.boundOfOwn(call, def, named); err != nil {
			return runOut{}, err
		}
	}
	if in.SentinelID != "" && len(in.Variables)+len(in.Inputs) > 0 && setsInputsOnly(call) {
		stored, err := f.rt.Revision(def.ID, revision)
		if err != nil {
			return runOut{}, err
		}
		if err := mayName(def, stored.Within, "variables", in.Variables, in.Inputs); err != nil {
			return runOut{}, err
		}
	}
	if err := f.mayPlace(call, def, in.Workspace); err != nil {
		return runOut{}, err
	}
	switch {
	case opt.Workspace == "":
		opt.Workspace = runtime.WorkspaceBase(def, origin, call.Workspace)
	case opt.Within != nil && opt.Workspace != call.Workspace:
		return runOut{}, &abi.Error{
			Code: abi.Denied, Permanent: true, Field: "workspace",
			Message: fmt.Sprintf("start: workspace %s is not that of the step", opt.Workspace), Hint: "a definition of a model works in the workspace of its step: leave workspace out",
		}
	}
	if opt.As = call.As; call.By == command.ByAgent {
		opt.As = call.Who()
	}
	if !child || call.Run == "" {
		if opt.Overlap = def.Concurrency; in.Force {
			opt.Overlap = ""
		}
		opt.Over = func(r runtime.RunInfo) error { return f.mayStop(call, r) }
	}
	if err := in.allowed(call, def.ID); err != nil {
		return runOut{}, err
	}
	if in.Event != nil {
		if opt.Event, err = f.eventOf(call, in.Event, time.Now()); err != nil {
			return runOut{}, err
		}
	}
	id, err := f.rt.Start(ctx, def, opt)
	if err != nil {
		return runOut{}, err
	}
	info, err := f.rt.Status(id)
	return runOut{id, id, info.Sentinel, info.Revision, info.Status, info.StartedAt}, err
}

// setsInputsOnly reports whether a caller is not a person, nor a step of a person's definition: it sets
// the inputs of such a definition, and none of its other variables.
func setsInputsOnly(call *command.Call) bool { return call.Bounded() || call.ForAgent() }

// mayName returns an error if a caller for which setsInputsOnly holds gives the definition of a person
// variables that are not among its inputs: they could be those that its shell lines use, such as $HOME.
// within is the bound of the definition, which one of a model or agent has.
func mayName(def *sentinels.Definition, within []string, field string, given ...map[string]json.RawMessage) error {
	if within != nil {
		return nil
	}
	for _, values := range given {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if _, ok := def.Inputs[name]; !ok {
				return &abi.Error{
					Code: abi.Denied, Permanent: true, Field: field, Message: fmt.Sprintf("start: %q is not an input of %s, and only a person sets its other variables", name, def.ID),
					Hint: fmt.Sprintf("leave it out, or have a person declare it in the inputs of %s", def.ID),
				}
			}
		}
	}
	return nil
}

// mayPlace returns an error if a caller that is held to rules places a run outside of its own
// workspace, also with the definition of another: the steps of a person would do there what the caller
// may not. That is the folder which is served, or that of the run which calls. Its hidden
// folders and the host's are no place either, since rules about files go by their names in the
// workspace.
func (f family) mayPlace(call *command.Call, def *sentinels.Definition, dir string) error {
	if dir == "" || !call.Held() {
		return nil
	}
	places := []string{dir}
	if def.Workspace != "" && !filepath.IsAbs(def.Workspace) {
		places = append(places, filepath.Join(dir, def.Workspace))
	}
	rules := f.opt.Rules.In(call.Workspace)
	hidden := func(part string) bool { return part != "." && strings.HasPrefix(part, ".") }
	root, err := filepath.EvalSymlinks(call.Workspace)
	for _, place := range places {
		if place == call.Workspace {
			continue
		}
		real, placeErr := filepath.Abs(place) // as the engine does
		if placeErr == nil {
			real, placeErr = filepath.EvalSymlinks(real)
		}
		rel, relErr := filepath.Rel(root, real)
		if err != nil || placeErr != nil || relErr != nil || !filepath.IsLocal(rel) ||
			slices.ContainsFunc(strings.Split(rel, string(filepath.Separator)), hidden) || rel != "." && rules.Closed(filepath.ToSlash(rel)) {
			return &abi.Error{
				Code: abi.Denied, Permanent: true, Field: "workspace",
				Message: fmt.Sprintf("start: workspace %s is not a folder in that of the caller", place),
				Hint:    "leave workspace out, or name a folder below the workspace that is not hidden",
			}
		}
	}
	return nil
}

// boundOfOwn returns the bound of a run whose definition comes with the call, see
// [command.Call.Bound]. History, memory, overlap policy and events of a run count for the id
// of its definition, and so do those of the definitions beside it. Only a person gives a
// definition the id of a stored sentinel that it does not equal: as a draft of its next
// revision.
func (f family) boundOfOwn(call *command.Call, def *sentinels.Definition, beside map[sentinels.ID]*sentinels.Definition) ([]string, error) {
	if call.By == command.ByUser {
		return call.Bound(), nil
	}
	var bounds [][]string
	given := map[sentinels.ID]*sentinels.Definition{}
	maps.Copy(given, beside)
	given[def.ID] = def
	for _, id := range slices.Sorted(maps.Keys(given)) {
		stored, err := f.rt.Definition(id)
		switch {
		case abi.CodeOf(err) == abi.NotFound:
			continue
		case err != nil:
			return nil, err
		case !f.equalsStored(stored, *given[id]):
			return nil, &abi.Error{
				Code: abi.Denied, Permanent: true, Field: "definition",
				Message: fmt.Sprintf("start: the definition has the id of the stored sentinel %q and is another one: its runs would count as runs of that sentinel", id),
				Hint:    "give it another id, or start the stored sentinel with sentinelId",
			}
		case stored.Within != nil:
			bounds = append(bounds, stored.Within)
		}
	}
	return call.BoundBy(bounds...), nil
}

// equalsStored reports whether a definition is the stored one but for its author.
func (f family) equalsStored(stored runtime.Stored, def sentinels.Definition) bool {
	if head := sentinels.Lenient(stored.Definition, f.rt.DecodeOptions("")); head != nil {
		def.CreatedBy = head.CreatedBy
	}
	return stored.Hash == def.Hash()
}

// eventOf returns the event of a start. A CloudEvents record is taken as it is; any
// other value is the data of a new event. The record of an agent or model has it as its source,
// no history, and no name of an event that only the engine or the host emits: definitions trust these.
func (f family) eventOf(call *command.Call, raw json.RawMessage, now time.Time) (*sentinels.Event, error) {
	var members map[string]json.RawMessage
	_ = json.Unmarshal(raw, &members) // data may be of any type
	e := &sentinels.Event{}
	if members["type"] != nil && members["source"] != nil {
		if err := strictjson.DecodeOpen(raw, e, strictjson.Unlimited()); err != nil {
			return nil, &abi.Error{Code: abi.BadFields, Field: "event", Message: fmt.Sprintf("start: event: %v", err), Hint: "a CloudEvents record has id, type, source, time and data"}
		}
	} else {
		e.Name, e.Source, e.Data = "manual", call.Who(), raw
	}
	if call.Share() != "" {
		if err := f.rt.CheckEventName(e.Name); err != nil {
			return nil, err
		}
		taken := sentinels.TakesEvent(e.Name, "", &sentinels.Event{Name: e.Name, Source: call.Who()}, f.rt.IsStored)
		if !taken {
			return nil, &abi.Error{
				Code: abi.Denied, Permanent: true, Field: "event", Message: fmt.Sprintf("start: %q is an event of runs of a stored sentinel, which only the engine emits", e.Name),
				Hint: "give the event another name",
			}
		}
		e = &sentinels.Event{ID: e.ID, Name: e.Name, Source: call.Who(), Subject: e.Subject, Time: e.Time, Data: e.Data}
	}
	e.By = call.Share() // whatever the caller says
	if e.ID == "" {
		e.ID = rand.Text()
	}
	if e.Time.IsZero() {
		e.Time = now.UTC()
	}
	return e, nil
}

// startable returns what is to be run: the stored sentinel with its revision and its file, or
// a definition of the caller's own, which is stored nowhere but in the run, with those
// that it refers to.
func (f family) startable(ctx context.Context, call *command.Call, in startIn) (def *sentinels.Definition, revision int, origin string, beside map[sentinels.ID]*sentinels.Definition, err error) {
	given := 0
	for _, is := range []bool{in.SentinelID != "", in.File != "", in.Definition != nil} {
		if is {
			given++
		}
	}
	switch {
	case given != 1:
		return nil, 0, "", nil, &abi.Error{Code: abi.BadFields, Field: "sentinelId", Message: "start: give sentinelId, or file, or definition"}
	case in.SentinelID != "" && in.Definitions != nil:
		return nil, 0, "", nil, &abi.Error{Code: abi.BadFields, Field: "definitions", Message: "start: definitions needs file or definition: a stored sentinel refers to stored ones"}
	case in.SentinelID != "":
		stored, err := f.rt.Definition(sentinels.ID(in.SentinelID))
		if err != nil {
			return nil, 0, "", nil, err
		}
		def, err := f.rt.Decoded(stored)
		return def, stored.Revision, stored.Origin, nil, err
	}
	from := createIn{File: in.File, Definition: in.Definition}
	src, file, err := f.source(call, from)
	if err != nil {
		return nil, 0, "", nil, err
	}
	def, problems := f.rt.Decode(src, file)
	if len(problems) == 0 {
		types := f.rt.Types()
		problems = sentinels.Check(ctx, def, types, slices.Collect(maps.Keys(in.Variables))...).Errors().Locate(file, src, types)
	}
	if len(problems) > 0 {
		return nil, 0, "", nil, from.refused(problems)
	}
	all, err := f.beside(ctx, call, in.besideIn, src, from.path(file), f.reader(call))
	if err != nil {
		return nil, 0, "", nil, err
	}
	if wrong := f.childInputs(def, all, false); len(wrong) > 0 {
		return nil, 0, "", nil, from.refused(wrong.Locate(file, src, f.rt.Types()))
	}
	beside = map[sentinels.ID]*sentinels.Definition{}
	for id, n := range all {
		beside[id] = n.Definition
	}
	return def, 0, "", beside, nil
}
