package rag

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// Commands returns the family rag/*.
func Commands(opt Options) []command.Command {
	b := New(opt)
	read := command.Options{ReadOnly: true, Idempotent: true, Timeout: time.Minute}
	return []command.Command{
		command.New("rag/build", "Gather context for a model: files of the workspace, git, chat and recent failures, as one text.", read, b.build),
		command.New("rag/search", "Find the files and lines of the workspace that fit a question best.", read, b.search),
	}
}

type buildIn struct {
	Recipe   string   `json:"recipe,omitempty" jsonschema:"named list of sources: coding (tree, git, files, failures), review, chat, or one of the host's own; coding if there are no sources either"`
	Sources  []string `json:"sources,omitempty" jsonschema:"sources beside those of the recipe: tree, git, files, chat, chat:ROOM, failures, activity, file:GLOB (FORMAT.md F9)"`
	Query    string   `json:"query,omitempty" jsonschema:"what the context is for; files that fit its words come first"`
	Paths    []string `json:"paths,omitempty" jsonschema:"globs (FORMAT.md F9) of the files or folders that are most relevant"`
	Room     string   `json:"room,omitempty" jsonschema:"room of the source chat, general if not given"`
	MaxBytes int      `json:"maxBytes,omitempty" jsonschema:"how long the text may be, 49152 if not given" minimum:"1024" maximum:"262144"`
}

func (b *Builder) build(ctx context.Context, call *command.Call, in buildIn) (Result, error) {
	return b.Build(ctx, Request{
		Recipe: in.Recipe, Sources: in.Sources, Query: in.Query, Paths: in.Paths, Room: in.Room, MaxBytes: in.MaxBytes,
		Workspace: call.Workspace, Run: call.Run,
	})
}
