package cassette

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/llm"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Models is what is recorded and what a [Player] stands in for.
type Models interface {
	Quote(ctx context.Context, turn sentinels.Turn) (llm.Quote, error)
	Turn(ctx context.Context, turn sentinels.Turn, delta func(text string)) (sentinels.Reply, error)
}

// RecordOptions configure a Recorder. The zero value refuses a file that is
// already there.
type RecordOptions struct {
	Workspace string           // the run's absolute workspace. Default none
	Redact    *redact.Redactor // takes secrets out. Default none
	Append    bool             // go on with a cassette that is there, as a resumed run does. Default false
	Overwrite bool             // replace an existing cassette. Default false
	Clock     func() time.Time // Default time.Now
}

// A Recorder passes turns on and writes down how they ended.
//
// # Concurrency
//
// Its methods are safe for concurrent use. Turns run side by side; they are
// written one after the other in the order in which they end.
type Recorder struct {
	models  Models
	options RecordOptions
	paths   paths
	torn    bool

	mu     sync.Mutex
	file   *os.File
	n      int
	size   int64
	failed error // the file is no longer trusted
}

// Record opens file, with mode 0600, and returns models that are recorded to
// it. The caller closes the Recorder.
func Record(file string, models Models, o RecordOptions) (*Recorder, error) {
	if o.Clock == nil {
		o.Clock = time.Now
	}
	r := &Recorder{models: models, options: o, paths: newPaths(o.Workspace)}
	if err := r.open(file); err != nil {
		if e := abi.As(err); e != nil {
			return nil, e
		}
		return nil, fmt.Errorf("record cassette %q: %w", file, err)
	}
	return r, nil
}

func (r *Recorder) open(name string) error {
	flags := os.O_RDWR | os.O_CREATE
	if !r.options.Append && !r.options.Overwrite {
		flags |= os.O_EXCL
	}
	file, err := os.OpenFile(name, flags, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &abi.Error{
			Code: abi.Conflict, Permanent: true,
			Message: fmt.Sprintf("record cassette %q: the file is already there", name),
			Hint:    "name another file, or remove this one",
		}
	}
	if err != nil {
		return err
	}
	if err := r.start(file, name); err != nil {
		file.Close()
		return err
	}
	return nil
}

// start brings the file into the state in which a turn can be appended.
func (r *Recorder) start(file *os.File, name string) error {
	if err := file.Chmod(0o600); err != nil {
		return err
	}
	r.file = file
	info, err := file.Stat()
	if err != nil {
		return err
	}
	// What a killed process left of a line goes; the next turn is written there.
	if r.options.Append && info.Size() > 0 {
		t, err := read(file)
		if err != nil {
			return err
		}
		r.n, r.size, r.torn = len(t.entries), t.good, t.torn
		if err := file.Truncate(t.good); err != nil {
			return err
		}
	} else {
		if err := file.Truncate(0); err != nil {
			return err
		}
		if err := r.append(header{Cassette: "sentinel", Version: Version}); err != nil {
			return err
		}
	}
	folder, err := os.Open(filepath.Dir(name))
	if err != nil {
		return err
	}
	defer folder.Close()
	// Some file systems cannot sync a folder; the file itself is synced.
	if err := folder.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, fs.ErrInvalid) {
		return err
	}
	return nil
}

// Torn reports whether the cassette that is gone on with ended in the middle of
// a line, which was cut off.
func (r *Recorder) Torn() bool { return r.torn }

// Quote passes the question on.
func (r *Recorder) Quote(ctx context.Context, turn sentinels.Turn) (llm.Quote, error) {
	return r.models.Quote(ctx, turn)
}

// Turn makes the turn and records how it ended. A turn that ended because ctx
// did is recorded as cancelled: a replay has to know its request. If it cannot be written
// down that is the error, since a cassette with a hole would answer wrongly;
// the reply is returned beside it, for it was paid for.
func (r *Recorder) Turn(ctx context.Context, turn sentinels.Turn, delta func(text string)) (sentinels.Reply, error) {
	started := r.options.Clock()
	reply, err := r.models.Turn(ctx, turn, delta)
	entry := Entry{Request: turn, Ms: r.options.Clock().Sub(started).Milliseconds()}
	switch {
	case err != nil && ctx.Err() != nil:
		entry.Cancelled = true
	case err != nil:
		entry.Error = &abi.Error{Code: abi.CodeOf(err), Message: err.Error()}
		if e := abi.As(err); e != nil {
			copied := *e
			entry.Error = &copied
		}
	default:
		copied := reply
		entry.Reply = &copied
	}
	if writeErr := r.write(entry); writeErr != nil {
		return reply, &abi.Error{Code: abi.Internal, Permanent: true, Message: "record turn: " + writeErr.Error()}
	}
	return reply, err
}

// write cleans a turn before it takes the lock; only the append is serial.
func (r *Recorder) write(entry Entry) error {
	if err := hide(&entry, r.options.Redact, r.paths); err != nil {
		return err
	}
	entry.Key = key(entry.Request)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.failed != nil {
		return r.failed
	}
	entry.N = r.n + 1
	if err := r.append(entry); err != nil {
		return err
	}
	r.n++
	return nil
}

// append writes one line and syncs it. After a failure it takes back what was
// written; if that fails too the file is not written again.
func (r *Recorder) append(v any) error {
	var line bytes.Buffer
	encoder := json.NewEncoder(&line)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(v); err != nil {
		return err
	}
	if line.Len() > maxLine {
		return fmt.Errorf("the turn is longer than %d bytes", maxLine)
	}
	if r.file == nil {
		return fs.ErrClosed
	}
	// At the offset of the last good line, not at the end of the file: a write
	// that was cut short by a full disk leaves nothing in front of the next.
	_, err := r.file.WriteAt(line.Bytes(), r.size)
	if err == nil {
		err = r.file.Sync()
	}
	if err != nil {
		if undo := r.file.Truncate(r.size); undo != nil {
			r.failed = errors.Join(err, undo)
		}
		return err
	}
	r.size += int64(line.Len())
	return nil
}

// Close closes the file. Turns that end later are errors. Closing twice is
// allowed.
func (r *Recorder) Close() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.file == nil {
		return nil
	}
	err := r.file.Close()
	r.file = nil
	return err
}

var (
	_ Models    = (*Recorder)(nil)
	_ io.Closer = (*Recorder)(nil)
)
