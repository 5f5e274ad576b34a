package ticket

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The collections.
const (
	Collection = "tickets"
	Attempts   = "ticket-attempts"   // ID/NUMBER: append-only
	Activities = "ticket-activities" // ID/NUMBER: append-only
	Sequence   = "ticket-sequence"   // the number of the newest ticket, and how many are in each state
)

// maxWords bounds the words of one ticket that a search finds.
const maxWords = 200

// indexed returns an index over tickets.
func indexed(name string, version int, values func(t *Ticket) [][]any) *runtime.DocumentIndex {
	return &runtime.DocumentIndex{Collection: Collection, Name: name, Version: version, Values: func(d sentinels.Document) [][]any {
		t := newest.read(d.Data)
		if t == nil {
			return nil // not written by this package
		}
		return values(t)
	}}
}

// newest has the tickets that indexes have read last: each write asks all indexes about
// the same two, the old and the new one.
var newest memo

type memo struct {
	mu      sync.Mutex
	data    [4][]byte
	tickets [4]*Ticket
	next    int
}

// read returns the ticket in data, nil if there is none. It must not be changed.
func (m *memo) read(data []byte) *Ticket {
	m.mu.Lock()
	defer m.mu.Unlock()
	for i, known := range m.data {
		if known != nil && bytes.Equal(known, data) {
			return m.tickets[i]
		}
	}
	t := new(Ticket)
	if json.Unmarshal(data, t) != nil {
		return nil
	}
	m.data[m.next], m.tickets[m.next] = bytes.Clone(data), t
	m.next = (m.next + 1) % len(m.data)
	return t
}

func newestFirst(at time.Time) runtime.Descending { return runtime.Descending{Value: at} }

// The indexes of tickets.
var (
	// byClaim has what agents may claim now, by queue, kind of assignee and project, in
	// the order in which it is given out. The empty project has all.
	byClaim = indexed("claim", 1, func(t *Ticket) [][]any {
		if !t.claimable() {
			return nil
		}
		entry := func(project string) []any {
			return []any{string(t.State), t.AssigneeType, project, runtime.Descending{Value: t.Priority}, t.CreatedAt}
		}
		entries := [][]any{entry("")}
		if t.Project != "" {
			entries = append(entries, entry(t.Project))
		}
		return entries
	})
	// byTime has when something becomes due: the end of a lease, or of a delay.
	byTime = indexed("time", 1, func(t *Ticket) [][]any {
		if at := t.dueAt(); !at.IsZero() {
			return [][]any{{at}}
		}
		return nil
	})
	byUpdate = indexed("updated", 1, func(t *Ticket) [][]any { return [][]any{{newestFirst(t.UpdatedAt)}} })
	// byWait has the tickets that wait for a person: first those that no agent created, each the oldest first.
	byWait = indexed("wait", 2, func(t *Ticket) [][]any {
		if at := t.waitsSince(); !at.IsZero() {
			return [][]any{{revision.AgentOf(t.CreatedBy) != "", at}}
		}
		return nil
	})
	// byVerification has the tickets that are being verified, or have to be again.
	byVerification = indexed("verification", 1, func(t *Ticket) [][]any {
		if t.VerificationStatus == Running || t.VerificationStatus == ReviewNeeded && t.State == NeedsReview {
			return [][]any{{t.VerificationStatus, t.UpdatedAt}}
		}
		return nil
	})
	// byProject has the tickets of each project, with the empty state for all states.
	byProject = indexed("project", 1, func(t *Ticket) [][]any {
		if t.Project == "" {
			return nil
		}
		return [][]any{{t.Project, "", newestFirst(t.UpdatedAt)}, {t.Project, string(t.State), newestFirst(t.UpdatedAt)}}
	})
	byState  = indexed("state", 1, func(t *Ticket) [][]any { return [][]any{{string(t.State), newestFirst(t.UpdatedAt)}} })
	byParent = indexed("parent", 1, func(t *Ticket) [][]any {
		if t.ParentID == "" {
			return nil
		}
		return [][]any{{t.ParentID, t.CreatedAt}}
	})
	byDependency = indexed("dependency", 1, func(t *Ticket) (entries [][]any) {
		for _, id := range t.DependsOn {
			entries = append(entries, []any{id})
		}
		return entries
	})
	byFile = indexed("file", 1, func(t *Ticket) (entries [][]any) {
		for _, f := range t.Files {
			if len(f.Path) <= 1000 {
				entries = append(entries, []any{f.Path})
			}
		}
		return entries
	})
	byKey = indexed("key", 1, func(t *Ticket) [][]any {
		if t.Key == "" {
			return nil
		}
		return [][]any{{t.Key}}
	})
	byWord = indexed("word", 2, func(t *Ticket) (entries [][]any) {
		for _, w := range wordsOf(t) {
			// Not by the time of the change: each would write all words again.
			entries = append(entries, []any{w, newestFirst(t.CreatedAt)})
		}
		return entries
	})
)

// Indexes returns what a host registers.
func Indexes() []*runtime.DocumentIndex {
	return []*runtime.DocumentIndex{byClaim, byTime, byUpdate, byState, byProject, byWait, byVerification, byParent, byDependency, byFile, byKey, byWord}
}

// split returns the words of a text, in lower case.
func split(text string) []string {
	return strings.FieldsFunc(strings.ToLower(text), func(r rune) bool { return !unicode.IsLetter(r) && !unicode.IsNumber(r) })
}

// wordsOf returns the words by which a search finds a ticket, each once.
func wordsOf(t *Ticket) []string {
	list := split(strings.Join([]string{t.ID, t.Title, strings.Join(t.Labels, " "), t.Description}, " "))
	list = slices.DeleteFunc(list, func(w string) bool { return len(w) > 60 })
	list = list[:min(len(list), 2*maxWords)]
	slices.Sort(list)
	list = slices.Compact(list)
	return list[:min(len(list), maxWords)]
}
