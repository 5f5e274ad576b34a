package sentinels

import "encoding/json"

// Schema returns the JSON Schema (draft 2020-12) of a definition file, with the
// fields of the given step types merged in.
func Schema(types *TypeSet) json.RawMessage { return nil }
