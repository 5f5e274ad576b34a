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

// Encode returns d as the text of a file: stored names, defaults left out,
// indented, a newline at the end. Decode of it gives d again.
func Encode(d *Definition) []byte {
	var b bytes.Buffer
	if err := json.Indent(&b, compact(d), "", "  "); err != nil {
		// Only a Definition built by hand with broken raw JSON comes here.
		return append(compact(d), '\n')
	}
	b.WriteByte('\n')
	return b.Bytes()
}

// MarshalJSON returns d as compact JSON, keys in the order of the format.
func (d Definition) MarshalJSON() ([]byte, error) { return compact(&d), nil }

// MarshalJSON returns s as compact JSON, as it stands in a definition.
func (s Step) MarshalJSON() ([]byte, error) { return encodeStep(&s), nil }

// MarshalJSON returns l as it stands in a definition.
func (l Loop) MarshalJSON() ([]byte, error) { return loopFields.encode(&l), nil }

// UnmarshalJSON refuses: which fields hold nested steps only the types know, so
// a definition is read by [Decode].
func (d *Definition) UnmarshalJSON([]byte) error {
	return errors.New("a definition is read by sentinels.Decode")
}

// UnmarshalJSON refuses, as that of [Definition] does.
func (s *Step) UnmarshalJSON([]byte) error {
	return errors.New("a step is read by sentinels.DecodeStep")
}

// Hash returns the SHA-256, in hex, over the canonical JSON of d. Definitions
// that mean the same, whatever their spelling, have the same hash.
func (d *Definition) Hash() string {
	raw := compact(d)
	if canonical, err := Canonical(raw); err == nil {
		raw = canonical
	}
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// compact is the one way to write a definition; all other forms are made of it.
func compact(d *Definition) json.RawMessage {
	return definitionFields.encode(&draft{Definition: *d})
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

// encodeStep writes the common fields in their order and the type's own, by
// name, between the condition and the output: the order people write them in.
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
			}
		}
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			o.add(name, fields[name])
		}
	}
	for i := range stepFields {
		if stepFields[i].name == "outputTo" {
			own()
		}
		if raw := stepFields[i].encode(s); raw != nil {
			o.add(stepFields[i].name, raw)
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
