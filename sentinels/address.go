package sentinels

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// An address identifies a step by its position: "2", "3.then.0", "1.branches.0.2". It
// alternates between the index in a list and the field path of a nested list. "end.finally.0" is a
// step of the definition's own finally.

// EndAddress is the first part of the addresses of the definition's own onFailure and finally.
const EndAddress = "end"

// PathAddress returns the address in the definition of the step at an execution
// path, which is the path without the ordinals of blocks.
func PathAddress(path string) string {
	var b strings.Builder
	ordinal := false
	for _, r := range path {
		switch {
		case r == '#':
			ordinal = true
		case r == '.':
			ordinal = false
			b.WriteRune(r)
		case !ordinal:
			b.WriteRune(r)
		}
	}
	return b.String()
}

// listAt returns the list of the definition that an address is in, and the address within it.
func (d *Definition) listAt(address string) (list *[]Step, rest string) {
	if rest, ok := strings.CutPrefix(address, StepList{Key: BlockFinally}.Prefix()); ok {
		return &d.Finally, rest
	}
	if rest, ok := strings.CutPrefix(address, StepList{Key: BlockOnFailure}.Prefix()); ok {
		return &d.OnFailure, rest
	}
	return &d.Steps, address
}

// StepAt returns the step at an address. It is part of d and must not be
// changed.
func (d *Definition) StepAt(address string) (*Step, error) {
	first, rest := d.listAt(address)
	for list := *first; ; {
		index, field, after, err := cutAddress(list, address, rest)
		if err != nil {
			return nil, err
		}
		if index >= len(list) {
			return nil, outOfRange(address, index, len(list))
		}
		if field == "" {
			return &list[index], nil
		}
		list, rest = list[index].Blocks[field], after
	}
}

// InsertStep returns a copy of d with step inserted before the one at address. An
// address one past the end of its list appends. The copy is not checked: encode and
// decode it before use.
func (d *Definition) InsertStep(address string, step Step) (*Definition, error) {
	return d.edit(address, true, func(list []Step, i int) []Step { return slices.Insert(list, i, step) })
}

// ReplaceStep returns a copy of d in which step replaces the one at address. The copy
// is not checked, as that of [Definition.InsertStep].
func (d *Definition) ReplaceStep(address string, step Step) (*Definition, error) {
	return d.edit(address, false, func(list []Step, i int) []Step { list[i] = step; return list })
}

// RemoveStep returns a copy of d without the step at address.
func (d *Definition) RemoveStep(address string) (*Definition, error) {
	return d.edit(address, false, func(list []Step, i int) []Step { return slices.Delete(list, i, i+1) })
}

// edit copies the lists along the address and shares all others with d.
func (d *Definition) edit(address string, end bool, change func([]Step, int) []Step) (*Definition, error) {
	var at func(list []Step, rest string) ([]Step, error)
	at = func(list []Step, rest string) ([]Step, error) {
		index, field, after, err := cutAddress(list, address, rest)
		if err != nil {
			return nil, err
		}
		if index > len(list) || index == len(list) && !(end && field == "") {
			return nil, outOfRange(address, index, len(list))
		}
		list = slices.Clone(list)
		if field == "" {
			return change(list, index), nil
		}
		block, err := at(list[index].Blocks[field], after)
		if err != nil {
			return nil, err
		}
		list[index].Blocks = maps.Clone(list[index].Blocks)
		list[index].Blocks[field] = block
		return list, nil
	}
	out := *d
	list, rest := out.listAt(address)
	steps, err := at(*list, rest)
	if err != nil {
		return nil, err
	}
	*list = steps
	return &out, nil
}

// outOfRange returns an error with the valid range, for the user who typed the index.
func outOfRange(address string, index, length int) error {
	if length == 0 {
		return fmt.Errorf("step %q: index %d: the list is empty", address, index)
	}
	return fmt.Errorf("step %q: index %d: the list has 0 to %d", address, index, length-1)
}

// cutAddress splits rest into an index in list and, if there is more, the path of a
// block of that step and the address within the block.
func cutAddress(list []Step, address, rest string) (index int, field, after string, err error) {
	head, tail, more := strings.Cut(rest, ".")
	index, err = strconv.Atoi(head)
	if err != nil || index < 0 || head != strconv.Itoa(index) {
		return 0, "", "", fmt.Errorf("step %q: invalid index %q", address, head)
	}
	if !more {
		return index, "", "", nil
	}
	if index >= len(list) {
		return 0, "", "", outOfRange(address, index, len(list))
	}
	step := &list[index]
	first, tail, _ := strings.Cut(tail, ".")
	if _, ok := step.Blocks[first]; ok {
		return index, first, tail, nil
	}
	second, tail, _ := strings.Cut(tail, ".")
	if _, ok := step.Blocks[first+"."+second]; ok {
		return index, first + "." + second, tail, nil
	}
	names := "none"
	if len(step.Blocks) > 0 {
		names = quotedList(slices.Sorted(maps.Keys(step.Blocks)), " and ")
	}
	return 0, "", "", fmt.Errorf("step %q: the step has no list %q; its lists: %s", address, first, names)
}
