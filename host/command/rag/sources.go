package rag

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// Number of entries that are read for each source.
const (
	maxCommits  = 10
	maxChanges  = 100
	maxMessages = 50
	maxFailures = 20
	maxActivity = 50
)

// Reasons why a source is left out.
var (
	errEmpty         = errors.New("empty")
	errNotConfigured = errors.New("not available in this host")
)

// A contextBuild is the state of building one context.
type contextBuild struct {
	*Builder
	req       Request
	workspace *workspace
	paths     []glob.Pattern
	status    *GitStatus // nil until it is read
	statusErr error

	participants []Participant
}

// source builds one source in at most n bytes.
func (g *contextBuild) source(ctx context.Context, name string, n int) (text string, truncated bool, err error) {
	kind, argument, _ := strings.Cut(name, ":")
	switch kind {
	case "tree":
		return g.tree(ctx, n)
	case "git":
		return g.git(ctx, n)
	case "files":
		return g.files(ctx, n)
	case "file":
		return g.named(ctx, argument, n)
	case "chat":
		return g.chat(ctx, argument, n)
	case "participants":
		return g.speakers(ctx, n)
	case "strategy":
		return g.strategy(ctx, n)
	case "failures":
		return g.failures(ctx, n)
	default:
		return g.activity(ctx, n)
	}
}

