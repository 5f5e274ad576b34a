package help

import (
	"strings"
	"testing"
)

func TestInFamilies(t *testing.T) {
	for names, want := range map[string]string{
		"code/edit code/read code/shell/kill code/shell/list search_tools tools": "code/{edit,read} code/shell/{kill,list} search_tools tools",
		"a/b": "a/b", "": "",
	} {
		if got := inFamilies(strings.Fields(names)); got != want {
			t.Errorf("%s: %s, want %s", names, got, want)
		}
	}
}
