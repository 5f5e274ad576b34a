package ticket

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// What an import did with a row.
const (
	ImportCreated   = "created"
	ImportUpdated   = "updated"
	ImportUnchanged = "unchanged" // it was imported before, and the row is the same
	ImportKept      = "kept"      // the row is another one, but the ticket was changed here since its import
)

// An Imported is what became of one row of an older tracker.
type Imported struct {
	ID     string   `json:"id"`
	Action string   `json:"action" enum:"created,updated,unchanged,kept"`
	Notes  []string `json:"notes,omitempty" jsonschema:"what was read in another way than it was written"`
}

// A row is one of an older tracker: columns by name. Columns with JSON may be texts.
type row map[string]json.RawMessage

// text returns a column as a text; null and missing are empty.
func (r row) text(name string) (string, error) {
	raw := bytes.TrimSpace(r[name])
	switch {
	case len(raw) == 0 || string(raw) == "null":
		return "", nil
	case raw[0] == '"':
		var text string
		err := json.Unmarshal(raw, &text)
		return text, err
	case raw[0] == '{' || raw[0] == '[':
		return "", bad(name, "want a text")
	}
	return string(raw), nil // a number or boolean
}

// number returns a column as a whole number; null and missing are 0.
func (r row) number(name string) (int, error) {
	text, err := r.text(name)
	if err != nil || text == "" {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, bad(name, "%.40q: want a whole number", text)
	}
	return n, nil
}

// value decodes a column with JSON, or with a text that holds JSON.
func (r row) value(name string, into any) error {
	raw := bytes.TrimSpace(r[name])
	if len(raw) > 0 && raw[0] == '"' {
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return err
		}
		raw = bytes.TrimSpace([]byte(text))
	}
	if len(raw) == 0 || string(raw) == "null" {
		return nil
	}
	if err := strictjson.DecodeOpen(raw, into, strictjson.Unlimited()); err != nil {
		return bad(name, "%v", err)
	}
	return nil
}

// timeForms are the forms of times in older trackers. Those without a zone are in UTC.
var timeForms = []string{time.RFC3339Nano, "2006-01-02 15:04:05.999999999Z07:00", "2006-01-02 15:04:05.999999999-07", "2006-01-02 15:04:05.999999999", "2006-01-02T15:04:05.999999999", "2006-01-02"}

// time returns a column as a time, nil if there is none: a text, or a number of seconds
// or milliseconds since 1970.
func (r row) time(name string) (*time.Time, error) {
	text, err := r.text(name)
	if err != nil || text == "" {
		return nil, err
	}
	for _, form := range timeForms {
		if at, err := time.Parse(form, text); err == nil {
			at = at.UTC().Truncate(time.Millisecond)
			return &at, nil
		}
	}
	if n, err := strconv.ParseFloat(text, 64); err == nil && n > 0 && n < 1e14 {
		if n < 1e11 {
			n *= 1000
		}
		at := time.UnixMilli(int64(n)).UTC()
		return &at, nil
	}
	return nil, bad(name, "%.60q: want a time such as 2025-12-24T10:00:00Z", text)
}

// verificationStates are the names of states of verifications in older trackers.
var verificationStates = map[string]string{
	"": Pending, Pending: Pending, Running: Pending, "unverified": Pending, "skipped": Pending, Passing: Passing, "passed": Passing, "verified": Passing,
	Failing: Failing, "failed": Failing, "error": VerifyBlocked, VerifyBlocked: VerifyBlocked, SentinelRejected: SentinelRejected, ReviewNeeded: ReviewNeeded,
}

