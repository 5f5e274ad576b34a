package sentinel

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An acceptIn is what sentinel/accept takes.
type acceptIn struct {
	SentinelID sentinels.ID `json:"sentinelId" jsonschema:"id of the sentinel"`
	Revision   int          `json:"revision" jsonschema:"the revision that was looked at; another newest one is a conflict" minimum:"1"`
	Note       string       `json:"note,omitempty" jsonschema:"why, for the history"`
}

// accept makes the newest revision one of the person who calls: its runs may call all that it
// names. It is a revision of its own, so that the history says who accepted which one.
func (f family) accept(ctx context.Context, call *command.Call, in acceptIn) (edited, error) {
	if err := f.sync(ctx, in.SentinelID); err != nil {
		return edited{}, err
	}
	head, err := f.rt.Definition(in.SentinelID)
	if err != nil {
		return edited{}, err
	}
	if head.Revision == in.Revision && head.Within == nil {
		return edited{}, &abi.Error{Code: abi.Conflict, Permanent: true, Message: fmt.Sprintf("accept sentinel %q: its runs may call every command already", head.ID)}
	}
	def, err := f.rt.Decoded(head)
	if err != nil {
		return edited{}, err
	}
	opt := runtime.SaveOptions{Expect: in.Revision, By: who(call), Note: in.Note, Whole: true}
	if opt.Note == "" {
		opt.Note = fmt.Sprintf("revision %d is accepted", in.Revision)
	}
	s, err := f.rt.SaveWith(ctx, def, opt)
	if err != nil {
		return edited{}, err
	}
	return edited{SentinelID: s.ID, Name: def.Name, Revision: s.Revision, Hash: s.Hash, Steps: len(def.Steps), Warning: f.writeBack(ctx, s)}, nil
}

// An Unaccepted sentinel names commands that the model or agent which made it may not call,
// or is not written to its file.
type Unaccepted struct {
	runtime.Stored
	// Beyond are these commands. It is empty if only the file waits.
	Beyond []string
	// Difference returns that to the newest revision without a bound, as lines of a unified
	// difference; without such a revision it is the whole definition.
	Difference func() ([]string, error)
}

// ListUnaccepted returns the sentinels that wait for a person to accept them.
func ListUnaccepted(ctx context.Context, opt Options) ([]Unaccepted, error) {
	f := family{opt.Runtime, opt}
	all, err := f.rt.Definitions()
	if err != nil {
		return nil, err
	}
	var out []Unaccepted
	for _, s := range all {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if s.Within == nil {
			continue
		}
		def := sentinels.Lenient(s.Definition, f.rt.DecodeOptions(""))
		if def == nil {
			continue // no run of it can start
		}
		beyond := f.beyond(s.Within, def)
		if len(beyond) == 0 && s.Origin == "" {
			// What is an agent's own and stays within its bound needs no person.
			if of, err := f.rt.RevisionOfPerson(s.ID, s.Revision); err != nil {
				return nil, err
			} else if of.Revision == 0 {
				continue
			}
		}
		out = append(out, Unaccepted{s, beyond, func() ([]string, error) { return f.sinceUnbounded(s) }})
	}
	return out, nil
}

// sinceUnbounded returns the difference of a revision to the newest one without a bound.
func (f family) sinceUnbounded(s runtime.Stored) ([]string, error) {
	def := sentinels.Lenient(s.Definition, f.rt.DecodeOptions(""))
	old, err := f.rt.RevisionOfPerson(s.ID, s.Revision)
	if err != nil {
		return nil, err
	}
	var before *sentinels.Definition
	if old.Revision != 0 {
		before = sentinels.Lenient(old.Definition, f.rt.DecodeOptions(""))
	}
	text := sentinels.DiffText(before, def, fmt.Sprintf("%s@%d", s.ID, old.Revision), fmt.Sprintf("%s@%d", s.ID, s.Revision))
	return strings.Split(strings.TrimSuffix(text, "\n"), "\n"), nil
}

// exceeds warns of the commands that a revision names beyond its bound, and of the limits that it raises, "" without any.
func (f family) exceeds(s runtime.Stored, def *sentinels.Definition) string {
	var commands string
	if names := f.beyond(s.Within, def); len(names) > 0 {
		commands = "its author may not call " + strings.Join(names, ", ") + ": no run of it may until a person accepts the revision, see sentinel inbox"
	}
	raised, err := f.rt.WaitingLimits(s)
	if err != nil {
		return joinLines(commands, fmt.Sprintf("it is not known whether revision %d raises limits: %v", s.Revision, err))
	}
	return joinLines(commands, waitingLimits(raised))
}

// waitingLimits warns of limits that wait for a person, "" for none.
func waitingLimits(raised []string) string {
	if len(raised) == 0 {
		return ""
	}
	return strings.Join(raised, ", ") + ": only a person raises limits: runs keep those of before until a person accepts the revision, see sentinel inbox"
}

// beyond returns the commands that a definition names and its bound does not allow, and such types
// of steps with grants, those of inline definitions too. Patterns are none: the bound narrows them.
func (f family) beyond(within []string, def *sentinels.Definition) []string {
	if within == nil || f.opt.Lookup == nil {
		return nil
	}
	var out []string
	types := f.rt.Types()
	def.Walk(types, func(_ string, d *sentinels.Definition) {
		for _, name := range sentinels.CommandsIn(d, types) {
			if c, known := f.opt.Lookup(name); known && !command.Allowed(within, c) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		}
	})
	granted := f.grantedTypes()
	def.Walk(types, func(_ string, d *sentinels.Definition) {
		d.EachStep(func(_ string, s *sentinels.Step) {
			name := fmt.Sprintf("step type %s", s.Type)
			if granted[s.Type] && !slices.Contains(within, runtime.TypeEntry(s.Type)) && !slices.Contains(out, name) {
				out = append(out, name)
			}
		})
	})
	slices.Sort(out)
	return out
}

// grantedTypes returns the step types whose plugins are granted hosts or folders. What they do by
// commands is bounded as every call is.
func (f family) grantedTypes() map[sentinels.StepType]bool {
	out := map[sentinels.StepType]bool{}
	for _, p := range f.rt.Plugins() {
		allow := p.Permissions
		if p.Grant != nil {
			allow = p.Grant.Allow
		}
		if slices.ContainsFunc(allow, func(a plugin.Permission) bool { return a.Use == string(abi.UseHTTP) || a.Use == string(abi.UseFolder) }) {
			for _, t := range p.Types {
				out[t] = true
			}
		}
	}
	return out
}
