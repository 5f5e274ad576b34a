package rag

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// How many entries of each kind are asked for.
const (
	maxCommits  = 10
	maxChanges  = 100
	maxMessages = 50
	maxFailures = 20
	maxActivity = 50
)

// Reasons for leaving a source out.
var (
	errNothing = errors.New("nothing there")
	errNoPlace = errors.New("not available in this host")
)

// gathering is the work on one context.
type gathering struct {
	*Builder
	req       Request
	workspace *workspace
	paths     []glob.Pattern
	status    *GitStatus // once read
	statusErr error
}

// source builds one source in at most n bytes.
func (g *gathering) source(ctx context.Context, name string, n int) (text string, cutOff bool, err error) {
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
	case "failures":
		return g.failures(ctx, n)
	default:
		return g.activity(ctx, n)
	}
}

// gitStatus reads the status once for all sources that want it.
func (g *gathering) gitStatus(ctx context.Context) (GitStatus, error) {
	if g.opt.Git == nil {
		return GitStatus{}, errNoPlace
	}
	if g.status == nil && g.statusErr == nil {
		s, err := g.opt.Git.Status(ctx, g.req.Workspace)
		s.Changes = slices.Clone(s.Changes)
		slices.SortStableFunc(s.Changes, func(a, b Change) int { return strings.Compare(a.Path, b.Path) })
		g.status, g.statusErr = &s, err
	}
	return *g.status, g.statusErr
}

// git tells the branch, what changed and the last commits, not the diff: that
// is long, and a step asks for it with code/git where it is wanted.
func (g *gathering) git(ctx context.Context, n int) (string, bool, error) {
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
	// A repository without a commit has no log; its status is worth having.
	if log, err := g.opt.Git.Log(ctx, g.req.Workspace, maxCommits); err == nil && len(log) > 0 {
		b.WriteString("last commits:\n")
		for _, c := range log[:min(len(log), maxCommits)] {
			fmt.Fprintf(&b, "  %.10s %s %s: %s\n", c.Hash, c.Time.UTC().Format(time.DateOnly), clip(c.Author, 40), clip(oneLine(c.Subject), 120))
		}
	}
	text, cutOff := shorten(clean(b.String()), n)
	return text, cutOff || len(s.Changes) > maxChanges, nil
}

// chat keeps the end of the talk when it is too long.
func (g *gathering) chat(ctx context.Context, room string, n int) (string, bool, error) {
	if g.opt.Chat == nil {
		return "", false, errNoPlace
	}
	if room == "" {
		room = g.req.Room
	}
	if room == "" {
		room = "general"
	}
	messages, err := g.opt.Chat.RecentMessages(ctx, room, maxMessages)
	if err != nil {
		return "", false, err
	}
	var lines []string
	for _, m := range messages {
		lines = append(lines, entry(m.Time, m.From+": "+m.Text))
	}
	text, cutOff := newest(lines, n)
	return text, cutOff, nil
}

// failures lets a next attempt see what the last ones died of.
func (g *gathering) failures(ctx context.Context, n int) (string, bool, error) {
	if g.opt.Failures == nil {
		return "", false, errNoPlace
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
	text, cutOff := newest(lines, n)
	return text, cutOff, nil
}

// activity is what happened around the workspace, whoever did it.
func (g *gathering) activity(ctx context.Context, n int) (string, bool, error) {
	if g.opt.Activity == nil {
		return "", false, errNoPlace
	}
	activity, err := g.opt.Activity.RecentActivity(ctx, g.req.Workspace, maxActivity)
	if err != nil {
		return "", false, err
	}
	var lines []string
	for _, a := range activity {
		lines = append(lines, entry(a.Time, a.Text))
	}
	text, cutOff := newest(lines, n)
	return text, cutOff, nil
}

// entry is one dated line; further lines of its text are indented below it, so
// that no text can pass for another entry. 2 KiB of it are kept.
func entry(at time.Time, text string) string {
	text = clip(strings.TrimSpace(clean(text)), 2<<10)
	return at.UTC().Format(time.RFC3339) + " " + strings.ReplaceAll(text, "\n", "\n  ") + "\n"
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
