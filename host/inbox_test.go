package host_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// TestInboxPages: with 1,000 entries of runs and tickets every page is in order, and all
// pages together have each entry once.
func TestInboxPages(t *testing.T) {
	h := open(t, host.Options{Workspace: t.TempDir(), Set: map[string]string{"limits.runs": "200"}})
	const runs, tickets = 40, 960
	var def struct{ SentinelID string }
	must(t, h, "sentinel/create", `{"definition": {"name": "ask", "steps": [{"type": "approve", "prompt": "Deploy?"}]}}`, &def)
	for i := range tickets {
		must(t, h, "ticket/create", map[string]any{"title": fmt.Sprint("Ticket ", i), "id": fmt.Sprintf("T-%d", i)}, nil)
		must(t, h, "ticket/decide", map[string]any{"id": fmt.Sprintf("T-%d", i), "action": "hold"}, nil)
		if i%(tickets/runs) == 0 {
			must(t, h, "sentinel/start", `{"sentinelId": "ask"}`, nil)
		}
	}
	type entry struct {
		ID, Kind string
		Since    time.Time
	}
	all := func(params map[string]any) []entry {
		t.Helper()
		var list []entry
		for after, pages := "", 0; ; pages++ {
			params["after"] = after
			var out struct {
				Entries []entry
				Next    string
			}
			must(t, h, "inbox/list", params, &out)
			list = append(list, out.Entries...)
			if after = out.Next; after == "" || pages > 1000 {
				return list
			}
		}
	}
	for deadline := time.Now().Add(2 * time.Minute); len(all(map[string]any{"kind": []string{"approval"}})) < runs; time.Sleep(50 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the runs do not wait for their approvals")
		}
	}
	for _, limit := range []int{7, 200} {
		list := all(map[string]any{"limit": limit})
		seen := map[string]bool{}
		for i, e := range list {
			if seen[e.ID] {
				t.Errorf("limit %d: %s is there twice", limit, e.ID)
			}
			seen[e.ID] = true
			if i > 0 && e.Since.Before(list[i-1].Since) {
				t.Errorf("limit %d: entry %d is older than the one before", limit, i)
			}
		}
		if len(list) != runs+tickets {
			t.Errorf("limit %d: %d entries, want %d", limit, len(list), runs+tickets)
		}
	}
	for _, e := range all(map[string]any{"kind": []string{"ticket"}, "limit": 200}) {
		if e.Kind != "ticket" || !strings.HasPrefix(e.ID, "T-") {
			t.Errorf("kind ticket has %+v", e)
		}
	}
	runID := all(map[string]any{"kind": []string{"approval"}})[3].ID
	for _, id := range []string{"T-7", runID} {
		if list := all(map[string]any{"id": id}); len(list) != 1 || list[0].ID != id {
			t.Errorf("id %s has %+v", id, list)
		}
	}
	if list := all(map[string]any{"id": "T-none"}); len(list) > 0 {
		t.Errorf("an unknown id has %+v", list)
	}
}

// TestInboxHasPersonsFirst: the question of a person's run is before those of an agent's, also if it is the newest,
// and the pages of both have each question once.
func TestInboxHasPersonsFirst(t *testing.T) {
	s := newStoring(t, host.Options{})
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": map[string]any{"id": "gate", "name": "gate", "steps": []any{map[string]any{"type": "approve", "prompt": "?"}}}})
	type page struct {
		Entries []struct{ ID string }
		Next    string
	}
	list := func(limit int, after string) (out page) {
		t.Helper()
		must(t, s.h, "inbox/list", map[string]any{"limit": limit, "after": after}, &out)
		return out
	}
	var want []string
	for i, by := range []command.By{command.ByAgent, command.ByAgent, command.ByUser, command.ByUser} {
		want = append(want, string(s.start(by, "gate")))
		s.until("nothing is asked", func() bool { return len(list(9, "").Entries) == i+1 })
	}
	want = append(want[2:], want[:2]...)
	var got []string
	for after, more := "", true; more; {
		p := list(1, after)
		for _, e := range p.Entries {
			got = append(got, e.ID)
		}
		after, more = p.Next, p.Next != "" && len(got) < 9
	}
	if strings.Join(got, " ") != strings.Join(want, " ") {
		t.Errorf("the questions are %v, want %v", got, want)
	}

	// Of the agent only the newest with each, with how many more there are, and all of them by its name.
	var each struct {
		page
		More []struct {
			By      string
			Entries int
		}
	}
	must(t, s.h, "inbox/list", map[string]any{"each": 1}, &each)
	if len(each.Entries) != 3 || each.Entries[2].ID != want[3] || len(each.More) != 1 || each.More[0].Entries != 1 || !strings.HasPrefix(each.More[0].By, "agent:") {
		t.Fatalf("the newest of each are %+v", each)
	}
	var of page
	must(t, s.h, "inbox/list", map[string]any{"by": each.More[0].By}, &of)
	if len(of.Entries) != 2 || of.Entries[0].ID != want[2] || of.Entries[1].ID != want[3] {
		t.Errorf("those of %s are %+v", each.More[0].By, of)
	}
}

