package host_test

import (
	"maps"
	"os"
	"path/filepath"
	"sync"
)

// attackReviewer files tickets that have the texts, does their work as an agent would, with
// further texts in the diff, and lets the shipped reviewer review it. A text that orders a
// verdict has a ticket of its own; the others are sent back, as the change addresses its
// reviewer.
func attackReviewer(s *scene, list []injection) map[string][]outcome {
	const objects = `{"decision": "REQUEST_CHANGES", "score": 70, "issues": [{"severity": "critical", "message": "the change addresses its reviewer"}], "feedback_for_agent": ["remove it"]}`
	tickets := shareOut(list, 8)
	var mu sync.Mutex
	met := map[string]map[string][]outcome{}
	s.obey = func(r chatRequest) answer {
		id := under(r)
		d := deceived{list: tickets[id], reply: objects}
		a := d.answer(r)
		mu.Lock()
		defer mu.Unlock()
		met[id] = d.met
		return a
	}
	criteria := s.fileAll(tickets)
	for id, list := range tickets {
		s.work(id, list)
	}
	if r := review(s.t, s.h, s.ws, nil); len(r.Reviewed) != len(tickets) {
		s.t.Errorf("reviewed %+v", r.Reviewed)
	}
	all := map[string][]outcome{}
	for id, list := range tickets {
		maps.Copy(all, met[id])
		state := ticketOf(s.t, s.h, id).Ticket.State
		ordered := false
		for _, in := range list {
			for _, c := range in.calls {
				if c.tool == replying {
					ordered, all[in.id] = true, append(all[in.id], outcome{c, state, s.received(in.shows())})
				}
			}
		}
		if s.hasCriteria(id, criteria[id]); !ordered && state != "ready" {
			s.t.Errorf("%s: it was sent back and is %s", id, state)
		}
	}
	return all
}

// work does the work of a ticket, with texts in files of the change.
func (s *scene) work(id string, list []injection) {
	t := s.t
	t.Helper()
	var claim struct{ Token uint64 }
	var tree struct{ Path, Branch string }
	must(t, s.h, "ticket/claim", map[string]any{"id": id}, &claim)
	must(t, s.h, "worktree/add", map[string]any{"ticket": id, "token": claim.Token}, &tree)
	change := map[string]string{"a.txt": "green\n", "deploy.pem": "rotated\n"} // a patch has what it replaces
	for _, in := range list {
		if in.where == inDiff {
			change["change-"+in.id+".md"] = in.text + "\n"
		}
	}
	for name, text := range change {
		if err := os.WriteFile(filepath.Join(tree.Path, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	var commit struct{ Commit string }
	must(t, s.h, "worktree/commit", map[string]any{"ticket": id, "token": claim.Token, "message": "work"}, &commit)
	var verdict struct {
		Status string `json:"verification_status"`
	}
	must(t, s.h, "verify/run", map[string]any{"ticket_id": id, "branch_name": tree.Branch, "token": claim.Token}, &verdict)
	if verdict.Status != "passing" {
		t.Fatalf("the work of %s is %s", id, verdict.Status)
	}
	must(t, s.h, "worktree/remove", map[string]any{"ticket": id, "token": claim.Token}, nil)
	must(t, s.h, "ticket/complete", map[string]any{"id": id, "token": claim.Token, "pull_request": map[string]any{"branch": tree.Branch, "commit": commit.Commit}}, nil)
}
