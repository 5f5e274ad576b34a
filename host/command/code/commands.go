package code

import (
	"context"
	"maps"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// Options configure the commands. The zero value works.
type Options struct {
	// Run executes the programs of code/verify. Default nil: the command is left out.
	Run Runner
	// VerifyTimeout limits a code/verify without a deadline. Default 30 minutes.
	VerifyTimeout time.Duration
	// Rules decide which files models do not read. The zero value recognizes
	// them by their usual names.
	Rules command.FileRules
}

// A Runner executes a program in the folder dir of the call's workspace with stdin as its
// standard input, and ends its whole process tree when ctx ends. An exit code other
// than 0 is not an error; the error for a program that does not exist has the code
// not_found.
type Runner func(ctx context.Context, call *command.Call, dir string, argv []string, stdin string) (exitCode int, output string, err error)

// files implements the commands on files.
type files struct{ rules command.FileRules }

// Commands returns the commands code/* and fs/*.
func Commands(opt Options) []command.Command {
	read := command.Options{Effect: command.Reads, Idempotent: true}
	// The aliases are the names of other tools that models were trained with.
	file := map[string]string{"file": "path", "filePath": "path", "file_path": "path"}
	readOne := read
	readOne.Aliases = file
	edits := map[string]string{
		"search": "old", "replace": "new", "oldText": "old", "newText": "new", "old_string": "old", "new_string": "new", "replace_all": "replaceAll",
	}
	maps.Copy(edits, file)
	find := read
	find.Search = true
	find.Aliases = map[string]string{"query": "pattern", "regex": "pattern"}
	f := files{opt.Rules}
	list := []command.Command{
		command.New("code/read", "Read a text file, or a part of it that begins at a line.", readOne, f.read),
		command.WithPreview(command.New("code/write", "Write a whole text file, which may exist.", command.Options{Effect: command.Changes, Idempotent: true, Aliases: file}, f.write), f.previewWrite),
		command.WithPreview(command.New("code/edit", "Replace exact text in a file. The text to replace must occur exactly once unless replaceAll is set.",
			command.Options{Effect: command.Changes, Aliases: edits}, f.edit), f.previewEdit),
		command.New("code/search", "Find lines that match a regular expression, in all or some files of the workspace.", find, f.search),
		command.New("code/tree", "List the files and folders of the workspace.", read, f.tree),
	}
	list = append(list, f.skills()...)
	if opt.Run == nil {
		return list
	}
	if opt.VerifyTimeout == 0 {
		opt.VerifyTimeout = 30 * time.Minute
	}
	v := verifier{files: f, run: opt.Run}
	return append(list, command.WithPreview(command.New("code/verify",
		"Build or check the project with its tools (Go, Node, Rust, Python, Make), and with fullTest run its tests too. Failed tests are a result with success false.",
		command.Options{Effect: command.Executes, Idempotent: true, Timeout: opt.VerifyTimeout}, v.verify), v.preview))
}
