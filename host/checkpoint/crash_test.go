//go:build unix

package checkpoint_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/checkpoint"
)

// TestMain also is the process that a crash test kills: it executes one operation, and
// kills itself when that has reached a state.
func TestMain(m *testing.M) {
	operation, state := os.Getenv("CHECKPOINT_OPERATION"), os.Getenv("CHECKPOINT_STATE")
	if operation == "" {
		os.Exit(m.Run())
	}
	opt := checkpoint.Options{Keep: 4}
	if os.Getenv("CHECKPOINT_SMALL") != "" {
		opt = smallOptions
	}
	count, _ := strconv.Atoi(os.Getenv("CHECKPOINT_COUNT")) // 0 for the first time
	opt.Dir, opt.At = os.Getenv("CHECKPOINT_DIR"), func(at string) {
		if at != state {
			return
		}
		if count--; count < 0 {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
		}
	}
	s := checkpoint.New(opt)
	if err := operate(context.Background(), s, operation, os.Getenv("CHECKPOINT_WORKSPACE")); err != nil {
		os.Stderr.WriteString(err.Error())
		os.Exit(1)
	}
	os.Exit(0)
}

func operate(ctx context.Context, s *checkpoint.Service, operation, workspace string) (err error) {
	if operation == "create" {
		_, err = s.Create(ctx, checkpoint.Request{Workspace: workspace, Of: "killed", Label: checkpoint.Begin})
		return err
	}
	if operation == "end" {
		_, err = s.Create(ctx, checkpoint.Request{Workspace: workspace, Key: "end", Of: "r1", Label: checkpoint.End})
		return err
	}
	of := os.Getenv("CHECKPOINT_OF")
	if of == "" {
		of = "r1"
	}
	r, err := s.Restore(ctx, "", workspace, of, false)
	if err == nil && !r.Success {
		err = fmt.Errorf("conflicts: %+v", r.Conflicts)
	}
	return err
}

// endID is the id of the checkpoint with the key "end".
const endID = "c-361e48d0308f"

// die executes an operation in a process that ends by SIGKILL.
func (f *folder) die(t *testing.T, dir, operation, state string, after time.Duration) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), "CHECKPOINT_OPERATION="+operation, "CHECKPOINT_STATE="+state, "CHECKPOINT_DIR="+dir, "CHECKPOINT_WORKSPACE="+f.dir)
	if after > 0 {
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(after) // any moment will do: the operation may also be over
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		return
	}
	out, err := cmd.CombinedOutput()
	exit, ok := err.(*exec.ExitError)
	if !ok || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL {
		t.Fatalf("the process was not killed: %v %s", err, out)
	}
}