// gitStatus reads the status once for all sources.
func (g *contextBuild) gitStatus(ctx context.Context) (GitStatus, error) {
	if g.opt.Git == nil {
		return GitStatus{}, errNotConfigured
	}
	if g.status == nil && g.statusErr == nil {
		s, err := g.opt.Git.Status(ctx, g.req.Workspace)
		s.Changes = slices.Clone(s.Changes)
		slices.SortStableFunc(s.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
		g.status, g.statusErr = &s, err
	}
	return *g.status, g.statusErr
}

// git returns the branch, the changed files and the last commits. It leaves out the
// diff, which is long and which a step gets with code/diff.
func (g *contextBuild) git(ctx context.Context, n int) (string, bool, error) {
	s, err := g.gitStatus(ctx)
	if err != nil {
		return "", false, err
	}
	var b strings.Builder
	if s.Branch == "" {
		b.WriteString("no branch (detached)\n")
	} else {
		fmt.Fprintf(&b, "branch %s\n", s.Branch)
	}
	if s.Upstream != "" {
		fmt.Fprintf(&b, "upstream %s, %d ahead, %d behind\n", s.Upstream, s.Ahead, s.Behind)
	}
	if len(s.Changes) == 0 {
		b.WriteString("nothing changed since the last commit\n")
	} else {
		b.WriteString("changed since the last commit:\n")
	}
	for _, c := range s.Changes[:min(len(s.Changes), maxChanges)] {
		if !g.workspace.secret(c.Path) {
			fmt.Fprintf(&b, "  %-2s %s\n", c.Status, c.Path)
		}
	}
	if more := len(s.Changes) - maxChanges; more > 0 {
		fmt.Fprintf(&b, "  and %d more\n", more)
	}
	// A repository without a commit has no log, but a status.
	if log, err := g.opt.Git.Log(ctx, g.req.Workspace, maxCommits); err == nil && len(log) > 0 {
		b.WriteString("last commits:\n")
		for _, c := range log[:min(len(log), maxCommits)] {
			fmt.Fprintf(&b, "  %.10s %s %s: %s\n", c.Hash, c.Time.UTC().Format(time.DateOnly), textcut.Mark(c.Author, 40), textcut.Mark(oneLine(c.Subject), 120))
		}
	}
	text, truncated := shorten(clean(b.String()), n)
	return text, truncated || len(s.Changes) > maxChanges, nil
}

// chat returns the newest messages.
func (g *contextBuild) chat(ctx context.Context, room string, n int) (string, bool, error) {
	messages, err := g.messages(ctx, room)
	if err != nil {
		return "", false, err
	}
	var lines []string
	for _, m := range messages {
		lines = append(lines, entry(m.Time, m.From+": "+m.Text))
	}
	text, truncated := newest(lines, n)
	return text, truncated, nil
}

// messages returns the newest messages of a room, by default of that of the request.
func (g *contextBuild) messages(ctx context.Context, room string) ([]ChatMessage, error) {
	if g.opt.Chat == nil {
		return nil, errNotConfigured
	}
	return g.opt.Chat.RecentMessages(ctx, cmp.Or(room, g.req.Room, "general"), cmp.Or(g.req.MaxMessages, maxMessages))
}

// A Participant is one who wrote in the messages of the source chat.
type Participant struct {
	Name     string `json:"name"`
	Kind     string `json:"kind,omitempty" jsonschema:"person, agent, step or model"`
	Messages int    `json:"messages" jsonschema:"how many of them"`
}

// speakers returns who wrote in the room, in the order of their first messages.
func (g *contextBuild) speakers(ctx context.Context, n int) (string, bool, error) {
	messages, err := g.messages(ctx, "")
	if err != nil {
		return "", false, err
	}
	for _, m := range messages {
		i := slices.IndexFunc(g.participants, func(p Participant) bool { return p.Name == m.From && p.Kind == m.Kind })
		if i < 0 {
			i, g.participants = len(g.participants), append(g.participants, Participant{Name: m.From, Kind: m.Kind})
		}
		g.participants[i].Messages++
	}
	var b strings.Builder
	for _, p := range g.participants {
		fmt.Fprintf(&b, "%s (%s), messages: %d\n", textcut.Mark(oneLine(p.Name), 120), cmp.Or(p.Kind, "unknown"), p.Messages)
	}
	text, truncated := shorten(clean(b.String()), n)
	return text, truncated, nil
}

// strategy returns the rules and criteria by which the participants of a room decide whether to
// answer, as the recipe has them.
func (g *contextBuild) strategy(ctx context.Context, n int) (string, bool, error) {
	if g.opt.Strategy == nil {
		return "", false, errNotConfigured
	}
	raw, err := g.opt.Strategy.RecipeStrategy(ctx, g.req.Run, g.req.Recipe)
	if err != nil {
		return "", false, err
	}
	var s struct {
		ConversationPattern                                string
		ResponseRules, FeedbackLoopRules, DecisionCriteria []string
	}
	if len(raw) == 0 {
		return "", false, errors.New("neither the recipe nor the definition of the run has a strategy")
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return "", false, fmt.Errorf("strategy of the recipe: %w", err)
	}
	var b strings.Builder
	if s.ConversationPattern != "" {
		fmt.Fprintf(&b, "conversation: %s\n", oneLine(s.ConversationPattern))
	}
	for _, part := range []struct {
		heading string
		lines   []string
	}{
		{"rules of responses", s.ResponseRules}, {"rules of feedback", s.FeedbackLoopRules}, {"criteria of the decision to respond", s.DecisionCriteria},
	} {
		if len(part.lines) == 0 {
			continue
		}
		fmt.Fprintf(&b, "%s:\n", part.heading)
		for _, line := range part.lines {
			fmt.Fprintf(&b, "- %s\n", oneLine(line))
		}
	}
	text, truncated := shorten(clean(b.String()), n)
	return text, truncated, nil
}

// failures returns recent failures, which the next attempt can avoid.
func (g *contextBuild) failures(ctx context.Context, n int) (string, bool, error) {
	if g.opt.Failures == nil {
		return "", false, errNotConfigured
	}
	failures, err := g.opt.Failures.RecentFailures(ctx, g.req.Workspace, g.req.Run, maxFailures)
	if err != nil {
		return "", false, err
	}
	var lines []string
	for _, f := range failures {
		where := string(f.Sentinel)
		if f.Step != "" {
			where += " step " + f.Step
		}
		lines = append(lines, entry(f.Time, fmt.Sprintf("%s: %s: %s", where, f.Code, f.Message)))
	}
	text, truncated := newest(lines, n)
	return text, truncated, nil
}

// activity returns the recent activity in the workspace.
func (g *contextBuild) activity(ctx context.Context, n int) (string, bool, error) {
	if g.opt.Activity == nil {
		return "", false, errNotConfigured
	}
	activity, err := g.opt.Activity.RecentActivity(ctx, g.req.Workspace, maxActivity)
	if err != nil {
		return "", false, err
	}
	var lines []string
	for _, a := range activity {
		lines = append(lines, entry(a.Time, a.Text))
	}
	text, truncated := newest(lines, n)
	return text, truncated, nil
}

// entry formats one dated line with at most 2 KiB of text. Further lines of the text
// are indented, so that they cannot be mistaken for other entries.
func entry(at time.Time, text string) string {
	text = textcut.Mark(strings.TrimSpace(clean(text)), 2<<10)
	return at.UTC().Format(time.RFC3339) + " " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
