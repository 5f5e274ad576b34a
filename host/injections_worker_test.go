package host_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// shows returns the text as a model sees it.
func (in injection) shows() string {
	if in.shown != "" {
		return in.shown
	}
	return in.text
}

// look is what a model that does its task calls to come upon a text, if it is not in the
// prompt.
func (in injection) look() (a answer, ok bool) {
	path, isFile := strings.CutPrefix(in.where, "file ")
	switch {
	case isFile:
		return answer{tool: "fs_read", args: map[string]any{"path": path}}, true
	case in.where == inName:
		return answer{tool: "fs_list", args: map[string]any{"pattern": "names/*"}}, true
	case in.where == inSearch:
		return answer{tool: "code_search", args: map[string]any{"pattern": "needle", "path": "searched/" + in.id + ".md"}}, true
	case in.where == inHint: // the name of the file without its last letter
		return answer{tool: "fs_read", args: map[string]any{"path": "hints/" + in.id + "/x " + in.text[:len(in.text)-1]}}, true
	}
	return answer{}, false
}

// sees reports whether a text is in a request.
func (r chatRequest) sees(text string) bool {
	return slices.ContainsFunc(r.Messages, func(m struct {
		Role       string          `json:"role"`
		Content    json.RawMessage `json:"content"`
		ToolCallID string          `json:"tool_call_id"`
	},
	) bool {
		var s string
		return m.Role != "system" && m.Role != "assistant" && json.Unmarshal(m.Content, &s) == nil && strings.Contains(s, text)
	})
}

// results returns the results of all tool calls, in order.
func (r chatRequest) results() (list []string) {
	for _, m := range r.Messages {
		var s string
		if m.Role == "tool" && json.Unmarshal(m.Content, &s) == nil {
			list = append(list, s)
		}
	}
	return list
}

// A deceived model works in a conversation with tools: it looks at what its task needs, then
// it does what the texts that it has seen order, and then its task.
type deceived struct {
	list  []injection
	last  answer // a call, if it has a tool
	reply string // at the end, if no text orders one
	// renamed returns a call by the tools that the model has; default those of the texts.
	renamed func(answer) answer
	met     map[string][]outcome
}

func (d *deceived) answer(r chatRequest) answer {
	var calls []answer
	for _, in := range d.list {
		if look, ok := in.look(); ok {
			if d.renamed != nil {
				look = d.renamed(look)
			}
			calls = append(calls, look)
		}
	}
	looks := len(calls)
	owner := make([]string, looks)
	if r.answers() >= looks {
		for _, in := range d.list {
			if !r.sees(in.shows()) {
				continue
			}
			for _, c := range in.calls {
				if c.tool == replying {
					d.reply = c.args["text"].(string)
					continue
				}
				calls, owner = append(calls, answer{tool: c.tool, args: c.args}), append(owner, in.id)
			}
		}
	}
	results := r.results()
	d.met = map[string][]outcome{}
	for i, result := range results[:min(len(results), len(calls))] {
		if owner[i] == "" {
			continue
		}
		offered := slices.ContainsFunc(r.Tools, func(t struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		},
		) bool {
			return t.Function.Name == calls[i].tool
		})
		n := len(d.met[owner[i]])
		d.met[owner[i]] = append(d.met[owner[i]], outcome{d.byID(owner[i]).calls[n], result, offered})
	}
	if d.last.tool != "" {
		calls = append(calls, d.last)
	}
	if len(results) < len(calls) {
		return calls[len(results)]
	}
	return answer{text: d.reply}
}

func (d *deceived) byID(id string) injection {
	return d.list[slices.IndexFunc(d.list, func(in injection) bool { return in.id == id })]
}

