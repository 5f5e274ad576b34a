package cli

// The output formats.
const (
	asTable = "table"
	asJSON  = "json"
	asJSONL = "jsonl"
)
