package sentinels

import (
	"github.com/sentinel-runtime/sentinel/internal/linediff"

	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// ChangeOp is the kind of a change to one part of a definition.
type ChangeOp string

// The changes.
const (
	ChangeAdd     ChangeOp = "add"
	ChangeRemove  ChangeOp = "remove"
	ChangeReplace ChangeOp = "replace"
	ChangeMove    ChangeOp = "move" // an item of a list has another position and the same value
)

// A Change is one difference between two definitions.
type Change struct {
	Op ChangeOp `json:"op"`
	// Path is written as in problems, "steps[2].params.command". It is a path in the
	// new definition, for a removal in the old one.
	Path string `json:"path"`
	// From is the path in the old definition if it differs from Path.
	From string `json:"from,omitempty"`
	// Address is that of the step that contains Path, empty outside of steps.
	Address string          `json:"address,omitempty"`
	Old     json.RawMessage `json:"old,omitempty"`
	New     json.RawMessage `json:"new,omitempty"`
}

// Diff returns the changes from a to b, in the order of b, with removals before the
// part that follows them. Items of lists are matched by content, so that a step that
// was inserted at the front is one addition, not a change of all that follow.
// Definitions with the same hash have no changes.
func Diff(a, b *Definition) []Change {
	old, now := compactTree(a), compactTree(b)
	d := differ{before: a, after: b, old: old.Text, now: now.Text}
	d.value("", "", old.Root, now.Root)
	return d.changes
}

// compactTree returns the tree of the compact form of a definition.
func compactTree(d *Definition) *strictjson.Tree {
	return strictjson.Parse(compact(d), strictjson.Unlimited())
}

// A differ collects the changes between two definitions. It needs both for the
// addresses of steps, because a path does not show which fields are blocks.
type differ struct {
	before, after *Definition
	old, now      []byte // their compact forms
	changes       []Change
}

// add records one change; a nil node is a value that is not there. It clones the values
// so that they do not keep the whole texts in memory.
func (d *differ) add(op ChangeOp, from, path string, before, after *node) {
	c := Change{Op: op, Path: path}
	if before != nil {
		c.Old = slices.Clone(d.old[before.Start:before.End])
	}
	if after != nil {
		c.New = slices.Clone(d.now[after.Start:after.End])
	}
	of := d.after
	if op == ChangeRemove {
		c.Path, of = from, d.before
	} else if from != path && op != ChangeAdd {
		c.From = from
	}
	c.Address = of.addressIn(c.Path)
	d.changes = append(d.changes, c)
}

// value compares the values at from in a and at path in b.
func (d *differ) value(from, path string, before, after *node) {
	switch {
	case before.Equal(after):
	case before.Kind == '{' && after.Kind == '{':
		d.object(from, path, before, after)
	case before.Kind == '[' && after.Kind == '[':
		d.array(from, path, before.Items, after.Items)
	default:
		d.add(ChangeReplace, from, path, before, after)
	}
}

// object compares by keys. Their order has no meaning in JSON, so it is not a change.
func (d *differ) object(from, path string, before, after *node) {
	for _, m := range before.Members {
		if after.Member(m.Name) == nil {
			d.add(ChangeRemove, strictjson.Join(from, m.Name), "", m.Value, nil)
		}
	}
	for _, m := range after.Members {
		if was := before.Member(m.Name); was != nil {
			d.value(strictjson.Join(from, m.Name), strictjson.Join(path, m.Name), was, m.Value)
		} else {
			d.add(ChangeAdd, "", strictjson.Join(path, m.Name), nil, m.Value)
		}
	}
}

// array compares items by content, not by position. Changes are in the order of the
// new list, with a removed item before the item that it preceded.
func (d *differ) array(from, path string, old, now []*node) {
	m := matchItems(old, now)
	removed := make([]bool, len(old))
	for i := range removed {
		removed[i] = !slices.Contains(m.from, i)
	}
	next := 0 // index of the next old item
	removals := func(until int) {
		for ; next < until; next++ {
			if removed[next] {
				d.add(ChangeRemove, item(from, next), "", old[next], nil)
			}
		}
	}
	for j := range now {
		i := m.from[j]
		switch {
		case i < 0:
			d.add(ChangeAdd, "", item(path, j), nil, now[j])
		case m.moved[j]: // its old index is out of order
			d.add(ChangeMove, item(from, i), item(path, j), nil, now[j])
		default:
			removals(i)
			d.value(item(from, i), item(path, j), old[i], now[j])
		}
	}
	removals(len(old))
}

func item(path string, i int) string { return path + "[" + strconv.Itoa(i) + "]" }

// addressIn returns the address of the innermost step that contains a path such as
// "steps[3].then[0].params".
func (d *Definition) addressIn(path string) string {
	tokens := strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(`.[]"`, r) })
	if len(tokens) < 2 {
		return ""
	}
	list, rest := d.Steps, tokens[1:]
	switch tokens[0] {
	case "steps":
	case BlockOnFailure:
		list = d.OnFailure
	case BlockFinally:
		list = d.Finally
	default:
		return ""
	}
	address := StepList{Key: tokens[0]}.Prefix()
	for {
		i, err := strconv.Atoi(rest[0])
		if err != nil || i < 0 || i >= len(list) {
			return address
		}
		address += rest[0]
		step := &list[i]
		// Continue only if the rest of the path is in one of the step's own lists.
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

// DiffText returns a unified diff of the texts that [Encode] returns for two
// definitions. A nil definition is an empty text. The diff of equal definitions is
// empty.
func DiffText(a, b *Definition, nameA, nameB string) string {
	return linediff.Unified(encodedLines(a), encodedLines(b), nameA, nameB)
}

// encodedLines returns the lines of the text of d, with their line ends.
func encodedLines(d *Definition) []string {
	if d == nil {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(Encode(d)), "\n"), "\n")
}
