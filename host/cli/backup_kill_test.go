//go:build linux

package cli_test

import (
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// A served is a folder with a server that executes runs.
type served struct {
	t   *testing.T
	dir string
	env []string
}

// command is the program with arguments in the folder.
func (s *served) command(args ...string) *exec.Cmd {
	cmd := exec.Command("sentinel", args...)
	cmd.Dir, cmd.Env = s.dir, s.env
	return cmd
}

// must returns what the program writes to both streams.
func (s *served) must(args ...string) string {
	s.t.Helper()
	out, err := s.command(args...).CombinedOutput()
	if err != nil {
		s.t.Fatalf("sentinel %s: %v\n%s", strings.Join(args, " "), err, out)
	}
	return string(out)
}

// serve starts a server and returns when it answers.
func (s *served) serve() *exec.Cmd {
	s.t.Helper()
	log := filepath.Join(s.dir, "log.txt")
	if err := os.Remove(log); err != nil && !errors.Is(err, fs.ErrNotExist) {
		s.t.Fatal(err)
	}
	server := s.command("serve", "--listen", "127.0.0.1:0", "--no-auth", "--log-file", log)
	if err := server.Start(); err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = server.Process.Kill(); _ = server.Wait() })
	s.until("the server answers", func() bool {
		text, err := os.ReadFile(log)
		return err == nil && strings.Contains(string(text), "msg=serving")
	})
	return server
}

// until returns when a condition holds.
func (s *served) until(what string, holds func() bool) {
	s.t.Helper()
	for late := time.Now().Add(time.Minute); !holds(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(late) {
			s.t.Fatalf("never: %s", what)
		}
	}
}

// whole restores an archive: all runs are in it.
func (s *served) whole(file string) {
	s.t.Helper()
	to := s.t.TempDir()
	s.must("restore", file, to)
	list, err := runtime.StoredDefinitions(s.t.Context(), filepath.Join(to, ".sentinel", "state"))
	if err != nil || len(list) != 1 {
		s.t.Errorf("the restored store has %d definitions, %v", len(list), err)
	}
}

// killed starts a backup and kills the process that is given, or the backup itself, at a random point
// of the time that a whole one takes. It reports whether the backup was complete before.
func (s *served) killed(file string, took time.Duration, victim *exec.Cmd) (complete bool) {
	s.t.Helper()
	cmd := s.command("backup", file)
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	if victim == nil {
		victim = cmd
	}
	time.Sleep(rand.N(took * 5 / 4))
	_ = victim.Process.Kill() // it may have ended
	return cmd.Wait() == nil
}

