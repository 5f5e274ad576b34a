package shell

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// State is where an execution stands.
type State string

// The states of an execution.
const (
	Running State = "running"
	Ended   State = "ended"
	Lost    State = "lost" // the host stopped while it ran; its exit is not known
)

// A Record describes one execution after a restart of the host. It holds no environment:
// secrets travel there.
type Record struct {
	ID        string          `json:"id"`
	Run       sentinels.RunID `json:"run,omitempty"`
	Owner     string          `json:"owner,omitempty"`     // who called, of an execution without a run
	Share     string          `json:"share,omitempty"`     // whose share of what is kept it counts for, see [command.Call.Share]
	Path      string          `json:"path,omitempty"`      // execution path of the step that started it
	Iteration int             `json:"iteration,omitempty"` // of the run
	Attempt   int             `json:"attempt,omitempty"`   // of the step
	Loop      bool            `json:"loop,omitempty"`      // it ends with the innermost loop around the step
	Argv      []string        `json:"argv"`
	Dir       string          `json:"dir"`
	State     State           `json:"state"`
	BootID    string          `json:"bootId"`
	PID       int             `json:"pid,omitempty"` // 0 while it is being started
	StartTime uint64          `json:"startTime,omitempty"`
	Cookie    string          `json:"cookie"`
	Rules     []Rule          `json:"rules,omitempty"`
	Cursor    int             `json:"cursor"` // first line of what was last handed to a watch
	First     int             `json:"first"`  // first line of the latest start
	Starts    int             `json:"starts"` // more than one after a retry
	StartedAt time.Time       `json:"startedAt"`
	EndedAt   time.Time       `json:"endedAt,omitzero"`
	ExitCode  *int            `json:"exitCode,omitempty"`
	Signal    string          `json:"signal,omitempty"`
	TimedOut  bool            `json:"timedOut,omitempty"`
	ZeroBytes int64           `json:"zeroBytes,omitempty"` // of the output of the latest start; lines are without them
}

// Store keeps records over a crash of the host. Load of an unknown id is an
// error that is [fs.ErrNotExist]. Nothing here need survive a crash of the
// machine, which ends all programs anyway.
type Store interface {
	Save(ctx context.Context, r Record) error
	Load(ctx context.Context, id string) (Record, error)
	List(ctx context.Context) ([]Record, error)
	Delete(ctx context.Context, id string) error
}

// files is the default Store: one file a record, beside the spill files.
type files struct {
	dir string
	log *slog.Logger
}

// setAside is the end of the name of a file that is kept, and read no more.
const setAside = ".damaged"

// errDamaged is the cause of an error about a record that no program can read.
var errDamaged = errors.New("the record is damaged")

func (f files) path(id string) string { return filepath.Join(f.dir, id+".json") }

// Save does not sync: a record matters only while the machine is up.
func (f files) Save(_ context.Context, r Record) error {
	data, err := json.Marshal(r)
	if err != nil {
		return fmt.Errorf("save execution %q: %w", r.ID, err)
	}
	// Written beside and renamed, so a reader after a crash sees old or new.
	temp := f.path(r.ID) + ".new"
	if err := regularfile.WriteFile(temp, data, 0o600); err != nil {
		return fmt.Errorf("save execution: %w", err)
	}
	if err := os.Rename(temp, f.path(r.ID)); err != nil {
		return fmt.Errorf("save execution: %w", err)
	}
	return nil
}

// Load reads one record; an id that is none of ours is not there.
func (f files) Load(_ context.Context, id string) (Record, error) {
	var r Record
	if !validID(id) {
		return r, fmt.Errorf("load execution %q: %w", id, fs.ErrNotExist)
	}
	data, err := regularfile.Read(f.path(id), maxRecord)
	if errors.Is(err, regularfile.ErrKind) || errors.Is(err, regularfile.ErrSize) {
		err = fmt.Errorf("%w: %w", errDamaged, err)
	}
	if err != nil {
		return r, fmt.Errorf("load execution: %w", err)
	}
	// Names are exact: a tool that removes the process from a record must not miss one that counts.
	if err := strictjson.DecodeOpen(data, &r, strictjson.Unlimited()); err != nil {
		return r, fmt.Errorf("load execution %q: %w: %w", id, errDamaged, err)
	}
	if r.ID != id {
		return r, fmt.Errorf("load execution %q: %w: it has the id %.40q", id, errDamaged, r.ID)
	}
	return r, nil
}

// List returns every record that can be read. A damaged one is set aside with a warning, so that it
// keeps no host from starting.
func (f files) List(ctx context.Context) ([]Record, error) {
	entries, err := os.ReadDir(f.dir)
	if err != nil {
		return nil, fmt.Errorf("list executions: %w", err)
	}
	var list []Record
	var problems []error
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if !ok {
			continue
		}
		r, err := f.Load(ctx, id)
		if errors.Is(err, errDamaged) {
			kept := f.path(id) + setAside
			f.log.Warn("the record of an execution is damaged and was set aside: its processes, if any are left, are not ended", "execution", id,
				"file", kept, "reason", err)
			if err = os.Rename(f.path(id), kept); err == nil {
				continue
			}
		}
		if err != nil {
			problems = append(problems, err)
			continue
		}
		list = append(list, r)
	}
	return list, errors.Join(problems...)
}

// Delete forgets a record; one that is not there is forgotten already.
func (f files) Delete(_ context.Context, id string) error {
	if err := os.Remove(f.path(id)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("delete execution: %w", err)
	}
	return nil
}

// maxRecord is the largest file of a record, in bytes: its argv has what the system
// allows, 2 MiB on Linux, and escapes of it.
const maxRecord = 16 << 20

// validID holds ids to what [executionID] makes, so that none is a path.
func validID(id string) bool {
	if len(id) != 16 {
		return false
	}
	return strings.Trim(id, "0123456789abcdef") == ""
}

var _ Store = files{}
