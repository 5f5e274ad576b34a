package host_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// bounded are the commands that read and whose lists neither have pages nor a field that says what
// is missing, and what bounds them. Commands that change something list what one call did.
var bounded = map[string]string{
	"checkpoint/list":    "the checkpoints of a workspace that are kept, 100 by default",
	"plugin/list":        "the plugins that the operator has put into the folder, at most 256 of others live",
	"sentinel/diff":      "the changes between two definitions, whose size is bounded",
	"sentinel/revisions": "the revisions that are kept, 50 by default",
	"sentinel/step/list": "the steps of one definition",
	"sentinel/validate":  "the problems of one definition, whose number is bounded",
}

// TestListsHaveBounds: a list that grows with use has pages, or a field that says that it is not
// whole. Others are in the table with what bounds them.
func TestListsHaveBounds(t *testing.T) {
	h := open(t, host.Options{})
	seen := map[string]bool{}
	for _, c := range h.Commands().List() {
		if c.Effect != command.Reads {
			continue
		}
		in, err := command.Members(c.Input())
		if err != nil {
			t.Fatal(err)
		}
		out, err := command.Members(c.Output())
		if err != nil {
			t.Fatal(err)
		}
		names := func(list []command.Member) (names []string) {
			for _, m := range list {
				names = append(names, m.Path)
			}
			return names
		}
		given, got := names(in), names(out)
		has := func(list []string, any ...string) bool {
			return slices.ContainsFunc(any, func(name string) bool { return slices.Contains(list, name) })
		}
		pages := has(given, "after", "before", "offset", "cursor") && has(got, "next", "nextSentinel", "total", "cursor")
		says := has(got, "truncated", "cut", "more", "total")
		for _, m := range out {
			list := strings.HasPrefix(m.Type, "array")
			if !list || strings.ContainsAny(m.Path, ".[") || pages || says {
				continue
			}
			key := c.Name
			if seen[key] = true; bounded[key] == "" {
				t.Errorf("%s: the list %q has no pages and no field that says what is missing: give it pages, or add it to the table with what bounds it", c.Name, m.Path)
			}
		}
	}
	for key := range bounded {
		if !seen[key] {
			t.Errorf("%q is in the table, but has pages or is not a list: remove it", key)
		}
	}
}