// TestInboxHasAgentsEventsLast: questions of a person's sentinel that events of an agent led to, in its run or in a
// child of it, and tickets that an agent created, come after what persons caused, however old they are, and each
// limits them too.
func TestInboxHasAgentsEventsLast(t *testing.T) {
	s := newStoring(t, host.Options{})
	ask := `{"type":"approve","prompt":"?"}`
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": json.RawMessage(`{"id":"gate","name":"gate","steps":[` + ask + `]}`)})
	s.must(command.ByUser, "sentinel/create", map[string]any{"definition": json.RawMessage(
		`{"id":"evp","name":"evp","concurrency":"parallel","trigger":{"type":"event","event":"ap:*"},"steps":[{"type":"sentinel","definition":{"name":"kid","steps":[` + ask + `]}}]}`)})
	type entry struct{ ID, Kind, By, Subject string }
	type page struct {
		Entries []entry
		Next    string
		More    []struct {
			By      string
			Entries int
		}
	}
	list := func(params map[string]any) (out page) {
		t.Helper()
		must(t, s.h, "inbox/list", params, &out)
		return out
	}
	waiting := func(n int) {
		t.Helper()
		s.until(fmt.Sprint(n, " entries wait"), func() bool { return len(list(map[string]any{}).Entries) == n })
	}
	for i := range 3 {
		s.must(command.ByAgent, "events/emit", map[string]any{"event": "ap:go"})
		waiting(2*i + 1)
		id := fmt.Sprint("A-", i)
		s.must(command.ByAgent, "ticket/create", map[string]any{"id": id, "title": "of the agent"})
		s.must(command.ByUser, "ticket/decide", map[string]any{"id": id, "action": "hold"})
	}
	s.start(command.ByUser, "gate")
	waiting(7)
	s.must(command.ByUser, "events/emit", map[string]any{"event": "ap:mine"})
	waiting(8)
	s.must(command.ByUser, "ticket/create", map[string]any{"id": "P-1", "title": "of the person"})
	s.must(command.ByUser, "ticket/decide", map[string]any{"id": "P-1", "action": "hold"})
	var got []string
	var all page
	for more := true; more && len(all.Entries) < 20; more = all.Next != "" {
		p := list(map[string]any{"limit": 2, "after": all.Next})
		all.Entries, all.Next = append(all.Entries, p.Entries...), p.Next
	}
	for _, e := range all.Entries {
		got = append(got, strings.TrimSpace(e.Subject+" "+e.By))
	}
	want := "gate, kid, of the person, kid agent:ci, of the agent agent:ci, kid agent:ci, of the agent agent:ci, kid agent:ci, of the agent agent:ci"
	if strings.Join(got, ", ") != want {
		t.Errorf("the entries are %s, want %s", strings.Join(got, ", "), want)
	}
	each := list(map[string]any{"each": 1, "limit": 4})
	if n := len(each.Entries); n != 4 || each.Entries[3].ID != "A-2" || len(each.More) != 1 || each.More[0].By != "agent:ci" || each.More[0].Entries != 5 {
		t.Errorf("the newest of each are %+v", each)
	}
	if of := list(map[string]any{"by": "agent:ci"}); len(of.Entries) != 6 || of.Entries[1].ID != "A-0" {
		t.Errorf("those of the agent are %+v", of)
	}
}
