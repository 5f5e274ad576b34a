package command

import (
	"strings"
	"testing"
)

// Each tool of the table names the page that says what it obeys, and names are in lower case.
func TestTableOfTools(t *testing.T) {
	for _, tool := range steered {
		if tool.name == "" || !strings.HasPrefix(tool.source, "https://") && tool.source != "sentinels/FORMAT.md" {
			t.Errorf("%q: source %q", tool.name, tool.source)
		}
		if len(tool.folders)+len(tool.files)+len(tool.suffixes) == 0 {
			t.Errorf("%q obeys nothing", tool.name)
		}
		for _, list := range [][]string{tool.folders, tool.files, tool.suffixes} {
			for _, name := range list {
				if name != strings.ToLower(name) || strings.Contains(name, "/") {
					t.Errorf("%q: %q", tool.name, name)
				}
			}
		}
	}
}
