package sentinel

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// needs are what a definition cannot be carried out without, beside the
// built-in step types and the commands of every host.
type needs struct {
	rt       *runtime.Runtime
	byID     map[sentinels.ID]runtime.Stored // the definition and all that it starts
	order    []sentinels.ID                  // of byID: what is started comes before what starts it
	recipes  map[string]bool
	types    map[sentinels.StepType]bool
	missing  map[sentinels.ID]bool // started, and not stored here
	problems []string              // stored definitions that cannot be read
}

// needsOf gathers what s needs, and what the sentinels need that it starts.
func (f family) needsOf(s runtime.Stored) *needs {
	n := &needs{rt: f.rt, byID: map[sentinels.ID]runtime.Stored{}, recipes: map[string]bool{}, types: map[sentinels.StepType]bool{}, missing: map[sentinels.ID]bool{}}
	n.stored(s)
	return n
}

// stored adds a stored definition, once however often it is named: sentinels may
// start each other in a circle.
func (n *needs) stored(s runtime.Stored) {
	if _, known := n.byID[s.ID]; known {
		return
	}
	n.byID[s.ID] = s
	// Its step types may have gone with their plugin.
	def, err := n.rt.Decoded(s)
	if err != nil {
		n.problems = append(n.problems, err.Error())
		return
	}
	n.definition(def)
	// After its children, which were added on the way.
	n.order = append(n.order, s.ID)
}

// definition adds what one definition names itself; sources of context that are
// not files, such as git or the chat, every host has.
func (n *needs) definition(def *sentinels.Definition) {
	if def.Recipe != "" {
		n.recipes[def.Recipe] = true
	}
	n.steps(def.Steps)
}

func (n *needs) steps(steps []sentinels.Step) {
	for i := range steps {
		n.step(&steps[i])
	}
}

func (n *needs) step(s *sentinels.Step) {
	// All of them; which of them a plugin of others provides is asked at the end.
	n.types[s.Type] = true
	// Sorted, so that the same sentinel gives the same list each time.
	for _, key := range slices.Sorted(maps.Keys(s.Blocks)) {
		n.steps(s.Blocks[key])
	}
	// Which field holds a child only the type's manifest says: a plugin of others
	// may start sentinels as the built-in step does.
	spec, ok := n.rt.Types().Lookup(s.Type)
	if !ok {
		return // its plugin went just now
	}
	for _, field := range slices.Sorted(maps.Keys(s.Fields)) {
		if spec.Mark(field) == abi.MarkDefinition {
			n.child(s.Fields[field])
		}
	}
	n.command(s)
}

// child adds what a step starts: a sentinel by its id, or a definition within
// the step, which may do without a name of its own.
func (n *needs) child(raw json.RawMessage) {
	if id := refIn(raw); id != "" {
		n.ref(id)
		return
	}
	var named map[string]json.RawMessage
	if json.Unmarshal(raw, &named) != nil {
		return
	}
	// Decode wants one of the two, though nobody will see it.
	if named["id"] == nil && named["name"] == nil {
		named["name"] = json.RawMessage(`"child"`)
	}
	text, err := json.Marshal(named)
	if err != nil {
		return
	}
	if def, problems := n.rt.Decode(text, "child"); len(problems) == 0 {
		n.definition(def)
	} else {
		n.problems = append(n.problems, problems.Error())
	}
}

// command adds the sentinel that a command step starts, if it says which.
func (n *needs) command(s *sentinels.Step) {
	var name string
	// Other commands name sentinels as well, to stop or to watch them; those they
	// do not need to be there.
	var params struct {
		SentinelID sentinels.ID `json:"sentinelId"`
	}
	if json.Unmarshal(s.Fields["command"], &name) != nil || name != "sentinel/start" ||
		json.Unmarshal(s.Fields["params"], &params) != nil || sentinels.Slug(string(params.SentinelID)) != params.SentinelID {
		return // another command, or an id that only the run knows
	}
	n.ref(params.SentinelID)
}

// ref adds a stored sentinel, with all that it needs in turn.
func (n *needs) ref(id sentinels.ID) {
	if id == "" {
		return
	}
	s, err := n.rt.Definition(id)
	switch {
	// No reason to refuse: it may be there already, where this one goes.
	case abi.CodeOf(err) == abi.NotFound:
		n.missing[id] = true
	case err != nil:
		n.problems = append(n.problems, err.Error())
	default:
		n.stored(s)
	}
}

// plugins returns those that provide the step types, without the built-in ones.
func (n *needs) plugins() []plugin.Info {
	var out []plugin.Info
	for _, p := range n.rt.Plugins() {
		// Trusted ones are part of the program, and that is there, too.
		if !p.Trusted && p.State == plugin.Live && slices.ContainsFunc(p.Types, func(t sentinels.StepType) bool { return n.types[t] }) {
			out = append(out, p)
		}
	}
	return out
}
