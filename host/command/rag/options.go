package rag

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options are the places sources come from. A source whose place is nil is left
// out of the context, and the result says so. Every implementation must be safe
// for concurrent use, honour ctx, and answer the same while nothing changes.
type Options struct {
	Git      Git      // source "git", and what changed for "files"; default nil
	Chat     Chat     // source "chat"; default nil
	Failures Failures // source "failures"; default nil
	Activity Activity // source "activity"; default nil
	Recipes  Recipes  // recipes beside the built-in ones; default nil

	// SecretFiles are left out of every context. The zero value goes by names.
	SecretFiles command.SecretFiles
}

// Git reads the repository that a workspace lies in.
type Git interface {
	Status(ctx context.Context, workspace string) (GitStatus, error)
	// Log returns the newest commits, the newest first.
	Log(ctx context.Context, workspace string, limit int) ([]Commit, error)
}

// GitStatus is the state of a working tree.
type GitStatus struct {
	Branch   string // empty when detached
	Upstream string // empty if there is none
	Ahead    int    // commits that the upstream has not
	Behind   int    // commits that only the upstream has
	Changes  []Change
}

// A Change is one file that differs from the last commit.
type Change struct {
	Status string // as git's short format has it, such as "M" or "??"
	Path   string // relative to the workspace, with slashes
}

// A Commit is one entry of the log.
type Commit struct {
	Hash    string
	Author  string
	Time    time.Time
	Subject string
}

// Chat reads rooms.
type Chat interface {
	// RecentMessages returns the newest messages of a room, the newest last.
	RecentMessages(ctx context.Context, room string, limit int) ([]ChatMessage, error)
}

// A ChatMessage is what somebody said.
type ChatMessage struct {
	From string
	Text string
	Time time.Time
}

// Failures knows what went wrong lately.
type Failures interface {
	// RecentFailures returns failures of steps and runs in a workspace, those
	// of the given run included, the newest last.
	RecentFailures(ctx context.Context, workspace string, run sentinels.RunID, limit int) ([]Failure, error)
}

// A Failure is a step or a run that ended with an error.
type Failure struct {
	Time     time.Time
	Sentinel sentinels.ID
	Step     string // execution path, empty for a whole run
	Code     string
	Message  string
}

// Activity knows what happened lately, told in a line each.
type Activity interface {
	// RecentActivity returns the newest lines of a workspace, the newest last.
	RecentActivity(ctx context.Context, workspace string, limit int) ([]ActivityLine, error)
}

// An ActivityLine is one thing that happened.
type ActivityLine struct {
	Time time.Time
	Text string
}

// Recipes are named lists of sources that an operator keeps.
type Recipes interface {
	// RecipeSources returns the sources of a recipe, or a not_found error.
	RecipeSources(ctx context.Context, name string) ([]string, error)
}
