package bench

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// hello is the smallest sentinel that runs a guest and emits an event.
const hello = `{"name":"hello","steps":[{"type":"emit","event":"hello:said","data":"hello"}],"loop":{"type":"once"}}`

// sleeper waits for as long as its process is looked at.
const sleeper = `{"name":"sleeper","steps":[{"type":"wait","durationMs":600000}],"loop":{"type":"once"}}`

// binary returns the program to start, "" if this one is not it.
func (b *bench) binary() string {
	if b.opt.Binary != "" {
		return b.opt.Binary
	}
	self, err := os.Executable()
	if err != nil || strings.TrimSuffix(filepath.Base(self), ".exe") != "sentinel" {
		return ""
	}
	return self
}

const noBinary = "this program is not sentinel, and none was named"

// program makes a command line of the binary for a sentinel in dir.
func (b *bench) program(dir, text string) (*exec.Cmd, error) {
	file := filepath.Join(dir, "sentinel.json")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(b.ctx, b.binary(), "run", "sentinel.json", "--state", filepath.Join(dir, "state"), "-o", "jsonl")
	cmd.Dir = dir
	cmd.Env = environ(dir)
	return cmd, nil
}

// environ is the environment of a program in a folder: with a cache of its own, since the guests may be in the user's
// already, and without the settings of this machine's user.
func environ(dir string) []string {
	return append(os.Environ(), "XDG_CACHE_HOME="+filepath.Join(dir, "cache"), "XDG_CONFIG_HOME="+filepath.Join(dir, "none"), "SENTINEL_TRUST_ROOTS="+dir)
}

func (b *bench) runHello(dir string) error {
	cmd, err := b.program(dir, hello)
	if err != nil {
		return err
	}
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("%s: %w\n%s", cmd, err, bytes.TrimSpace(out))
	}
	return nil
}

// nothing is the same program doing nothing: what the system and Go take.
func (b *bench) nothing(n int) (samples, error) {
	return repeat(n, time.Millisecond, 1, func() error { return exec.CommandContext(b.ctx, b.binary(), "version").Run() })
}

const doingNothing = "the same program printing its version"

func firstStart(b *bench) (f figure, err error) {
	if b.binary() == "" {
		return skip(noBinary)
	}
	for range b.count(5) {
		dir, err := b.folder()
		if err != nil {
			return f, err
		}
		began := time.Now()
		if err := b.runHello(dir); err != nil {
			return f, err
		}
		f.samples = append(f.samples, float64(time.Since(began))/float64(time.Millisecond))
	}
	f.reference = doingNothing
	f.beside, err = b.nothing(b.count(10))
	return f, err
}

func start(b *bench) (f figure, err error) {
	if b.binary() == "" {
		return skip(noBinary)
	}
	dir, err := b.folder()
	if err != nil {
		return f, err
	}
	if f.samples, err = repeat(b.count(30), time.Millisecond, 1, func() error { return b.runHello(dir) }); err != nil {
		return f, err
	}
	f.reference = doingNothing
	f.beside, err = b.nothing(b.count(10))
	return f, err
}

// idleRun looks at a process whose one run waits, three seconds after it began to.
func idleRun(b *bench) (f figure, err error) {
	switch {
	case b.binary() == "":
		return skip(noBinary)
	case !hasProc():
		return skip(noProc)
	}
	dir, err := b.folder()
	if err != nil {
		return f, err
	}
	if err := b.runHello(dir); err != nil { // compiles, which takes memory of its own
		return f, err
	}
	cmd, err := b.program(dir, sleeper)
	if err != nil {
		return f, err
	}
	if err := cmd.Start(); err != nil {
		return f, err
	}
	defer func() {
		err = errors.Join(err, cmd.Process.Kill())
		_ = cmd.Wait() // it was killed
	}()
	if err := b.pause(3 * time.Second); err != nil {
		return f, err
	}
	held, ok := usageOf(cmd.Process.Pid)
	if !ok {
		return f, errGone
	}
	f.samples = samples{float64(held.resident) / megabyte}
	f.note = held.String()
	return f, nil
}

// idle looks at a process that serves an empty folder, once it holds the same for
// a while.
func idle(b *bench) (f figure, err error) {
	switch {
	case b.binary() == "":
		return skip(noBinary)
	case !hasProc():
		return skip(noProc)
	}
	s, err := b.serveEmpty()
	if err != nil {
		return f, err
	}
	defer s.kill()
	held, err := b.settledAt(s.pid())
	if err != nil {
		return f, err
	}
	f.samples = samples{float64(held.resident) / megabyte}
	f.note = held.String()
	return f, nil
}
