package app

import "github.com/sentinel-runtime/sentinel/host/cli/output"

// WriteJSON writes v to standard output: indented for json, on one line for jsonl.
func (a *App) WriteJSON(v any) error {
	if a.Flags.Output == output.FormatJSONL {
		return a.Out.Value(v, "")
	}
	return a.Out.Value(v, "  ")
}

// WriteItems writes a list: whole as json, one item a line as jsonl. done is false for
// the format table, which the caller writes.
func WriteItems[T any](a *App, whole any, items []T) (done bool, err error) {
	switch a.Flags.Output {
	case output.FormatJSON:
		return true, a.WriteJSON(whole)
	case output.FormatJSONL:
		for _, item := range items {
			if err := a.WriteJSON(item); err != nil {
				return true, err
			}
		}
		return true, nil
	}
	return false, nil
}

// WriteLine writes v as one line of JSON, in every format: for output that
// does not end by itself.
func (a *App) WriteLine(v any) error { return a.Out.Value(v, "") }

// Table writes rows in columns; the first row is the header. On a terminal it has no column without
// cells, and each row fits on a line: columns that are less needed are left out, the first of them first, then long
// cells are cut.
func (a *App) Table(rows []output.Row, lessNeeded ...int) error {
	if a.Env.StdoutTerminal {
		rows = output.Fit(output.Filled(output.Narrow(rows, a.Env.Width(), lessNeeded...)), a.Env.Width())
	}
	return output.Table(a.Out, rows)
}

// Pairs writes rows without a header, such as names with values. On a terminal the last column is
// wrapped at words.
func (a *App) Pairs(rows []output.Row) error {
	if a.Env.StdoutTerminal {
		rows = output.WrapLast(rows, a.Env.Width())
	}
	return output.Table(a.Out, rows)
}
