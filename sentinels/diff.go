package sentinels

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// ChangeOp is what became of one part of a definition.
type ChangeOp string

// The changes.
const (
	ChangeAdd     ChangeOp = "add"
	ChangeRemove  ChangeOp = "remove"
	ChangeReplace ChangeOp = "replace"
	ChangeMove    ChangeOp = "move" // an item of a list stands elsewhere, unchanged
)

// A Change is one difference between two definitions.
type Change struct {
	Op ChangeOp `json:"op"`
	// Path is the place as problems have it, "steps[2].params.command": in the
	// new definition, of a removal in the old one.
	Path string `json:"path"`
	// From is the place in the old definition where it differs from Path.
	From string `json:"from,omitempty"`
	// Address is the step that Path is in, empty outside of steps.
	Address string          `json:"address,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
}

// Diff returns what turns a into b, in the order of b, removals before what
// follows them. Items of lists are found again by their content, so that a step
// that was put in front is one addition and not a change of all behind it.
// Definitions of the same hash have no differences.
func Diff(a, b *Definition) []Change {
	d := differ{before: a, after: b}
	d.value("", "", compact(a), compact(b))
	return d.changes
}

// A differ collects the changes between two definitions. It keeps both for the
// addresses of steps, which paths alone do not give: what a block is only the
// step type knows.
type differ struct {
	before, after *Definition
	changes       []Change
}

// add notes one change. The places are cloned from larger texts that nobody
// else needs.
func (d *differ) add(op ChangeOp, from, path string, before, after []byte) {
	c := Change{Op: op, Path: path, Old: slices.Clone(before), New: slices.Clone(after)}
	of := d.after
	if op == ChangeRemove {
		c.Path, of = from, d.before
	} else if from != path && op != ChangeAdd {
		c.From = from
	}
	c.Address = of.addressIn(c.Path)
	d.changes = append(d.changes, c)
}

// value compares a value that was at from and is at path.
func (d *differ) value(from, path string, before, after []byte) {
	switch {
	case sameValue(before, after):
	case before[0] == '{' && after[0] == '{':
		d.object(from, path, before, after)
	case before[0] == '[' && after[0] == '[':
		d.array(from, path, before, after)
	default:
		d.add(ChangeReplace, from, path, before, after)
	}
}

// object compares by keys. Their order means nothing in JSON, so a key that
// only moved is no change.
func (d *differ) object(from, path string, before, after []byte) {
	old, now := membersOf(before), membersOf(after)
	for _, m := range old {
		if memberOf(now, m.name) == nil {
			d.add(ChangeRemove, join(from, m.name), "", m.value, nil)
		}
	}
	for _, m := range now {
		if was := memberOf(old, m.name); was != nil {
			d.value(join(from, m.name), join(path, m.name), was, m.value)
		} else {
			d.add(ChangeAdd, "", join(path, m.name), nil, m.value)
		}
	}
}

// array compares by what the items are, not by where. Everything is told in the
// order of the new list; what is gone, before the item that it stood before.
func (d *differ) array(from, path string, before, after []byte) {
	old, now := itemsOf(before), itemsOf(after)
	m := matchItems(old, now)
	gone := make([]bool, len(old))
	for i := range gone {
		gone[i] = !slices.Contains(m.from, i)
	}
	next := 0 // of the old items
	removals := func(until int) {
		for ; next < until; next++ {
			if gone[next] {
				d.add(ChangeRemove, item(from, next), "", old[next], nil)
			}
		}
	}
	for j := range now {
		i := m.from[j]
		switch {
		case i < 0:
			d.add(ChangeAdd, "", item(path, j), nil, now[j])
		case m.moved[j]: // its old place is no sign of how far we are
			d.add(ChangeMove, item(from, i), item(path, j), nil, now[j])
		default:
			removals(i)
			d.value(item(from, i), item(path, j), old[i], now[j])
		}
	}
	removals(len(old))
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// addressIn returns the address of the innermost step that a path such as
// "steps[3].then[0].params" is in.
func (d *Definition) addressIn(path string) string {
	tokens := strings.FieldsFunc(path, func(r rune) bool { return r == '.' || r == '[' || r == ']' })
	if len(tokens) < 2 || tokens[0] != "steps" {
		return ""
	}
	address, list, rest := "", d.Steps, tokens[1:]
	for {
		i, err := strconv.Atoi(rest[0])
		if err != nil || i < 0 || i >= len(list) {
			return address
		}
		address += rest[0]
		step := &list[i]
		// Deeper only if what follows is a place in one of the step's own lists.
		if rest = rest[1:]; len(rest) < 2 {
			return address
		}
		if block, ok := step.Blocks[rest[0]]; ok {
			list, address, rest = block, address+"."+rest[0]+".", rest[1:]
		} else if block, ok := step.Blocks[rest[0]+"."+rest[1]]; ok && len(rest) > 2 {
			list, address, rest = block, address+"."+rest[0]+"."+rest[1]+".", rest[2:]
		} else {
			return address
		}
	}
}
