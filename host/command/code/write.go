package code

import (
	"bytes"
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/internal/rootfs"
	"github.com/sentinel-runtime/sentinel/internal/pathtext"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

type writeIn struct {
	Path       string `json:"path" jsonschema:"file to write, relative to the workspace"`
	Content    string `json:"content" jsonschema:"the whole new text"`
	CreateDirs *bool  `json:"createDirs,omitempty" jsonschema:"create missing folders of the path; true if not given"`
	IfHash     string `json:"ifHash,omitempty" jsonschema:"write only if the file still has this SHA-256, as code/read returns it; none: only if there is no file"`
	LineEnds   string `json:"lineEnds,omitempty" jsonschema:"keep, also if not given: lines keep the line ends (LF or CR LF) that they have in the file, new lines get those beside them; given: the line ends of content are written" enum:"keep,given"`
}

type writeOut struct {
	Path    string `json:"path"`
	Created bool   `json:"created" jsonschema:"the file did not exist before"`
	Bytes   int    `json:"bytes"`
	Kept    int    `json:"keptLineEnds,omitempty" jsonschema:"lines that are written with another line end than content has"`
	lineCounts
	Hash string `json:"hash" jsonschema:"SHA-256 of the file as written"`
}

// noFile is the value of ifHash for a file that must not exist.
const noFile = "none"

// givenEnds is the value of lineEnds for a content that is written as it is.
const givenEnds = "given"

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
	text, kept := in.text(before)
	if err := w.mayReplace(p, text); err != nil {
		return writeOut{}, err
	}
	created, err := w.WriteFile(p, text)
	if err != nil {
		return writeOut{}, err
	}
	return writeOut{
		Path: pathtext.Encode(p.Path), Created: created, Bytes: len(text), Kept: kept,
		lineCounts: count(w.visible(before), w.visible(text)), Hash: hashOf(w.visible(text)),
	}, nil
}

// text returns what is written in the place of before, and how many of its line ends are not
// those of content.
func (in writeIn) text(before []byte) (text []byte, kept int) {
	if in.LineEnds == givenEnds || isBinary(before) || isBinary([]byte(in.Content)) {
		return []byte(in.Content), 0
	}
	given := parseLines(in.Content)
	d := parseLines(string(before)).rewrite(given)
	for i, crlf := range d.crlf {
		if crlf != given.crlf[i] {
			kept++
		}
	}
	return []byte(d.String()), kept
}

// before returns the content of the file that a write replaces, nil if it is not known. It
// returns an error unless the file is as ifHash says, or has the new content already: then
// the call is repeated, unless there are secrets in it that the caller does not see.
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
	text, _ := in.text(data)
	switch {
	case in.IfHash == "", p.Info != nil && bytes.Equal(data, text) && bytes.Equal(data, w.visible(data)):
		return data, nil
	case in.IfHash == noFile && p.Info == nil:
		return nil, nil
	case in.IfHash == noFile:
		return nil, &abi.Error{Code: abi.Conflict, Field: "ifHash", Permanent: true, Message: fmt.Sprintf("write %q: the file exists now", p.Path), Hint: "read it first"}
	case p.Info == nil:
		return nil, w.Missing(p.Path)
	}
	return data, unchanged(p.Path, w.visible(data), in.IfHash)
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
