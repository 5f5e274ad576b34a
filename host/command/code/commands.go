package code

import (
	"context"
	"maps"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
)

// Options are what the family needs of the host. The zero value works.
type Options struct {
	// Run carries out a program in the call's workspace, or in the folder dir
	// below it, and ends its whole process tree with ctx. A program that ran
	// is no error, whatever its exit code. nil leaves code/verify out of the
	// commands: default nil.
	Run func(ctx context.Context, call *command.Call, dir string, argv []string) (exitCode int, output string, err error)
	// VerifyTimeout limits one code/verify that has no deadline: default 30
	// minutes.
	VerifyTimeout time.Duration
	// SecretFiles are files that models do not read. The zero value goes by names.
	SecretFiles command.SecretFiles
}

// files are the commands that work on files.
type files struct{ secrets command.SecretFiles }

// Commands returns the family.
func Commands(opt Options) []command.Command {
	read := command.Options{ReadOnly: true, Idempotent: true}
	// The names that models trained on other tools use.
	file := map[string]string{"file": "path", "filePath": "path", "file_path": "path"}
	readOne := read
	readOne.Aliases = file
	edits := map[string]string{
		"search": "old", "replace": "new", "oldText": "old", "newText": "new", "old_string": "old", "new_string": "new", "replace_all": "replaceAll",
	}
	maps.Copy(edits, file)
	find := read
	find.Aliases = map[string]string{"query": "pattern", "regex": "pattern"}
	f := files{opt.SecretFiles}
	list := []command.Command{
		command.New("code/read", "Read a text file, whole or from a line on.", readOne, f.read),
		command.New("code/write", "Write a whole text file, new or over what is there.", command.Options{Idempotent: true, Aliases: file}, f.write),
		command.New("code/edit", "Replace exact text in a file. The text to replace must occur exactly once unless replaceAll is set.",
			command.Options{Aliases: edits}, f.edit),
		command.New("code/search", "Find lines that match a regular expression, in all files of the workspace or some.", find, f.search),
		command.New("code/tree", "List the files and folders of the workspace.", read, f.tree),
	}
	if opt.Run == nil {
		return list
	}
	if opt.VerifyTimeout == 0 {
		opt.VerifyTimeout = 30 * time.Minute
	}
	v := verifier{files: f, run: opt.Run}
	return append(list, command.New("code/verify",
		"Build the project as its kind is built (Go, Node, Rust, Make); with fullTest run its tests too. Red tests are a result with success false.",
		command.Options{Idempotent: true, Executes: true, Timeout: opt.VerifyTimeout}, v.verify))
}
