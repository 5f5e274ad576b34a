package sentinels

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// limits reports fields of safety that have no effect beside the others, the loop and the
// budget.
func (c *checker) limits(d *Definition, prefix string) {
	loop, once := d.Loop.Type, d.Loop.Type == "" || d.Loop.Type == LoopOnce
	if d.Safety.MaxIterations > 0 && once {
		c.warn(prefix+"safety.maxIterations", `add a "loop", or leave it out`, "maxIterations has no effect: without a loop there is one iteration")
	}
	if d.Safety.FinallyTimeoutMs > 0 && len(d.Lists()) == 1 {
		c.warn(prefix+"safety.finallyTimeoutMs", `add "finally" or "onFailure", or leave it out`, "finallyTimeoutMs has no effect: the definition has neither")
	}
	// continuous and event loops complete at maxIterations.
	stops := d.Safety.MaxIterations > 0 && !once && loop != LoopContinuous && loop != LoopEvent
	if d.Safety.OnTimeout != "" && d.Safety.TimeoutMs == 0 && d.Budget == (Budget{}) && !stops {
		c.warn(prefix+"safety.onTimeout", `add "timeoutMs", or a "budget"`, "onTimeout has no effect: the run has no limit that it applies to")
	}
}

// inline reports fields of an inline definition that are for stored sentinels.
func (c *checker) inline(d *Definition, prefix string) {
	const reason = "%s has no effect in an inline definition, which only its step starts"
	if len(d.Triggers) > 0 {
		c.warn(prefix+"trigger", "leave it out", reason, "trigger")
	}
	if d.Concurrency != "" {
		c.warn(prefix+"concurrency", "leave it out", reason, "concurrency")
	}
	if d.Notify != nil {
		c.warn(prefix+"notify", "leave it out", "notify has no effect in an inline definition: that of the outer definition counts")
	}
}

// childTools reports tools of a step whose definition is not the value of a variable.
func (c *checker) childTools(s *Step, path string) {
	if s.Type == "sentinel" && s.Fields["tools"] != nil && !reference.IsReference(reference.Text(s.Fields["definition"])) {
		c.warn(path+".tools", "leave it out", "tools has no effect: it bounds a definition that is the value of a variable, and this one is written or named here")
	}
}

// lostUpdates warns of steps of a loop with maxConcurrent that compute a variable from itself. Each item begins with the
// value from before the loop and keeps its own, so that all items compute the same and the loop changes nothing.
func (c *checker) lostUpdates(loop *Step, steps []Step, path string) {
	own := make(map[string]bool) // what an item has set, or gets from the loop
	for _, name := range setBy(loop, c.types) {
		own[name] = true
	}
	eachStep(steps, path, func(at string, s *Step) {
		update := func(at, name string, values ...json.RawMessage) {
			from := slices.ContainsFunc(values, func(raw json.RawMessage) bool { return slices.Contains(reference.Names(raw), name) })
			if from && !own[name] && c.assigned[name] {
				c.warn(at, `give the loop "outputTo": "all" and compute it from $all.results after the loop, or leave maxConcurrent out: items then follow each other`,
					"with maxConcurrent, each item begins with the $%s from before the loop, and the value that it sets is gone at its end", name)
			}
		}
		if spec, ok := c.types.Lookup(s.Type); ok {
			for _, mark := range spec.Marks() {
				if raw := s.Fields[mark.Path]; mark.Mark == markValues && len(raw) > 0 && raw[0] == '{' {
					strictjson.EachMember(raw, func(name, value []byte) bool {
						key := strictjson.Unquote(name)
						update(at+"."+mark.Path+"."+key, key, value)
						return true
					})
				}
			}
		}
		if s.OutputTo != "" && s.Type != "loop" { // whose own steps are looked at
			update(at+".outputTo", s.OutputTo, slices.Collect(maps.Values(s.Fields))...)
		}
		for _, name := range setBy(s, c.types) {
			own[name] = true
		}
	})
}

// output reports a parse whose value nothing gets: an id gives the whole output. That of the last step of a list is
// the output of the list, which results of a loop have, and $last is that of any step.
func (c *checker) output(s *Step, path string) {
	if s.Parse != "" && s.OutputTo == "" && !c.lastOf[s] && !c.usesLast {
		c.warn(path+".parse", `add "outputTo", the variable that gets the value`, `parse has no effect without "outputTo"`)
	}
}

// unused reports fields of an llm step that have no effect beside the others. A
// plugin can report errors of its fields only, and these definitions are valid.
func (c *checker) unused(s *Step, path string) {
	warn := func(field, hint, reason string) {
		if len(s.Fields[field]) > 0 {
			c.warn(path+"."+field, hint, "%s has no effect: %s", field, reason)
		}
	}
	if s.Type != "llm" {
		return
	}
	if len(s.Blocks["checks"]) == 0 {
		warn("maxChecks", `add "checks", or leave it out`, "the step has no checks")
	}
	tools, execute := s.Fields["tools"], string(s.Fields["parseToolCalls"])
	switch none := string(tools) == "[]"; {
	case execute == "false":
		const reason = "with parseToolCalls false no tool call is executed"
		warn("maxToolCalls", "leave it out", reason)
		warn("confirm", "leave it out", reason)
	case len(tools) == 0 && execute == "" || none:
		const hint, reason = `add "tools", or leave it out`, "the step has no tools"
		warn("maxToolCalls", hint, reason)
		warn("confirm", hint, reason)
		if execute == "true" {
			warn("parseToolCalls", hint, reason)
		}
	}
}
