package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

// TestHelpOfEveryCommand: each begins with what the command does, has an example, shows values of
// flags that take one, and fits on a terminal, whose width only examples and words may exceed.
func TestHelpOfEveryCommand(t *testing.T) {
	const width = 80
	a := &app.App{Env: app.Env{StdoutTerminal: true, Width: func() int { return width }}}
	root := rootCommand(a)
	var page bytes.Buffer
	a.Out = output.Printer{Writer: &page}
	root.SetOut(&page)
	n := 0
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		n++
		page.Reset()
		if err := c.Help(); err != nil {
			t.Error(err)
		}
		text := page.String()
		if !strings.HasPrefix(strings.ReplaceAll(text, "\n", " "), c.Short+". ") || c.Short == "" {
			t.Errorf("%s --help begins with %.60q", c.CommandPath(), text)
		}
		if c.Example == "" {
			t.Errorf("%s --help has no example", c.CommandPath())
		}
		c.Flags().VisitAll(func(f *pflag.Flag) {
			// Words in backquotes are shown as the value of the flag.
			if value, _ := pflag.UnquoteUsage(f); f.Value.Type() == "bool" && value != "" {
				t.Errorf("%s --help shows --%s with a value %q, which it does not take", c.CommandPath(), f.Name, value)
			}
		})
		for line := range strings.SplitSeq(text, "\n") {
			example := strings.Contains(c.Example, line)
			if !example && output.Width(output.Escape(line)) > width {
				t.Errorf("%s --help: a line is longer than the terminal: %q", c.CommandPath(), line)
			}
		}
		for _, sub := range c.Commands() {
			if sub.IsAvailableCommand() {
				walk(sub)
			}
		}
	}
	walk(root)
	if n < 90 {
		t.Errorf("found only %d commands", n)
	}
}
