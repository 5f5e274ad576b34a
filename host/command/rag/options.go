package rag

import (
	"context"
	"encoding/json"
	"log/slog"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Options provide the data of the sources. A source without its data is left out of
// the context, and the result reports it. Implementations must be safe for concurrent
// use, end with ctx, and return equal data while nothing changes.
type Options struct {
	Git      Git      // source "git", and what changed for "files"; default nil
	Chat     Chat     // source "chat"; default nil
	Failures Failures // source "failures"; default nil
	Activity Activity // source "activity"; default nil
	Recipes  Recipes  // recipes besides the built-in ones; default nil
	Strategy Strategy // source "strategy"; default nil

	// Rules decide which files are left out of every context. The zero value
	// recognizes them by their usual names.
	Rules command.FileRules

	// IndexDir is the folder of the code indexes. Default: each call builds an index in
	// memory.
	IndexDir string
	Logger   *slog.Logger // what is wrong with an index; default: no log
}

// Git reads the repository that contains a workspace.
type Git interface {
	Status(ctx context.Context, workspace string) (GitStatus, error)
	// Log returns the newest commits, the newest first.
	Log(ctx context.Context, workspace string, limit int) ([]Commit, error)
}

// GitStatus is the state of a working tree.
type GitStatus struct {
	Branch   string // empty when detached
	Upstream string // empty if there is none
	Ahead    int    // commits that are not in the upstream
	Behind   int    // commits that are only in the upstream
	Changes  []Change
}

// A Change is one file that differs from the last commit.
type Change struct {
	Status string // in the short format of git, such as "M" or "??"
	Path   string // relative to the workspace, with slashes
}

// A Commit is one entry of the log.
type Commit struct {
	Hash    string
	Author  string
	Time    time.Time
	Subject string
}

// Chat reads the messages of rooms.
type Chat interface {
	// RecentMessages returns the newest messages of a room, the newest last.
	RecentMessages(ctx context.Context, room string, limit int) ([]ChatMessage, error)
}

// A ChatMessage is one message of a room.
type ChatMessage struct {
	From string
	Kind string // of the speaker: person, agent, step or model
	Text string
	Time time.Time
}

// Failures reads recent failures.
type Failures interface {
	// RecentFailures returns failures of steps and runs in a workspace, including
	// those of the given run, the newest last.
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

// Activity reads recent activity.
type Activity interface {
	// RecentActivity returns the newest lines of a workspace, the newest last.
	RecentActivity(ctx context.Context, workspace string, limit int) ([]ActivityLine, error)
}

// An ActivityLine describes one event.
type ActivityLine struct {
	Time time.Time
	Text string
}

// Recipes reads the recipes of the operator, which are named lists of sources.
type Recipes interface {
	// RecipeSources returns the sources of a recipe, or a not_found error.
	RecipeSources(ctx context.Context, name string) ([]string, error)
}

// Strategy reads the strategies of recipes.
type Strategy interface {
	// RecipeStrategy returns the member "strategy" of a recipe, of the definition of the run if
	// the recipe has no file with one; nil if neither has one.
	RecipeStrategy(ctx context.Context, run sentinels.RunID, recipe string) (json.RawMessage, error)
}