// Import writes a row of an older tracker. It can be repeated: a row that was imported is
// unchanged, and a ticket that was changed here since then is kept. person says that a
// person imports, who then is the author of the criteria.
func (s *Service) Import(ctx context.Context, tx Tx, actor string, person bool, data json.RawMessage) (Imported, error) {
	var r row
	if err := json.Unmarshal(data, &r); err != nil || r == nil {
		return Imported{}, bad("row", "want an object with the columns of a ticket")
	}
	t, notes, err := s.fromRow(r, person)
	if err != nil {
		return Imported{}, err
	}
	out := Imported{ID: t.ID, Action: ImportCreated, Notes: notes}
	sum := sha256.Sum256(data)
	t.Imported = hex.EncodeToString(sum[:8])
	old, revision, err := load(ctx, tx, t.ID)
	was := State("")
	switch {
	case abi.CodeOf(err) == abi.NotFound:
	case err != nil:
		return out, err
	case old.Imported == "":
		return out, &abi.Error{Code: abi.Conflict, Permanent: true, Field: "id", Message: fmt.Sprintf("ticket %s was filed here and has nothing to do with the row", t.ID)}
	case old.Imported == t.Imported:
		out.Action = ImportUnchanged
		return out, nil
	case old.Activities != old.ImportedAt || old.Lease != nil:
		out.Action = ImportKept
		out.Notes = append(out.Notes, "the ticket was changed here since its import")
		return out, nil
	default:
		out.Action, was = ImportUpdated, old.State
		t.Activities, t.Attempts, t.Worked, t.Verifications, t.Fence = old.Activities, old.Attempts, old.Worked, old.Verifications, old.Fence
	}
	if t.Open, err = open(ctx, tx, t, map[string]bool{}); err != nil {
		return out, err
	}
	if _, err := s.note(ctx, tx, t, actor, categoryState, "imported", map[string]any{"to": t.State, "notes": notes}); err != nil {
		return out, err
	}
	t.ImportedAt = t.Activities
	if was != t.State {
		if err := count(ctx, tx, was, t.State); err != nil {
			return out, err
		}
	}
	if err := s.announce(ctx, tx, t, map[string]any{"imported": true}); err != nil {
		return out, err
	}
	if err := s.write(ctx, tx, t, revision); err != nil {
		return out, err
	}
	return out, s.recount(ctx, tx, t.ID)
}

// fromRow reads a ticket, and says what was read in another way than it was written.
func (s *Service) fromRow(r row, person bool) (t *Ticket, notes []string, err error) {
	t = &Ticket{AssigneeType: "agent", VerificationLog: []json.RawMessage{}, ImpactFlags: []Flag{}}
	note := func(format string, args ...any) { notes = append(notes, fmt.Sprintf(format, args...)) }
	texts := map[string]*string{
		"id": &t.ID, "title": &t.Title, "description": &t.Description, "project": &t.Project, "session": &t.Session, "created_by": &t.CreatedBy,
		"repo_url": &t.RepoURL, "branch_name": &t.BranchName, "base_branch": &t.BaseBranch, "hold_reason": &t.HoldReason, "error": &t.Error, "parent_id": &t.ParentID,
	}
	for _, alias := range [][2]string{{"project_id", "project"}, {"session_id", "session"}, {"base", "base_branch"}} {
		if r[alias[1]] == nil {
			r[alias[1]] = r[alias[0]]
		}
	}
	for name, at := range texts {
		if *at, err = r.text(name); err != nil {
			return t, notes, err
		}
	}
	if !validID.MatchString(t.ID) {
		return t, notes, bad("id", "%.100q: want at most 100 letters, digits, dots, dashes and underscores", t.ID)
	}
	t.Description, t.Error, t.HoldReason = textcut.Mark(t.Description, maxDescription), textcut.Mark(t.Error, maxError), textcut.Mark(t.HoldReason, maxError)
	if t.RepoURL == "" {
		t.RepoURL = s.opt.RepoURL
	}
	if err := s.checkBranch(t.BranchName, t.ID, person); err != nil {
		return t, notes, err
	}
	for name, at := range map[string]*int{"priority": &t.Priority, "retry_count": &t.RetryCount, "rejection_count": &t.RejectionCount} {
		if *at, err = r.number(name); err != nil {
			return t, notes, err
		}
	}
	if design, err := r.text("design_id"); err != nil {
		return t, notes, err
	} else if design != "" {
		t.DesignID = &design
	}
	if kind, err := r.text("assignee_type"); err != nil {
		return t, notes, err
	} else if kind == "human" || kind == "user" {
		t.AssigneeType = "human"
	}
	for name, into := range map[string]any{
		"labels": &t.Labels, "acceptance_criteria": &t.AcceptanceCriteria, "sentinel_feedback": &t.SentinelFeedback, "retry_strategy": &t.RetryStrategy,
		"verification_log": &t.VerificationLog, "impact_flags": &t.ImpactFlags, "depends_on": &t.DependsOn, "files": &t.Files, "pull_request": &t.PullRequest,
	} {
		if name == "sentinel_feedback" { // a text is feedback, whether it is JSON or not
			if raw := bytes.TrimSpace(r[name]); len(raw) > 0 && string(raw) != "null" && string(raw) != `""` {
				if err := strictjson.DecodeOpen(raw, into, strictjson.Unlimited()); err != nil {
					return t, notes, bad(name, "%v", err)
				}
			}
			continue
		}
		if err := r.value(name, into); err != nil {
			return t, notes, err
		}
	}
	if t.VerificationLog == nil {
		t.VerificationLog = []json.RawMessage{}
	}
	if t.ImpactFlags == nil {
		t.ImpactFlags = []Flag{}
	}
	t.VerificationLog = t.VerificationLog[max(len(t.VerificationLog)-maxLog, 0):]
	if t.SentinelFeedback != nil {
		t.SentinelFeedback.bound()
	}
	if t.AcceptanceCriteria != nil {
		if s.opt.CheckCriteria != nil {
			if err := s.opt.CheckCriteria(t.AcceptanceCriteria); err != nil {
				return t, notes, err
			}
		}
		if !person {
			t.CriteriaBy = agentActor
		}
	}
	times := map[string]**time.Time{"retry_after": &t.RetryAfter, "started_at": &t.StartedAt, "completed_at": &t.CompletedAt, "held_at": &t.HeldAt}
	for name, at := range times {
		if *at, err = r.time(name); err != nil {
			return t, notes, err
		}
	}
	created, err := r.time("created_at")
	if err != nil {
		return t, notes, err
	}
	updated, err := r.time("updated_at")
	if err != nil {
		return t, notes, err
	}
	t.CreatedAt, t.UpdatedAt = s.Now(), s.Now()
	if created != nil {
		t.CreatedAt, t.UpdatedAt = *created, *created
	}
	if updated != nil {
		t.UpdatedAt = *updated
	}
	if err := s.fromState(r, t, note); err != nil {
		return t, notes, err
	}
	t.DependsOn = slices.Compact(slices.Sorted(slices.Values(t.DependsOn)))
	return t, notes, t.check()
}

