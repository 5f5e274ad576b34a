package definition_test

import (
	"strconv"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/definition"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
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

// TestDefinitionsOfAgents: the number of an agent's definitions has a bound, also by imports. It edits and
// deletes at the bound, and what it deletes is free again.
func TestDefinitionsOfAgents(t *testing.T) {
	s := open(t, definition.Options{AgentDefinitions: 3, Keep: 3})
	by := func(agent string) revision.SaveOptions {
		return revision.SaveOptions{Expect: revision.Any, By: agent, Within: []string{"do"}}
	}
	named := func(id, value string) string { return strings.Replace(plain(value), `"id":"d"`, `"id":"`+id+`"`, 1) }
	save := func(id, value string, opt revision.SaveOptions) error {
		_, err := s.Save(within(t), decode(t, named(id, value)), opt)
		return err
	}
	refused := func(what, who string, err error) {
		t.Helper()
		if abi.CodeOf(err) != abi.Limit || !strings.Contains(err.Error(), who+" would have") || !strings.Contains(abi.As(err).Hint, "sentinel/delete") {
			t.Errorf("%s: %v", what, err)
		}
	}
	for _, id := range []string{"a0", "a1", "a2"} {
		if err := save(id, "x", by("agent:ci")); err != nil {
			t.Fatal(err)
		}
	}
	refused("a fourth", "agent:ci", save("a3", "x", by("agent:ci")))
	_, err := s.Import(within(t), []revision.Incoming{{Definition: decode(t, named("a4", "x")), Expect: revision.Any}}, by("agent:ci"))
	refused("an import", "agent:ci", err)
	for _, opt := range []revision.SaveOptions{by("agent:ci"), {Expect: revision.Any, By: "anna"}} {
		if err := save("a0", "y"+opt.By, opt); err != nil {
			t.Errorf("an edit at the bound by %s: %v", opt.By, err)
		}
	}
	if err := save("p", "x", revision.SaveOptions{Expect: revision.Any, By: "anna"}); err != nil {
		t.Errorf("a person: %v", err)
	}
	if _, err := s.Delete(within(t), "a1", by("agent:ci")); err != nil {
		t.Fatal(err)
	}
	if err := save("a5", "x", by("agent:ci")); err != nil {
		t.Errorf("after a deletion: %v", err)
	}
	for n := range 12 {
		if err := save("b"+strconv.Itoa(n), "x", by("agent:b"+strconv.Itoa(n))); err != nil {
			if refused("the others", "all agents and models", err); n < 9 {
				t.Errorf("refused from definition %d on", n)
			}
			return
		}
	}
	t.Error("all agents together have no bound")
}

// TestEach: a page of definitions begins behind an id and reads no further than it is wanted, with the
// list in memory and without it.
func TestEach(t *testing.T) {
	s := open(t, definition.Options{Keep: 3})
	for _, id := range []string{"a", "a-b", "b", "c"} {
		for _, value := range []string{"x", "y"} {
			if _, err := s.Save(within(t), decode(t, strings.Replace(plain(value), `"id":"d"`, `"id":"`+id+`"`, 1)), revision.SaveOptions{Expect: revision.Any}); err != nil {
				t.Fatal(err)
			}
		}
	}
	if _, err := s.Delete(within(t), "b", revision.SaveOptions{Expect: revision.Any}); err != nil {
		t.Fatal(err)
	}
	for _, cached := range []bool{false, true} {
		if cached {
			if _, err := s.List(); err != nil {
				t.Fatal(err)
			}
		}
		for after, want := range map[sentinels.ID]string{"": "a a-b", "a": "a-b c", "a-b": "c", "b": "c", "c": ""} {
			var got []string
			if err := s.Each(after, func(r revision.Stored) bool { got = append(got, string(r.ID)); return len(got) < 2 }); err != nil || strings.Join(got, " ") != want {
				t.Errorf("cached %v, behind %q: %s, %v, want %s", cached, after, got, err, want)
			}
		}
	}
}
