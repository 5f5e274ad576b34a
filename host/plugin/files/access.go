package files

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure an [Access].
type Options struct {
	// Host are the host's own files. No plugin reads or writes them, whatever its grant; of
	// caches, none whose grant is an absolute folder. Default none.
	Host command.HostFiles
}

// An Access executes the file requests of plugins.
//
// # Concurrency
//
// Safe for concurrent use. It keeps no files open and needs no Close.
type Access struct{ opt Options }

// New returns an access.
func New(opt Options) *Access { return &Access{opt} }

// A Folder is the grant of a folder.
type Folder struct {
	Path  string // absolute, or relative to the workspace
	Write bool
}

// A Call is one request of a plugin, with the plugin's grants.
type Call struct {
	Plugin    string            // its name, for hints
	Workspace string            // absolute, of the run
	Base      string            // folder from which Workspace is reached without links, empty if that does not matter
	Folders   map[string]Folder // by the plugin's names for them
	Request   json.RawMessage   // as the guest wrote it
}

// Do executes a request and returns the JSON of clause A6.16, at most 256 KiB. Its
// errors wrap an *[abi.Error]. Writes are atomic; ctx is checked only before the
// operation starts.
func (a *Access) Do(ctx context.Context, call Call) (json.RawMessage, error) {
	// The request is validated first, so that this error does not depend on grants.
	r, err := decode(call.Request)
	if err != nil {
		return nil, err
	}
	// The operations below do not block, so one check is enough.
	if cause := context.Cause(ctx); cause != nil {
		return nil, fmt.Errorf("%w: %w", abi.New(abi.Cancelled, fmt.Sprintf("%s %q: the step has ended", r.op, r.path)), cause)
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

// coded adds a code to errors of the file system. Their texts contain only the
// guest's own names, never the host's paths.
func coded(err error) error {
	if e := abi.As(err); e != nil {
		return e
	}
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if errors.Is(err, errno) { // the engine retries: every operation is idempotent
			return fmt.Errorf("%w: %w", abi.New(abi.Unavailable, err.Error()), errno)
		}
	}
	// Other errors indicate a problem of the host, hence internal.
	e := &abi.Error{Code: abi.Internal, Message: err.Error()}
	switch {
	case errors.Is(err, fs.ErrPermission), errors.Is(err, syscall.EROFS):
		e.Code, e.Permanent = abi.Denied, true
		e.Hint = "the host's user has no permission; check modes and owner"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		e.Code = abi.Unavailable // space may be free later
	// The file system does not support this name.
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.EINVAL):
		e.Code, e.Permanent, e.Field = abi.BadFields, true, "path"
	// A parent of the path is a file, so the path does not exist.
	case errors.Is(err, syscall.ENOTDIR):
		e.Code, e.Permanent, e.Field = abi.NotFound, true, "path"
	}
	return e
}