// TestBackupKilled kills backups, and servers that are asked for one, while runs execute: the file is
// absent, the one of before, or a whole archive, the next backup is made, and the runs go on.
func TestBackupKilled(t *testing.T) {
	kills, busyRuns := 12, 30
	if testing.Short() { // each run is started by a process
		kills, busyRuns = 2, 6
	}
	s := &served{t: t, dir: project(t, `{"id": "busy", "timeoutMs": 3600000, "variables": {"n": 0}, "loop": {"type": "continuous"}, "steps": [
		{"type": "set", "values": {"n": {"expr": "$n + 1"}, "big": {"expr": "'x'.repeat(70000) + $n"}}}, {"type": "wait", "durationMs": 1000}]}`)}
	s.env = []string{"HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + cacheHome, "XDG_CONFIG_HOME=" + filepath.Join(t.TempDir(), "conf"), "SENTINEL_TRUST_ROOTS=/", "PATH=" + os.Getenv("PATH")}
	server := s.serve()
	s.must("create", "s.json")
	for range busyRuns {
		s.must("start", "busy")
	}
	target := filepath.Join(t.TempDir(), "state.tar.gz") // a folder of its own shows what is left
	began := time.Now()
	s.must("backup", target)
	took := time.Since(began)
	s.whole(target)

	for i := range kills {
		before := i%2 == 0 // there is an archive already
		if !before {
			if err := os.Remove(target); err != nil && !errors.Is(err, fs.ErrNotExist) {
				t.Fatal(err)
			}
		}
		complete := s.killed(target, took, nil)
		switch _, err := os.Stat(target); {
		case err == nil:
			s.whole(target)
		case before || complete || !errors.Is(err, fs.ErrNotExist):
			t.Fatalf("kill %d: an archive before %t, complete %t: %v", i, before, complete, err)
		}
		s.must("backup", target)
	}
	left, err := os.ReadDir(filepath.Dir(target))
	if err != nil || len(left) > kills+1 {
		t.Errorf("%d files for %d kills, %v", len(left), kills, err)
	}
	for _, f := range left {
		if name := f.Name(); name != "state.tar.gz" && !strings.HasPrefix(name, atomicfile.TempPrefix) {
			t.Errorf("%s is left", name)
		}
	}

	// The server itself dies: its clients have no archive, and the next server has the runs.
	for i := range kills / 2 {
		if err := os.Remove(target); err != nil {
			t.Fatal(err)
		}
		complete := s.killed(target, took, server)
		_ = server.Wait() // killed
		switch _, err := os.Stat(target); {
		case err == nil:
			s.whole(target)
		case complete || !errors.Is(err, fs.ErrNotExist):
			t.Fatalf("kill %d of the server: complete %t: %v", i, complete, err)
		}
		server = s.serve()
		for _, c := range s.copies() { // what ends with .tmp is removed by the next snapshot
			if filepath.Ext(c) == ".db" {
				t.Errorf("kill %d: the snapshot %s is left", i, c)
			}
		}
		s.must("backup", target)
	}
	if copies := s.copies(); len(copies) > 0 {
		t.Errorf("copies of the store are left: %q", copies)
	}
	if log := fileText(t, s.dir, "log.txt"); strings.Contains(log, "level=ERROR") {
		t.Errorf("errors of the server:\n%s", log)
	}
	active := 0
	for line := range strings.Lines(s.must("exec", "-o", "json", "sentinel/list", "--only", "runs", "--limit", "100")) {
		if strings.Contains(line, `"status": "running"`) || strings.Contains(line, `"status": "waiting"`) {
			active++
		}
	}
	if active != busyRuns {
		t.Errorf("%d runs are active, want %d", active, busyRuns)
	}
}

// copies are copies of the store in the state folder that are no store snapshots of their own.
func (s *served) copies() (found []string) {
	state := filepath.Join(s.dir, ".sentinel", "state")
	err := filepath.WalkDir(state, func(path string, d fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && !d.IsDir() && (strings.HasSuffix(path, atomicfile.TempSuffix) || strings.HasSuffix(path, ".db") && path != filepath.Join(state, "store.db")) {
			found = append(found, path)
		}
		return err
	})
	if err != nil {
		s.t.Fatal(fmt.Errorf("look at the state folder: %w", err))
	}
	return found
}

// TestBackupFullDisk makes and restores a backup on a small disk: what was there stays, nothing is left
// beside it, and the hint names the disk, which may be another one than that of the state.
func TestBackupFullDisk(t *testing.T) {
	disk := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=256k,mode=700", "none", disk).CombinedOutput(); err != nil {
		t.Skipf("cannot mount a small file system here: %v: %s", err, out)
	}
	t.Cleanup(func() {
		if out, err := exec.Command("umount", disk).CombinedOutput(); err != nil {
			t.Errorf("umount: %v: %s", err, out)
		}
	})
	// Random text is not compressed to less than the disk has.
	s := &served{t: t, dir: project(t, `{"id": "big", "steps": [{"type": "shell", "command": "head -c 600000 /dev/urandom | od -An -tx1"}]}`)}
	s.env = []string{
		"HOME=" + t.TempDir(), "XDG_CACHE_HOME=" + cacheHome, "XDG_CONFIG_HOME=" + filepath.Join(t.TempDir(), "conf"),
		"SENTINEL_TRUST_ROOTS=/", "PATH=" + os.Getenv("PATH"),
	}
	s.must("run", "s.json")
	whole := filepath.Join(t.TempDir(), "state.tar.gz")
	s.must("backup", whole)
	target := filepath.Join(disk, "state.tar.gz")
	if err := os.WriteFile(target, []byte("before"), 0o600); err != nil {
		t.Fatal(err)
	}
	for hint, args := range map[string][]string{
		"hint: free space on the disk of FILE, or name a file on another one": {"backup", target},
		"hint: free space on the disk of " + disk + " and restore again":      {"restore", whole, disk},
	} {
		out, err := s.command(args...).CombinedOutput()
		if err == nil || !strings.Contains(string(out), "no space left on device") || !strings.Contains(string(out), hint) {
			t.Errorf("sentinel %q: %v\n%s", args, err, out)
		}
	}
	if list, err := os.ReadDir(disk); err != nil || len(list) != 1 || fileText(t, disk, "state.tar.gz") != "before" {
		t.Errorf("the disk has %v, %v", list, err)
	}
}
