package runtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/runtime/internal/subprocess"
)

const (
	verifyChild = "verify"         // value of the marker for the child that checks a store
	verifyReady = "ready\n"        // what the child says first
	verifyLimit = 30 * time.Second // for the child's whole life; about 30 GB in the page cache
)

// A verdict is what the child found. Damage is nil for a sound store.
type verdict struct {
	Damage *store.DamagedError `json:"damage,omitempty"`
	Error  string              `json:"error,omitempty"` // it could not be checked
}

// serveVerify is the child that lets bbolt read a whole store, which may end
// the process. The state folder comes by stdin.
func serveVerify(in io.Reader, out io.Writer) error {
	path, err := io.ReadAll(in)
	if err != nil {
		return err
	}
	if _, err := io.WriteString(out, verifyReady); err != nil {
		return err
	}
	// From here on the process may die; the parent knows by ready that it is the
	// store which did it.
	var v verdict
	if err := store.Verify(string(path)); err != nil && !errors.As(err, &v.Damage) {
		v.Error = err.Error()
	}
	return json.NewEncoder(out).Encode(v)
}

// verifyInChild lets a child check the store in a state folder. That the child
// dies of it is damage too; that it cannot be started, is killed from outside
// or takes too long says nothing about the store.
func verifyInChild(ctx context.Context, child subprocess.Command, path string) error {
	ctx, cancel := context.WithTimeout(ctx, verifyLimit)
	defer cancel()
	cmd := exec.CommandContext(ctx, child.Path, child.Args...)
	cmd.Env = append(append([]string{}, child.Env...), subprocess.Marker+"="+verifyChild)
	cmd.WaitDelay = time.Second
	abs, err := filepath.Abs(path)
	if err != nil {
		return err
	}
	// What it prints is short by nature; what it says when it dies is a dump of
	// all its goroutines, of which the first line says why.
	var out, said bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(abs), &out, &headWriter{to: &said}
	err = cmd.Run()
	answer, ready := strings.CutPrefix(out.String(), verifyReady)
	// The order matters: a child that was ended for its time has not died of the
	// store, and one that never said ready has not seen it.
	switch {
	case ctx.Err() != nil:
		return fmt.Errorf("check store in a child: not through in %s", verifyLimit)
	case !ready:
		return fmt.Errorf("check store in a child: it did not start: %w: %s", errors.Join(err, errNoChild), firstLine(said.String()))
	case err != nil && said.Len() == 0:
		return fmt.Errorf("check store in a child: it was killed from outside: %w", err) // Go never dies without output
	case err != nil:
		return &store.DamagedError{Path: filepath.Join(path, "store.db"), Count: 1, Places: []string{"reading it ends the process: " + firstLine(said.String())}}
	}
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

// errNoChild says that no child could be had.
var errNoChild = errors.New("no child process")

// headWriter keeps the beginning of what is written, 4 KiB.
type headWriter struct{ to *bytes.Buffer }

func (w *headWriter) Write(p []byte) (int, error) {
	w.to.Write(p[:min(len(p), 4096-w.to.Len())])
	return len(p), nil
}

func firstLine(s string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(s), "\n")
	return line
}

// CheckStore reads the whole store in a state folder and reports damage as
// [ErrDamaged], without changing anything. It reads the file itself first,
// which nothing in it can make dangerous; then, if a child can be started, it
// lets the database library read it there. A store that a process has open is
// [ErrHeld], a folder without one sound.
//
// One second a GB from the page cache, else what the disk takes to read it.
func CheckStore(ctx context.Context, dir string, child Child) error {
	found, err := store.Inspect(dir)
	if err != nil {
		return openError(dir, err)
	}
	if err := found.Err(filepath.Join(dir, "store.db")); err != nil {
		return openError(dir, err)
	}
	command := child.resolve()
	if found.Bytes == 0 || command.Path == "" {
		return nil
	}
	err = verifyInChild(ctx, command, dir)
	if errors.Is(err, errNoChild) {
		return nil
	}
	return openError(dir, err)
}

// isVerifyChild reports whether this process was started to check a store.
func isVerifyChild() bool { return subprocess.Kind() == verifyChild }

// openStore opens the store of the state folder. After an unclean end it is
// checked first, also in a child if there can be one.
func (rt *Runtime) openStore(ctx context.Context) (*store.DB, error) {
	opt := store.Options{Logger: rt.log}
	if child := rt.opt.Child.resolve(); child.Path != "" {
		opt.Check = func(path string) error { return verifyInChild(ctx, child, path) }
	}
	return store.Open(rt.opt.Dir, opt)
}