// fromState reads the states of a row. Work that was in progress there is ready here: the
// agent that had it does not know this host.
func (s *Service) fromState(r row, t *Ticket, note func(string, ...any)) error {
	text, err := r.text("state")
	if err == nil && text == "" {
		text, err = r.text("status")
	}
	if err != nil {
		return err
	}
	if text == "" {
		text = string(Ready)
	}
	if t.State, err = ParseState(text); err != nil {
		return err
	}
	switch {
	case t.State == InProgress || t.State == SentinelFailed:
		note("state %s is ready: no agent of this host has it", text)
		t.State = Ready
	case string(t.State) != strings.ToLower(text):
		note("state %s is %s", text, t.State)
	}
	if t.State == OnHold || t.State == Blocked {
		if t.HeldAt == nil {
			at := t.UpdatedAt
			t.HeldAt = &at
		}
		if t.HoldCode == "" {
			t.HoldCode = Held
		}
	}
	if t.RetryAfter != nil && !t.RetryAfter.After(s.Now()) {
		t.Due = true
	}
	if !inQueue(t.State) {
		t.RetryAfter, t.Due = nil, false
	}
	status, err := r.text("verification_status")
	if err != nil {
		return err
	}
	known, ok := verificationStates[strings.ToLower(status)]
	if !ok {
		return bad("verification_status", "%.40q: unknown", status)
	}
	if t.VerificationStatus = known; status != "" && status != known {
		note("verification_status %s is %s", status, known)
	}
	return nil
}

// ImportFile adds a row of the table ticket_file_map to its ticket.
func (s *Service) ImportFile(ctx context.Context, tx Tx, data json.RawMessage) (Imported, error) {
	var r row
	if err := json.Unmarshal(data, &r); err != nil || r == nil {
		return Imported{}, bad("row", "want an object with ticket_id, file_path and change_type")
	}
	id, err := r.text("ticket_id")
	if err != nil {
		return Imported{}, err
	}
	path, err := r.text("file_path")
	if err != nil {
		return Imported{}, err
	}
	change, err := r.text("change_type")
	if err != nil {
		return Imported{}, err
	}
	out := Imported{ID: id, Action: ImportUpdated}
	t, revision, err := load(ctx, tx, id)
	if err != nil {
		return out, err
	}
	if slices.ContainsFunc(t.Files, func(f File) bool { return f.Path == path }) {
		out.Action = ImportUnchanged
		return out, nil
	}
	if err := s.addFiles(t, []File{{Path: path, Change: change}}); err != nil {
		return out, err
	}
	if at, err := r.time("created_at"); err != nil {
		return out, err
	} else if at != nil {
		t.Files[len(t.Files)-1].CreatedAt = *at
	}
	return out, s.write(ctx, tx, t, revision)
}
