package code

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type writeIn struct {
	Path       string `json:"path" jsonschema:"file to write, relative to the workspace"`
	Content    string `json:"content" jsonschema:"the whole new text"`
	CreateDirs *bool  `json:"createDirs,omitempty" jsonschema:"create missing folders of the path; true if not given"`
	IfHash     string `json:"ifHash,omitempty" jsonschema:"write only if the file still has this SHA-256, as code/read returns it; none: only if there is no file"`
}

type writeOut struct {
	Path    string `json:"path"`
	Created bool   `json:"created" jsonschema:"the file did not exist before"`
	Bytes   int    `json:"bytes"`
	lineCounts
	Hash string `json:"hash" jsonschema:"SHA-256 of the file as written"`
}

// noFile is the value of ifHash for a file that must not exist.
const noFile = "none"

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
	before, err := w.before(p, in)
	if err != nil {
		return writeOut{}, err
	}
	if err := w.mayReplace(p, []byte(in.Content)); err != nil {
		return writeOut{}, err
	}
	created, err := w.WriteFile(p, []byte(in.Content))
	if err != nil {
		return writeOut{}, err
	}
	return writeOut{Path: p.Path, Created: created, Bytes: len(in.Content), lineCounts: count(before, []byte(in.Content)), Hash: hashOf([]byte(in.Content))}, nil
}

// before returns the content of the file that a write replaces, nil if it is not known. It
// returns an error unless the file is as ifHash says, or has the new content already: then
// the call is repeated.
func (w *workspace) before(p *rootfs.Entry, in writeIn) ([]byte, error) {
	var data []byte
	if p.Info != nil {
		var err error
		if data, err = w.load(p); err != nil && in.IfHash == "" {
			return nil, nil // only its lines are not counted
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case in.IfHash == "", p.Info != nil && hashOf(data) == hashOf([]byte(in.Content)):
		return data, nil
	case in.IfHash == noFile && p.Info == nil:
		return nil, nil
	case in.IfHash == noFile:
		return nil, &abi.Error{Code: abi.Conflict, Field: "ifHash", Permanent: true, Message: fmt.Sprintf("write %q: the file exists now", p.Path), Hint: "read it first"}
	case p.Info == nil:
		return nil, w.Missing(p.Path)
	}
	return data, unchanged(p.Path, data, in.IfHash)
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