// TestKilledAtEveryState kills a process at each state of an operation, executes the
// operation again in another, and checks what a run that was not killed leaves.
func TestKilledAtEveryState(t *testing.T) {
	for _, c := range []struct{ operation, state string }{
		{"end", "written"}, {"end", "referenced"}, {"end", "pruned"},
		{"restore", "written"}, {"restore", "referenced"}, {"restore", "kept"}, {"restore", "removing"}, {"restore", "aside"}, {"restore", "removed"}, {"restore", "made"},
		{"restore", "filled"}, {"restore", "exchanged"}, {"restore", "replaced"},
	} {
		if testing.Short() && !slices.Contains([]string{"pruned", "referenced", "removing", "exchanged"}, c.state) {
			continue // the short form has the states that leave a reference, and a folder in two parts
		}
		t.Run(c.operation+" "+c.state, func(t *testing.T) {
			dir := t.TempDir()
			f := newFolder(t, checkpoint.Options{Dir: dir, Keep: 4})
			f.begin()
			want := f.state()
			for range 5 { // so that there is something to prune
				f.create("", "")
			}
			f.create("r1", checkpoint.Begin)
			f.edit()
			if c.operation == "restore" {
				f.create("r1", checkpoint.End)
			}
			f.die(t, dir, c.operation, c.state, 0)
			f.s = checkpoint.New(checkpoint.Options{Dir: dir, Keep: 4})
			f.stale()
			if err := operate(t.Context(), f.s, c.operation, f.dir); err != nil {
				t.Fatal(err)
			}
			if c.operation == "end" {
				if list, err := f.s.List(t.Context(), "", f.dir, "r1"); err != nil || len(list) != 2 {
					t.Fatalf("%v %v", list, err)
				}
				if err := operate(t.Context(), f.s, "restore", f.dir); err != nil {
					t.Fatal(err)
				}
			}
			if diff := cmp.Diff(want, f.state()); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// stale puts the locks there that a killed git leaves.
func (f *folder) stale() {
	f.t.Helper()
	repositories, err := filepath.Glob(filepath.Join(f.store, "*"))
	if err != nil || len(repositories) != 1 {
		f.t.Fatal(repositories, err)
	}
	for _, name := range []string{"index.lock", "packed-refs.lock", "refs/checkpoints/" + endID + ".lock"} {
		if err := os.WriteFile(filepath.Join(repositories[0], name), nil, 0o600); err != nil {
			f.t.Fatal(err)
		}
	}
}

// TestKilledAnywhere kills checkpoints and restores of many files at random moments.
func TestKilledAnywhere(t *testing.T) {
	rounds := 12
	if testing.Short() {
		rounds = 4
	}
	dir := t.TempDir()
	f := newFolder(t, checkpoint.Options{Dir: dir})
	for i := range 1500 {
		f.put(fmt.Sprintf("d%d/f%d", i%30, i), strings.Repeat(fmt.Sprint(i), 50))
	}
	want := f.state()
	f.create("r1", checkpoint.Begin)
	for i := range 1500 {
		f.put(fmt.Sprintf("d%d/f%d", i%30, i), strings.Repeat(fmt.Sprint(-i), 60))
	}
	for round := range rounds {
		f.die(t, dir, "end", "", time.Duration(5+round*17)*time.Millisecond)
	}
	f.s = checkpoint.New(checkpoint.Options{Dir: dir})
	if err := operate(t.Context(), f.s, "end", f.dir); err != nil {
		t.Fatal(err)
	}
	for round := range rounds {
		f.die(t, dir, "restore", "", time.Duration(40+round*23)*time.Millisecond)
	}
	if err := operate(t.Context(), checkpoint.New(checkpoint.Options{Dir: dir}), "restore", f.dir); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, f.state()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestFullDisk checks that a disk without space is an error with a hint, changes no file of
// the workspace, and that there is a checkpoint again once there is space.
func TestFullDisk(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-t", "tmpfs", "-o", "size=1m,mode=700", "none", dir).CombinedOutput(); err != nil {
		t.Skipf("no file system can be mounted here: %v %s", err, out)
	}
	t.Cleanup(func() { _ = exec.Command("umount", dir).Run() })
	f := newFolder(t, checkpoint.Options{Dir: filepath.Join(dir, "checkpoints")})
	f.put("large", random(1, 2<<20))
	before := f.state()
	for range 2 {
		_, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir, Of: "r1", Label: checkpoint.Begin})
		if err == nil || !strings.Contains(err.Error(), "disk of the state folder is full") {
			t.Fatalf("%v", err)
		}
	}
	if diff := cmp.Diff(before, f.state()); diff != "" {
		t.Error(diff)
	}
	f.put("large", "small")
	want := f.state()["large"]
	f.create("r1", checkpoint.Begin)
	filler := filepath.Join(dir, "filler")
	if err := os.WriteFile(filler, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	fill(filler)
	f.put("large", random(2, 3000))
	if _, err := f.s.Create(t.Context(), checkpoint.Request{Workspace: f.dir, Of: "r1", Label: checkpoint.End}); err == nil || !strings.Contains(err.Error(), "full") {
		t.Errorf("%v", err)
	}
	if err := os.Remove(filler); err != nil {
		t.Fatal(err)
	}
	f.create("r1", checkpoint.End)
	if r := f.restore("r1", false); !r.Success || f.state()["large"] != want {
		t.Errorf("%+v %v", r, f.state())
	}
}

// fill appends to a file until its disk is full.
func fill(name string) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		return
	}
	defer file.Close()
	for size := 64 << 10; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = file.Write(make([]byte, size))
		}
	}
}
