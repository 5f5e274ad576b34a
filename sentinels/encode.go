package sentinels

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Encode returns d as the text of a file: stored names, no defaults, indented, with a
// newline at the end. Decode returns d for it.
func Encode(d *Definition) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, compact(d), "", "  "); err != nil {
		// Only for a Definition that was not decoded and has invalid raw JSON.
		return append(compact(d), '\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// MarshalJSON returns d as compact JSON, keys in the order of the format.
func (d Definition) MarshalJSON() ([]byte, error) { return compact(&d), nil }

// MarshalJSON returns s as compact JSON, as it is written in a definition.
func (s Step) MarshalJSON() ([]byte, error) { return encodeStep(&s), nil }

// MarshalJSON returns l as it is written in a definition.
func (l Loop) MarshalJSON() ([]byte, error) { return format.loop.encode(&l), nil }

// UnmarshalJSON returns an error: use [Decode], because only the step types define
// which fields hold nested steps.
func (d *Definition) UnmarshalJSON([]byte) error {
	return errors.New("use sentinels.Decode to read a definition")
}

// UnmarshalJSON returns an error, as that of [Definition].
func (s *Step) UnmarshalJSON([]byte) error {
	return errors.New("use sentinels.DecodeStep to read a step")
}

// Hash returns the SHA-256, in hex, over the canonical JSON of d. Definitions
// with the same meaning have the same hash, however they are written.
func (d *Definition) Hash() string {
	raw := compact(d)
	if canonical, err := Canonical(raw); err == nil {
		raw = canonical
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// compact returns a definition as compact JSON, from which all other forms are derived.
func compact(d *Definition) json.RawMessage {
	return format.definition.encode(&fileDefinition{Definition: *d})
}

func encodeSteps(steps []Step) json.RawMessage {
	b := []byte{'['}
	for i := range steps {
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, encodeStep(&steps[i])...)
	}
	return append(b, ']')
}

// encodeStep writes the common fields in their order and the type's own, sorted by
// name, between condition and outputTo, where authors usually write them.
func encodeStep(s *Step) json.RawMessage {
	var o object
	own := func() {
		fields := maps.Clone(s.Fields)
		if fields == nil {
			fields = make(map[string]json.RawMessage, len(s.Blocks))
		}
		for path := range s.Blocks {
			name, index, list := strings.Cut(path, ".")
			switch {
			case !list:
				fields[name] = encodeSteps(s.Blocks[path])
			case index == "0":
				fields[name] = encodeBranches(s, name)
			case stepID(index) && fields[name] == nil:
				fields[name] = encodeNamed(s, name)
			}
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			o.add(name, fields[name])
		}
	}
	written := false
	for _, f := range format.step {
		if f.behindOwn && !written {
			own()
			written = true
		}
		if raw := f.encode(s); raw != nil {
			o.add(f.name, raw)
		}
	}
	if !written {
		own()
	}
	return o.bytes()
}

// encodeNamed writes the branches that have names, in their order.
func encodeNamed(s *Step, name string) json.RawMessage {
	var o object
	for _, path := range sortedBlocks(s) {
		if branch, ok := strings.CutPrefix(path, name+"."); ok {
			o.add(branch, encodeSteps(s.Blocks[path]))
		}
	}
	return o.bytes()
}

// encodeBranches writes the entries name.0, name.1, ... up to the first gap.
func encodeBranches(s *Step, name string) json.RawMessage {
	b := []byte{'['}
	for i := 0; ; i++ {
		steps, ok := s.Blocks[name+"."+strconv.Itoa(i)]
		if !ok {
			return append(b, ']')
		}
		if i > 0 {
			b = append(b, ',')
		}
		b = append(b, encodeSteps(steps)...)
	}
}
