package statefolder

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

const (
	childKind   = "verify"  // value of the marker for the child that checks a store
	childReady  = "ready\n" // the first output of the child
	childStderr = 4 << 10   // bytes of its error output that are kept

	// childTimeout is for the child's whole life: a damaged store can make it read
	// for ever. It is no setting: the first check has just read the file into the
	// page cache, from where the child reads 30 GB in this time.
	childTimeout = 30 * time.Second
)

// Open opens the store in the folder dir, or creates it. After an unclean shutdown
// the store is checked first, also in a child if child has a path. The error is in
// the form of [Error].
func Open(ctx context.Context, dir string, child subprocess.Command, log *slog.Logger) (*store.DB, error) {
	opt := store.Options{Logger: log}
	if child.Path != "" {
		opt.Check = func(path string) error { return verifyInChild(ctx, child, path) }
	}
	db, err := store.Open(dir, opt)
	if err != nil {
		return nil, Error(dir, err)
	}
	return db, nil
}

// Check reads the whole store in the folder dir and changes nothing. Damage is an
// error that matches [store.ErrDamaged], a store that a process has open one that
// matches [ErrHeld]. A folder without a store is sound. Without a path in child
// the database library does not read the store. It takes one second a GB from the
// page cache.
func Check(ctx context.Context, dir string, child subprocess.Command) error {
	found, err := store.Inspect(dir)
	if err != nil {
		return Error(dir, err)
	}
	if err := found.Err(filepath.Join(dir, "store.db")); err != nil {
		return Error(dir, err)
	}
	if found.Bytes == 0 || child.Path == "" {
		return nil
	}
	err = verifyInChild(ctx, child, dir)
	if errors.Is(err, errNoChild) {
		return nil
	}
	return Error(dir, err)
}

// CheckChild starts a child once and ends it. The error has the code unavailable
// if no child can be started.
func CheckChild(ctx context.Context, child subprocess.Command) error {
	if child.Path == "" {
		return &abi.Error{Code: abi.Unavailable, Message: "no child process can be started: this program's main does not begin with runtime.ServeChild"}
	}
	dir, err := os.MkdirTemp("", "sentinel-child-")
	if err != nil {
		return fmt.Errorf("check child: %w", err)
	}
	defer os.RemoveAll(dir)
	// An empty folder is sound, so any error is the child's.
	if err := verifyInChild(ctx, child, dir); err != nil {
		return &abi.Error{Code: abi.Unavailable, Message: err.Error()}
	}
	return nil
}

// A verdict is the result of the child.
type verdict struct {
	Damage *store.DamagedError `json:"damage,omitempty"` // nil for a sound store
	Error  string              `json:"error,omitempty"`  // the store could not be checked
}

// ServeChild checks a store for the parent process, if this process was started
// for that; handled reports whether it was. It must be called before anything
// else. It exits with status 2 if it cannot read its input or write its output.
func ServeChild() (handled bool) {
	if subprocess.Kind() != childKind {
		return false
	}
	if err := verify(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintf(os.Stderr, "serve child %q: %v\n", childKind, err)
		os.Exit(2)
	}
	return true
}

// verify checks the store in the folder whose path it reads from in. The database
// library may end the process.
func verify(in io.Reader, out io.Writer) error {
	path, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	// If the process ends after this line, the parent knows that the store is the
	// cause.
	if _, err := io.WriteString(out, childReady); err != nil {
		return err
	}
	var v verdict
	if err := store.Verify(string(path)); err != nil && !errors.As(err, &v.Damage) {
		v.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(v)
}

// errNoChild means that no child could be started.
var errNoChild = errors.New("no child process")

// verifyInChild checks the store in the folder path in a child. If reading the
// store ends the child, the store is damaged. If the child cannot be started, is
// killed or exceeds its time, the result is an error that says nothing about the
// store.
func verifyInChild(ctx context.Context, child subprocess.Command, path string) error {
	ctx, cancel := context.WithTimeout(ctx, childTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, child.Path, child.Args...)
	cmd.Env = append(append([]string{}, child.Env...), subprocess.Marker+"="+childKind)
	cmd.WaitDelay = time.Second
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	// The output is short. The error output of a crash is a dump of all goroutines,
	// and its first line has the reason.
	var out, errOut bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(abs), &out, &headWriter{to: &errOut}
	err = cmd.Run()
	answer, ready := strings.CutPrefix(out.String(), childReady)
	// The order matters: a child that exceeded its time was not ended by the store,
	// and one without a ready line has not read it.
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("check store in a child: it did not end within %s", childTimeout)
	case !ready:
		return fmt.Errorf("check store in a child: it did not start: %w: %s", errors.Join(err, errNoChild), firstLine(errOut.String()))
	case err != nil && errOut.Len() == 0:
		return fmt.Errorf("check store in a child: it was killed from outside: %w", err) // a crash of Go has output
	case err != nil:
		return &store.DamagedError{Path: filepath.Join(path, "store.db"), Count: 1, Places: []string{"reading it ends the process: " + firstLine(errOut.String())}}
	}
	return readVerdict(answer)
}

func readVerdict(answer string) error {
	var v verdict
	if err := json.Unmarshal([]byte(answer), &v); err != nil {
		return fmt.Errorf("check store in a child: %w", err)
	}
	switch {
	case v.Damage != nil:
		return v.Damage
	case v.Error != "":
		return fmt.Errorf("check store in a child: %s", v.Error)
	}
	return nil
}

// headWriter keeps the beginning of what is written.
type headWriter struct{ to *bytes.Buffer }

func (w *headWriter) Write(p []byte) (int, error) {
	w.to.Write(p[:min(len(p), childStderr-w.to.Len())])
	return len(p), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}