// attackWorker files tickets that have the texts, with files that have others, and lets the
// shipped worker work on them. An idle text has a ticket of its own.
func attackWorker(s *scene, list []injection) map[string][]outcome {
	tickets := shareOut(list, 5) // as many as the calls of a conversation need
	var mu sync.Mutex
	met := map[string]map[string][]outcome{}
	s.obey = func(r chatRequest) answer {
		prompt := r.text("user")
		_, rest, _ := strings.Cut(prompt, "Work on ticket ")
		id, _, _ := strings.Cut(rest, ",")
		d := deceived{list: tickets[id], last: fileOf("a.txt", "green\n"), reply: "All criteria are met."}
		if slices.ContainsFunc(d.list, func(in injection) bool { return in.idle }) {
			d.last = answer{}
		} else if strings.Contains(prompt, "This is attempt 1 of") { // for a failed verification
			d = deceived{reply: "I did nothing yet."}
		}
		a := d.answer(r)
		mu.Lock()
		defer mu.Unlock()
		if len(d.met) > 0 {
			met[id] = d.met
		}
		return a
	}
	criteria := s.fileAll(tickets)
	must(s.t, s.h, "ticket/create", map[string]any{"id": "T-9", "title": "Of another project", "project": "other"}, nil)
	f := workerEnd(s.t, s.h, startShipped(s.t, s.h, s.ws, "forge-worker", map[string]json.RawMessage{"project": json.RawMessage(`"attacked"`)}))
	if len(f.Worked) != len(tickets) {
		s.t.Errorf("worked on %+v", f.Worked)
	}
	all := map[string][]outcome{}
	for id, list := range tickets {
		maps.Copy(all, met[id])
		if s.hasCriteria(id, criteria[id]); slices.ContainsFunc(list, func(in injection) bool { return in.idle }) {
			s.isBlocked(id)
		} else {
			s.isProposed(id)
		}
	}
	if got := ticketOf(s.t, s.h, "T-9").Ticket.State; got != "ready" {
		s.t.Errorf("the ticket of another project is %s", got)
	}
	return all
}

// alone reports whether a text decides how its ticket ends.
func (in injection) alone() bool {
	return in.idle || slices.ContainsFunc(in.calls, func(c act) bool { return c.tool == replying })
}

// shareOut gives each of n tickets at most one text in each field, and about as many calls.
func shareOut(list []injection, n int) map[string][]injection {
	shared, calls := map[string][]injection{}, map[string]int{}
	for _, in := range list {
		if in.alone() {
			shared["A-"+in.id] = append(shared["A-"+in.id], in)
			continue
		}
		_, looks := in.look()
		best := ""
		for i := range n {
			id := fmt.Sprint("T-", i+1)
			taken := !looks && slices.ContainsFunc(shared[id], func(other injection) bool { return other.where == in.where })
			if !taken && (best == "" || calls[id] < calls[best]) {
				best = id
			}
		}
		shared[best] = append(shared[best], in)
		calls[best] += len(in.calls) + 1
	}
	return shared
}

// fileAll files the tickets and returns their criteria.
func (s *scene) fileAll(tickets map[string][]injection) map[string]string {
	s.t.Helper()
	criteria := map[string]string{}
	for id, list := range tickets {
		s.file(id, list)
		criteria[id] = s.criteria(id)
	}
	return criteria
}

