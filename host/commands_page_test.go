package host_test

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

var update = flag.Bool("update", false, "rewrite COMMANDS.md")

const pageHead = `# Commands

What steps of type ` + "`command`" + `, models, ` + "`sentinel exec`" + ` and the API can call, with parameters and results. Generated from the commands' own schemas: ` + "`make commands`" + `
writes this page and a test compares it. ` + "`sentinel exec NAME --help`" + ` shows the same for the commands of a running host, those of MCP servers included.

A path such as ` + "`matches[].line`" + ` is a member of each element of a list, ` + "`.*`" + ` is each value of a map. A list of type "array or null" may be null when it
is empty. Members of a result are always there unless they are optional. An error of a command is the error object of [sdk/ABI.md](../sdk/ABI.md), A5.
The syntax of globs is in [FORMAT.md](../sentinels/FORMAT.md), F9.
`

// TestCommandsPage compares COMMANDS.md with the schemas of the commands.
func TestCommandsPage(t *testing.T) {
	h := open(t, host.Options{})
	var b strings.Builder
	b.WriteString(pageHead)
	for _, c := range h.Commands().List() {
		if err := command.Check(c); err != nil {
			t.Errorf("command %s: %v", c.Name, err)
		}
		writeCommand(t, &b, c)
	}
	if *update {
		if err := os.WriteFile("COMMANDS.md", []byte(b.String()), 0o644); err != nil { //nolint:gosec // it is committed
			t.Fatal(err)
		}
		return
	}
	page, err := os.ReadFile("COMMANDS.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(page) != b.String() {
		t.Error("COMMANDS.md differs from the schemas of the commands: run make commands")
	}
}

func writeCommand(t *testing.T, b *strings.Builder, c command.Command) {
	t.Helper()
	effect := string(c.Effect)
	fmt.Fprintf(b, "\n## %s\n%s. %s\n", c.Name, strings.ToUpper(effect[:1])+effect[1:], cell(c.Summary))
	in, err := command.Members(c.Input())
	if err != nil {
		t.Errorf("%s: parameters: %v", c.Name, err)
	}
	out, err := command.Members(c.Output())
	if err != nil {
		t.Errorf("%s: result: %v", c.Name, err)
	}
	if len(out) == 0 {
		t.Errorf("%s declares no members of its result", c.Name)
	}
	if len(in) > 0 {
		b.WriteString("\n| parameter | type | |\n|---|---|---|\n")
	}
	for _, m := range in {
		writeMember(b, m, "required", m.Required)
	}
	b.WriteString("\n| result | type | |\n|---|---|---|\n")
	for _, m := range out {
		writeMember(b, m, "optional", !m.Required)
	}
}

// writeMember writes one row; with note, the word stands behind the type.
func writeMember(b *strings.Builder, m command.Member, word string, note bool) {
	kind := strings.ReplaceAll(m.Type, "|", " or ")
	if note {
		kind += ", " + word
	}
	fmt.Fprintf(b, "| `%s` | %s | %s |\n", m.Path, kind, cell(m.Text))
}

// cell is text as one cell of a table.
func cell(text string) string {
	return strings.NewReplacer("|", `\|`, "\n", " ", "<", "&lt;").Replace(text)
}
