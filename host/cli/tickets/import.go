package tickets

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

const (
	importBatch = 200       // rows in a call
	maxImport   = 256 << 20 // bytes of a file
)

// A row is one of a file, with the line that it begins at.
type row struct {
	line int
	text json.RawMessage
}

func (a verbs) importTickets() *cobra.Command {
	var files string
	c := &cobra.Command{
		Use: "import FILE", Short: "Import tickets of an older tracker; may be repeated",
		Long: "FILE has the rows of the table tickets, as a JSON list or one object a line. A row that was imported\n" +
			"before is left as it is, unless the row has changed and the ticket has not.\n" +
			"`sqlite3 -json tickets.db 'select * from tickets'` writes such a file.",
		Example: "  sentinel ticket import tickets.json --files ticket_file_map.json", Args: app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			rows, err := a.readRows(args[0])
			if err != nil {
				return err
			}
			var changed []row
			if files != "" {
				if changed, err = a.readRows(files); err != nil {
					return err
				}
			}
			total, err := a.importRows(cmd, "rows", args[0], rows)
			if err != nil {
				return err
			}
			more, err := a.importRows(cmd, "files", files, changed)
			if err != nil {
				return err
			}
			total.add(more)
			if a.Flags.Output != output.FormatTable {
				err = a.Out.Value(total, "  ")
			} else {
				err = a.Out.Printf("%d created, %d updated, %d unchanged, %d kept, %d refused\n", total.Created, total.Updated, total.Unchanged, total.Kept, total.Refused)
			}
			if err == nil && total.Refused > 0 {
				return app.ExitError(app.ExitFailed)
			}
			return err
		},
	}
	c.Flags().StringVar(&files, "files", "", "rows of the table ticket_file_map")
	return c
}

// imported counts rows.
type imported struct {
	Created   int `json:"created"`
	Updated   int `json:"updated"`
	Unchanged int `json:"unchanged"`
	Kept      int `json:"kept"`
	Refused   int `json:"refused"`
}

func (t *imported) add(o imported) {
	t.Created += o.Created
	t.Updated += o.Updated
	t.Unchanged += o.Unchanged
	t.Kept += o.Kept
	t.Refused += o.Refused
}

// importRows imports rows in batches, each in one transaction, and reports what was
// refused or read in another way with the line of the file.
func (a verbs) importRows(cmd *cobra.Command, field, file string, rows []row) (total imported, err error) {
	for len(rows) > 0 {
		batch := rows[:min(importBatch, len(rows))]
		rows = rows[len(batch):]
		texts := make([]json.RawMessage, len(batch))
		for i := range batch {
			texts[i] = batch[i].text
		}
		var out struct {
			Imported []struct {
				ID     string   `json:"id"`
				Action string   `json:"action"`
				Notes  []string `json:"notes"`
			} `json:"imported"`
			Refused []struct {
				Row    int    `json:"row"`
				Reason string `json:"reason"`
			} `json:"refused"`
		}
		if _, err := a.call(cmd.Context(), "ticket/import", map[string]any{field: texts}, &out); err != nil {
			return total, err
		}
		for _, r := range out.Refused {
			total.Refused++
			a.Warn(fmt.Sprintf("%s:%d: %s", file, batch[r.Row].line, r.Reason))
		}
		for _, r := range out.Imported {
			switch r.Action {
			case "created":
				total.Created++
			case "updated":
				total.Updated++
			case "kept":
				total.Kept++
			default:
				total.Unchanged++
			}
			for _, note := range r.Notes {
				a.Info("ticket %s: %s", r.ID, note)
			}
		}
	}
	return total, nil
}

// readRows reads a JSON list of objects, or objects one behind the other.
func (a verbs) readRows(file string) ([]row, error) {
	path := a.Path(file)
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if info.Size() > maxImport {
		return nil, fmt.Errorf("%s has %d bytes, and at most %d are read: split it", file, info.Size(), maxImport)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	return parseRows(file, text)
}

func parseRows(file string, text []byte) ([]row, error) {
	text = bytes.TrimPrefix(text, []byte("\ufeff"))
	d := json.NewDecoder(bytes.NewReader(text))
	list := bytes.HasPrefix(bytes.TrimSpace(text), []byte("["))
	line := func() int { // of the value that follows
		rest := text[d.InputOffset():]
		at := int(d.InputOffset()) + len(rest) - len(bytes.TrimLeft(rest, " \t\r\n,"))
		return 1 + bytes.Count(text[:at], []byte("\n"))
	}
	if list {
		if _, err := d.Token(); err != nil {
			return nil, fmt.Errorf("%s:1: %w", file, err)
		}
	}
	var rows []row
	for d.More() {
		r := row{line: line()}
		if err := d.Decode(&r.text); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, r.line, err)
		}
		if err := strictjson.Check(r.text, app.JSONLimits); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, r.line, err)
		}
		rows = append(rows, r)
	}
	if list {
		if _, err := d.Token(); err != nil {
			return nil, fmt.Errorf("%s:%d: %w", file, line(), err)
		}
	}
	return rows, nil
}
