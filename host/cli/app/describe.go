package app

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// DescribeCommand shows a command, its parameters and the shape of its result, as its
// schemas describe them.
func (a *App) DescribeCommand(c client.Command) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(c)
	}
	p := a.PaintOut
	if err := a.Out.Printf("%s  %s\n%s\n\n", p.Strong(output.Escape(c.Name)), p.Dim(output.Escape(c.Effect)), c.Summary); err != nil {
		return err
	}
	params, err := a.MemberRows(c.Input, "--")
	if err != nil {
		return fmt.Errorf("read parameters of %q: %w", c.Name, err)
	}
	if len(params) == 0 {
		params = []output.Row{{"  no parameters"}}
	}
	if err := a.Pairs(params); err != nil {
		return err
	}
	if len(c.Output) == 0 { // a command of an MCP server may declare none
		return a.Out.Printf("\nresult: the command declares no schema\n")
	}
	rows, err := a.MemberRows(c.Output, "")
	if err != nil {
		return fmt.Errorf("read result of %q: %w", c.Name, err)
	}
	if err := a.Out.Printf("\nresult:\n"); err != nil {
		return err
	}
	if len(rows) == 0 {
		rows = []output.Row{{"  any JSON value"}}
	}
	return a.Pairs(rows)
}

// MemberRows lists the members of a schema. Those at the top have the prefix; with one,
// they are parameters or fields, of which the required ones are marked, and otherwise
// results, of which the optional ones are.
func (a *App) MemberRows(schema json.RawMessage, prefix string) ([]output.Row, error) {
	members, err := command.Members(schema)
	if err != nil {
		return nil, err
	}
	required := false
	for _, m := range members {
		required = required || m.Required
	}
	var rows []output.Row
	for _, m := range members {
		name, kind := m.Path, m.Type
		if !strings.ContainsAny(name, ".[") {
			name = strings.TrimSpace(prefix) + name
		}
		if m.Required && prefix != "" {
			kind += ", required"
		}
		if !m.Required && prefix == "" && required {
			kind += ", optional"
		}
		rows = append(rows, output.Row{"  " + output.Escape(name), a.PaintOut.Dim(output.Escape(kind)), output.Escape(m.Text)})
	}
	return rows, nil
}
