package cli

import (
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/client"
)

var (
	Clip      = clip[string]
	Duration  = durationText
	Grouped   = grouped
	Quoted    = quoted
	Choose    = choose
	ValueOf   = valueOf
	ReadEvent = readEvent
	FieldLess = compareFields
	Recovered = recovered
)

// A Row is a line of a table.
type Row = row

// Table writes rows as verbs do.
func Table(to io.Writer, rows []Row) error { return table(printer{to}, rows) }

// Params makes a command's parameters of a command line.
func Params(schema []byte, args ...string) ([]byte, error) {
	return (&app{}).params(client.Command{Name: "c", Input: schema}, args)
}

// Verbs returns the path of every verb that can be run, without the program's name.
func Verbs() []string {
	var list []string
	var walk func(c *cobra.Command, path string)
	walk = func(c *cobra.Command, path string) {
		for _, sub := range c.Commands() {
			name := strings.TrimSpace(path + " " + sub.Name())
			if sub.Runnable() {
				list = append(list, name)
			}
			walk(sub, name)
		}
	}
	root := (&app{}).rootCommand()
	root.InitDefaultHelpCmd()
	walk(root, "")
	return list
}
