package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure an [Access].
type Options struct {
	// Shut are folders and files of the host's own: neither they nor what is in
	// them is read or written, whatever a grant says. They need not exist. Default
	// none.
	Shut []string
}

// An Access answers the requests of plugins.
//
// # Concurrency
//
// Safe for concurrent use. It holds nothing open and needs no Close.
type Access struct{ opt Options }

// New returns an access.
func New(opt Options) *Access { return &Access{opt} }

// A Folder is what a word of a plugin stands for.
type Folder struct {
	Path  string // absolute, or relative to the workspace
	Write bool
}

// A Call is one request of a plugin, and what the plugin may do.
type Call struct {
	Plugin    string            // its name, for hints
	Workspace string            // absolute, of the run
	Folders   map[string]Folder // by the plugin's own words
	Request   json.RawMessage   // as the guest wrote it
}

// Do answers a request with the JSON of clause A6.16, at most 256 KiB of it. Its
// errors have an *[abi.Error]. What it began to write it finishes or leaves
// undone as a whole, also when ctx ends meanwhile.
func (a *Access) Do(ctx context.Context, call Call) (json.RawMessage, error) {
	// The shape first: a request that means nothing is told so, granted or not.
	r, err := decode(call.Request)
	if err != nil {
		return nil, err
	}
	// Nothing below waits for anybody, so this is the one look that is needed.
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("%w: %w", abi.New(abi.Cancelled, fmt.Sprintf("%s %q: the step's end came first", r.op, r.path)), cause)
	}
	t, err := a.open(call, r)
	if err != nil {
		return nil, coded(err)
	}
	defer t.Close()
	out, err := operations[r.op].do(t, r)
	if err != nil {
		return nil, coded(err)
	}
	return out, nil
}

// coded gives errors of the file system a code. Their texts name nothing but
// what the guest named.
func coded(err error) error {
	if e := abi.As(err); e != nil {
		return e
	}
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) { // every operation may be made again, so the engine does
			return fmt.Errorf("%w: %w", abi.New(abi.Unavailable, err.Error()), errno)
		}
	}
	// What is not known below is worth a look at the host, hence internal.
	e := &abi.Error{Code: abi.Internal, Message: err.Error()}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Permanent = abi.Denied, true
		e.Hint = "the host's user has no right to it; see modes and owner"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Code = abi.Unavailable // it may be otherwise later
	// A name that this file system does not take; another may.
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		e.Code, e.Permanent, e.Field = abi.BadFields, true, "path"
	// A file where the path has a folder: nothing is there under this name.
	case errors.Is(err, syscall.ENOTDIR):
		e.Code, e.Permanent, e.Field = abi.NotFound, true, "path"
	}
	return e
}
