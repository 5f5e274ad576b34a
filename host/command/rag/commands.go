package rag

import (
	"context"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// Commands returns the commands rag/*.
func Commands(opt Options) []command.Command {
	b := New(opt)
	read := command.Options{Effect: command.Reads, Idempotent: true, Timeout: time.Minute}
	return []command.Command{
		command.New("rag/build", "Build the context of a prompt: files of the workspace, git, chat and recent failures, as one text.", read, b.build),
		command.New("rag/search", "Find the files and lines of the workspace that are most relevant to a question.", read, b.search),
	}
}

type buildIn struct {
	Recipe       string   `json:"recipe,omitempty" jsonschema:"named list of sources: coding (tree, git, files, failures), review, chat, or a recipe of the host; coding if sources is not given either"`
	Sources      []string `json:"sources,omitempty" jsonschema:"sources besides those of the recipe: tree, git, files, chat, chat:ROOM, participants, strategy, failures, activity, file:GLOB (sentinel help globs)"`
	Query        string   `json:"query,omitempty" jsonschema:"what the context is for; files with its words come first"`
	Paths        []string `json:"paths,omitempty" jsonschema:"globs (sentinel help globs) of the files or folders that are most relevant"`
	Room         string   `json:"room,omitempty" jsonschema:"room of the source chat, general if not given"`
	MaxMessages  int      `json:"maxMessages,omitempty" jsonschema:"how many messages of the source chat, 50 if not given; with neither recipe nor sources, the recipe is then chat" minimum:"1" maximum:"50"`
	Participants bool     `json:"includeParticipants,omitempty" jsonschema:"add the source participants: who wrote the messages of the source chat, and of which kind they are"`
	Strategy     bool     `json:"includeRoomStrategy,omitempty" jsonschema:"add the source strategy: the rules and criteria of the recipe, or of the definition of the run"`
	Domains      bool     `json:"includePersonaDomains,omitempty" jsonschema:"of recipes of other programs; there is no source for it, as omitted of the result says"`
	Flow         bool     `json:"analyzeConversationFlow,omitempty" jsonschema:"likewise"`
	MaxBytes     int      `json:"maxBytes,omitempty" jsonschema:"maximum length of the text, 49152 if not given" minimum:"1024" maximum:"262144"`
}

// visible returns [Request.Visible] for a caller, nil for one that sees secrets.
func visible(call *command.Call) func(string) string {
	if call.Redact == nil {
		return nil
	}
	return call.Visible
}

// heldBytes is about what a call holds while it reads one file after the other.
const heldBytes = maxFile + maxBytes

func (b *Builder) build(ctx context.Context, call *command.Call, in buildIn) (Result, error) {
	if err := call.Count(heldBytes); err != nil {
		return Result{}, err
	}
	r, err := b.Build(ctx, Request{
		Recipe: in.Recipe, Sources: in.Sources, Query: in.Query, Paths: in.Paths, Room: in.Room, MaxMessages: in.MaxMessages, MaxBytes: in.MaxBytes,
		Participants: in.Participants, Strategy: in.Strategy,
		Workspace: call.Workspace, Base: call.Base(), Run: call.Run, Visible: visible(call),
	})
	for _, absent := range []struct {
		asked        bool
		name, reason string
	}{
		{in.Domains, "includePersonaDomains", "this host knows no domains of personas"},
		{in.Flow, "analyzeConversationFlow", "this host does not analyze conversations; the source chat has the messages"},
	} {
		if absent.asked && err == nil {
			r.Omitted = append(r.Omitted, Omission{absent.name, absent.reason})
		}
	}
	return r, err
}
