package definition_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TestRevisionsOfAgents: the kept revisions of an agent have a bound, all of its definitions together, by
// whatever verb. Other agents, up to a bound of all, and persons are accepted beside it.
func TestRevisionsOfAgents(t *testing.T) {
	s := open(t, definition.Options{AgentBytes: 40_000, Keep: 3})
	text := strings.Repeat("x", 9000)
	named := func(id, value string) string { return strings.Replace(plain(value), `"id":"d"`, `"id":"`+id+`"`, 1) }
	by := func(agent string) revision.SaveOptions {
		return revision.SaveOptions{Expect: revision.Any, By: agent, Within: []string{"do"}}
	}
	try := func(id string, opt revision.SaveOptions) error {
		_, err := s.Save(within(t), decode(t, named(id, text)), opt)
		return err
	}
	refused := func(what, who string, err error) {
		t.Helper()
		if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), who+" made") || !strings.Contains(err.Error(), "limits.agentBytes") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for n := range 4 {
		if err := try("a"+strconv.Itoa(n), by("agent:ci/me")); err != nil {
			t.Fatal(err)
		}
	}
	refused("a fifth definition", "agent:ci", try("a4", by("agent:ci")))
	_, err := s.Save(within(t), decode(t, named("a0", text+"z")), by("agent:ci"))
	refused("an edit that keeps the revision before", "agent:ci", err)
	_, err = s.Import(within(t), []revision.Incoming{{Definition: decode(t, named("a5", text)), Expect: revision.Any}}, by("agent:ci"))
	refused("an import", "agent:ci", err)
	if err := try("p", revision.SaveOptions{Expect: revision.Any, By: "anna"}); err != nil {
		t.Errorf("a person: %v", err)
	}
	if _, err := s.Save(within(t), decode(t, named("a0", text+"y")), revision.SaveOptions{Expect: revision.Any, By: "anna"}); err != nil {
		t.Errorf("a person who edits a definition of the agent: %v", err)
	}
	if _, err := s.Rollback(within(t), "a0", 1, revision.SaveOptions{Expect: revision.Any, By: "anna"}); err != nil {
		t.Errorf("a person who returns to a revision of the agent: %v", err)
	}
	for n := range 12 {
		if err := try("b"+strconv.Itoa(n), by("agent:b"+strconv.Itoa(n%4))); err != nil {
			refused("the others", "all agents and models", err)
			if n < 8 {
				t.Errorf("the others are refused from definition %d on", n)
			}
			return
		}
	}
	t.Error("all agents together have no bound")
}

// TestRevisionsThatReplace: an agent at its limit can edit further where an old revision of the same size is removed.
func TestRevisionsThatReplace(t *testing.T) {
	s := open(t, definition.Options{AgentBytes: 31_000, Keep: 3})
	for n := range 9 {
		value := strings.Repeat(strconv.Itoa(n), 10_000)
		if _, err := s.Save(within(t), decode(t, plain(value)), revision.SaveOptions{Expect: revision.Any, By: "agent:ci", Within: []string{"do"}}); err != nil {
			t.Fatalf("revision %d: %v", n+1, err)
		}
	}
}
