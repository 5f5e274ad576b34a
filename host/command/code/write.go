package code

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type writeIn struct {
	Path       string `json:"path" jsonschema:"file to write, relative to the workspace"`
	Content    string `json:"content" jsonschema:"the whole new text"`
	CreateDirs *bool  `json:"createDirs,omitempty" jsonschema:"create missing folders of the path; true if not given"`
	IfHash     string `json:"ifHash,omitempty" jsonschema:"write only if the file still has this SHA-256, as code/read returns it"`
}

type writeOut struct {
	Path    string `json:"path"`
	Created bool   `json:"created" jsonschema:"the file did not exist before"`
	Bytes   int    `json:"bytes"`
	Hash    string `json:"hash" jsonschema:"SHA-256 of the file as written"`
}

// write is idempotent, also with ifHash: a call that is repeated after a crash finds
// the file with its own content.
func (f files) write(_ context.Context, call *command.Call, in writeIn) (writeOut, error) {
	w, err := f.open(call)
	if err != nil {
		return writeOut{}, err
	}
	defer w.Close()
	p, err := w.Resolve(in.Path, in.CreateDirs == nil || *in.CreateDirs)
	if err != nil {
		return writeOut{}, err
	}
	defer p.Close()
	if in.IfHash != "" {
		data, err := w.load(p)
		if err != nil {
			return writeOut{}, err
		}
		if hashOf(data) != hashOf([]byte(in.Content)) { // otherwise the call is repeated
			if err := unchanged(p.Path, data, in.IfHash); err != nil {
				return writeOut{}, err
			}
		}
	}
	if err := w.mayReplace(p, []byte(in.Content)); err != nil {
		return writeOut{}, err
	}
	created, err := w.WriteFile(p, []byte(in.Content))
	if err != nil {
		return writeOut{}, err
	}
	return writeOut{Path: p.Path, Created: created, Bytes: len(in.Content), Hash: hashOf([]byte(in.Content))}, nil
}

// unchanged compares a file with the hash that the caller expects.
func unchanged(name string, data []byte, want string) error {
	if have := hashOf(data); have != want {
		return &abi.Error{
			Code: abi.Conflict, Field: "ifHash", Permanent: true,
			Message: fmt.Sprintf("write %q: the file has changed: its hash is now %s", name, have), Hint: "read it again",
		}
	}
	return nil
}
