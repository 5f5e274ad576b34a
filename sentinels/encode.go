package sentinels

import "encoding/json"

// Encode returns d as the text of a file: canonical names, indented, newline at
// the end. Decode of it gives d again.
func Encode(d *Definition) []byte { return nil }

// MarshalJSON returns d as compact JSON, keys in the order of the format.
func (d *Definition) MarshalJSON() ([]byte, error) { return nil, nil }

// MarshalJSON returns s as compact JSON, as it stands in a definition.
func (s Step) MarshalJSON() ([]byte, error) { return nil, nil }

// Hash returns the SHA-256, in hex, over the canonical JSON of d.
func (d *Definition) Hash() string { return "" }

// Canonical returns raw without white space, object keys sorted and strings in
// one spelling; numbers stay as written.
func Canonical(raw json.RawMessage) (json.RawMessage, error) { return raw, nil }