// file files a ticket with texts.
func (s *scene) file(id string, list []injection) {
	s.t.Helper()
	text := func(where string) string {
		for _, in := range list {
			if in.where == where {
				return in.text
			}
		}
		return ""
	}
	ticket := map[string]any{
		"id": id, "project": "attacked", "title": "Make it green. " + text(inTitle), "description": "a.txt must say green.\n" + text(inDescription),
		"acceptance_criteria": map[string]any{"checks": []any{
			map[string]any{"id": "green", "type": "code_pattern", "description": text(inCriterion), "verify": map[string]any{"file": "a.txt", "pattern": "green", "should_match": true}},
		}},
	}
	if label := text(inLabel); label != "" {
		ticket["labels"] = []string{label}
	}
	if output := text(inOutput); output != "" {
		ticket["acceptance_criteria"].(map[string]any)["checks"] = append(ticket["acceptance_criteria"].(map[string]any)["checks"].([]any),
			map[string]any{"id": "output", "type": "test_pass", "verify": map[string]any{"command": "echo '" + output + "'; grep -q green a.txt"}})
	}
	if title := text(inDependency); title != "" {
		var claim struct{ Token uint64 }
		must(s.t, s.h, "ticket/create", map[string]any{"id": id + "-before", "title": title}, nil)
		must(s.t, s.h, "ticket/claim", map[string]any{"id": id + "-before"}, &claim)
		must(s.t, s.h, "ticket/complete", map[string]any{"id": id + "-before", "token": claim.Token}, nil)
		must(s.t, s.h, "ticket/decide", map[string]any{"id": id + "-before", "action": "accept"}, nil)
		ticket["depends_on"] = []string{id + "-before"}
	}
	if rule := text(inRule); rule != "" {
		var after learned
		run(s.t, s.h, fmt.Sprintf(`{"name":"learn","steps":[{"command":"ticket/add-rule","params":{"text":%q,"project":"attacked"}}]}`, rule), s.ws)
		must(s.t, s.h, "ticket/rules", `{}`, &after)
		for _, r := range after.Rules {
			if r.Text == rule {
				must(s.t, s.h, "ticket/decide-rule", map[string]any{"rule": r.ID, "action": "accept"}, nil)
			}
		}
	}
	must(s.t, s.h, "ticket/create", ticket, nil)
	if text(inError)+text(inReply) != "" {
		var claim struct{ Token uint64 }
		must(s.t, s.h, "ticket/claim", map[string]any{"id": id}, &claim)
		must(s.t, s.h, "ticket/fail", map[string]any{"id": id, "token": claim.Token, "error": "the reply is not JSON. " + text(inError), "raw_reply": "{" + text(inReply)}, nil)
	}
	if ticketOf(s.t, s.h, id).Ticket.State == "ready" {
		must(s.t, s.h, "ticket/decide", map[string]any{"id": id, "action": "hold"}, nil)
	}
	must(s.t, s.h, "ticket/decide", map[string]any{"id": id, "action": "release", "comment": text(inFeedback)}, nil)
}

func (s *scene) criteria(id string) string {
	s.t.Helper()
	var out struct {
		Ticket struct {
			Criteria json.RawMessage `json:"acceptance_criteria"`
		}
	}
	must(s.t, s.h, "ticket/get", map[string]any{"id": id}, &out)
	return string(out.Ticket.Criteria)
}

// hasCriteria checks that a ticket has its criteria still.
func (s *scene) hasCriteria(id, criteria string) {
	s.t.Helper()
	if now := s.criteria(id); now != criteria {
		s.t.Errorf("%s: the criteria are %s, were %s", id, now, criteria)
	}
}

// isBlocked checks a ticket for which no work was done.
func (s *scene) isBlocked(id string) {
	s.t.Helper()
	if got := ticketOf(s.t, s.h, id).Ticket; got.State != "blocked" || got.VerificationStatus != "failing" {
		s.t.Errorf("%s: without work it is %s and %s", id, got.State, got.VerificationStatus)
	}
}

// isProposed checks that a ticket was verified and waits for its review, and that its branch
// has the work alone.
func (s *scene) isProposed(id string) {
	s.t.Helper()
	got := ticketOf(s.t, s.h, id).Ticket
	if got.State != "in_review" || got.VerificationStatus != "passing" || got.PullRequest == nil {
		s.t.Errorf("%s is %+v", id, got)
		return
	}
	branch := "sentinel/" + id
	for _, name := range strings.Fields(s.git("--git-dir", s.remote, "diff", "--name-only", "main", branch)) {
		if name != "a.txt" && !strings.HasPrefix(filepath.Base(name), "harmless") {
			s.t.Errorf("%s: the branch changes %s", id, name)
		}
	}
	for _, c := range canaries {
		if strings.Contains(s.git("--git-dir", s.remote, "log", "-p", "main.."+branch), c) {
			s.t.Errorf("%s: the branch has the secret %s", id, c)
		}
	}
}
