package cli

// writeJSON writes v to standard output: indented for people who asked for
// json, on one line for jsonl.
func (a *app) writeJSON(v any) error {
	if a.flags.output == asJSONL {
		return a.out.value(v, "")
	}
	return a.out.value(v, "  ")
}

// writeItems writes a list in the form that was asked for: whole as json, an item
// a line as jsonl. done is false where people want a table, which is the
// caller's to draw.
func writeItems[T any](a *app, whole any, items []T) (done bool, err error) {
	switch a.flags.output {
	case asJSON:
		return true, a.writeJSON(whole)
	case asJSONL:
		for _, item := range items {
			if err := a.writeJSON(item); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}

// writeLine writes v as one line of JSON, whatever the form: for output that does
// not end by itself.
func (a *app) writeLine(v any) error { return a.out.value(v, "") }

// table writes rows in columns; the first row is the head.
func (a *app) table(rows []row) error { return table(a.out, rows) }
