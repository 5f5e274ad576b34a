package sentinels

import (
	"math"
	"slices"
	"strconv"
)

// The later documents of the original system write some fields of steps in another form.
// adaptStep replaces these by the fields of this format, so that such a file can be read
// (F12). Fields that the type itself has are not replaced, nor are those of the step types
// of other plugins. n is a copy whose members may be changed; paths in problems stay as
// written.
func (d *decoder) adaptStep(n *node, spec *TypeSpec) {
	if spec == nil || spec.Plugin != builtIn {
		return
	}
	n.Members = slices.Clone(n.Members)
	d.adapt(n, spec, "timeoutSecs", "timeoutMs", func(m member) *node { return milliseconds(m.Value) })
	switch spec.Type {
	case "shell":
		d.adaptArgs(n)
	case "parallel":
		if at := memberAt(n, "concurrency"); at >= 0 { // its name until maxConcurrent
			m := n.Members[at]
			d.addAt(m.Start, m.Value.Path(), KindUnknown, `write "maxConcurrent"`, `unknown key "concurrency"`)
			n.Members = slices.Delete(n.Members, at, at+1)
		}
		d.adapt(n, spec, "steps", "branches", func(m member) *node {
			if m.Value.Kind != '[' {
				return m.Value
			}
			branches := *m.Value
			branches.Items = nil
			for _, step := range m.Value.Items {
				branch := *step
				branch.Kind, branch.Members, branch.Items = '[', nil, []*node{step}
				branches.Items = append(branches.Items, &branch)
			}
			return &branches
		})
	case "llm":
		d.adaptProvider(n)
	}
}

// adapt replaces the member from by to, unless the type has a field from. A step that has
// both is a problem.
func (d *decoder) adapt(n *node, spec *TypeSpec, from, to string, value func(member) *node) {
	at := memberAt(n, from)
	if at < 0 || spec.compiled.has(spec.stored(from)) {
		return
	}
	if memberAt(n, to) >= 0 {
		d.both(n.Members[at], to)
		n.Members = slices.Delete(n.Members, at, at+1)
		return
	}
	n.Members[at].Value = value(n.Members[at])
	n.Members[at].Name = to
}

// adaptArgs replaces {"cmd": "echo", "args": ["a b"]} by {"argv": ["echo", "a b"]}. An
// empty list leaves the command line, which the shell executes.
func (d *decoder) adaptArgs(n *node) {
	at := memberAt(n, "args")
	if at < 0 {
		return
	}
	m := n.Members[at]
	if m.Value.Kind != '[' {
		d.wrongType(m.Value, "an array of strings")
		n.Members = slices.Delete(n.Members, at, at+1)
		return
	}
	command := max(memberAt(n, "cmd"), memberAt(n, "command"))
	switch {
	case memberAt(n, "argv") >= 0:
		d.both(m, "argv")
	case command < 0:
		d.add(m.Value, KindMissing, `write "argv": [PROGRAM, ARGUMENT, ...]`, "args need cmd, the program")
	case len(m.Value.Items) > 0:
		argv := *m.Value
		argv.Items = slices.Concat([]*node{n.Members[command].Value}, m.Value.Items)
		n.Members[command].Name, n.Members[command].Value = "argv", &argv
	}
	n.Members = slices.Delete(n.Members, at, at+1)
}

// adaptProvider replaces {"provider": "openai", "model": "gpt-5"} by {"model":
// "openai/gpt-5"}.
func (d *decoder) adaptProvider(n *node) {
	at := memberAt(n, "provider")
	if at < 0 {
		return
	}
	provider, ok := d.nonEmptyText(n.Members[at].Value)
	model := memberAt(n, "model")
	switch {
	case !ok:
	case model < 0:
		d.add(n.Members[at].Value, KindMissing, `write "model": "`+provider+`/NAME"`, "a provider needs a model")
	case n.Members[model].Value.Kind != '"':
		d.add(n.Members[at].Value, KindValue, `write each model as "`+provider+`/NAME"`, "a provider needs one model")
	default:
		joined := *n.Members[model].Value
		joined.Text = provider + "/" + joined.Text
		n.Members[model].Value = &joined
	}
	n.Members = slices.Delete(n.Members, at, at+1)
}

// both reports a field that is given in the form of the later documents and in ours.
func (d *decoder) both(m member, stored string) {
	d.addAt(m.Start, m.Value.Path(), KindDuplicate, "remove one of them", strconv.Quote(m.Name)+" and "+strconv.Quote(stored)+" are the same field")
}

// milliseconds returns a number of seconds as one of milliseconds, rounded up; every other
// value unchanged.
func milliseconds(n *node) *node {
	seconds, err := strconv.ParseFloat(n.Text, 64)
	if n.Kind != '0' || err != nil || seconds > maxInteger/1000 {
		return n
	}
	ms := *n
	ms.Text = strconv.FormatInt(int64(math.Ceil(seconds*1000)), 10)
	return &ms
}

func memberAt(n *node, name string) int {
	return slices.IndexFunc(n.Members, func(m member) bool { return m.Name == name })
}
