//go:build linux

package supervise

import (
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"testing"

	"golang.org/x/sys/unix"
)

func TestSpecTravelsWhole(t *testing.T) {
	for _, want := range []Spec{
		{File: "/state/x.tree", Path: "/bin/sh", Dir: "/a b", Args: []string{"sh", "-c", "echo \"$1\"\n", "", "ü\xff"}, Env: []string{"A=1", "B=", "C=x\ty"}},
		{Path: "p", Args: []string{""}, Env: []string{}},
	} {
		text, err := want.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if n, err := strconv.Atoi(string(text[:lengthDigits])); err != nil || n != len(text)-lengthDigits {
			t.Errorf("the length is %q of %d", text[:lengthDigits], len(text)-lengthDigits)
		}
		got, err := decode(text[lengthDigits:])
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("got %+v, %v, want %+v", got, err, want)
		}
	}
}

func FuzzDecode(f *testing.F) {
	text, err := Spec{File: "f", Path: "p", Dir: "d", Args: []string{"a", "b"}, Env: []string{"E=1"}}.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text[lengthDigits:])
	f.Add([]byte("f\x00p\x00d\x000\x000\x00-1\x00a\x00"))
	f.Add([]byte("f\x00p\x00d\x000\x000\x009999999999\x00a\x00"))
	f.Fuzz(func(t *testing.T, body []byte) {
		s, err := decode(body)
		if err == nil && len(s.Args) == 0 {
			t.Errorf("%q: a command without a name", body)
		}
	})
}

// TestProcessesAreReadWhateverTheirName: a program may be called like the fields that
// follow its name.
func TestProcessesAreReadWhateverTheirName(t *testing.T) {
	sleep, err := exec.LookPath("sleep")
	if err != nil {
		t.Skipf("this system has no program sleep: %v", err)
	}
	program, err := os.ReadFile(sleep)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "x) Z 1 1 (y")
	if err := os.WriteFile(path, program, 0o755); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "600")
	if err := cmd.Start(); err != nil {
		t.Skipf("a copy of sleep does not start: the folder may not allow programs, or the program looks at its name: %v", err)
	}
	defer func() { _ = cmd.Wait() }()
	defer func() { _ = cmd.Process.Kill() }()
	// In a PID namespace whose session began outside of it, the session is 0.
	session, err := unix.Getsid(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	p, ok := ProcessOf(cmd.Process.Pid)
	if !ok || p.Parent != os.Getpid() || p.Gone() || p.Start == 0 || p.Session != session || p.PID != cmd.Process.Pid {
		t.Errorf("got %+v, %v, want session %d", p, ok, session)
	}
	for _, find := range []func(int) []int{childrenOf, scanChildren} {
		if list := find(os.Getpid()); !slices.Contains(list, cmd.Process.Pid) {
			t.Errorf("%d is not among the children %v", cmd.Process.Pid, list)
		}
	}
}
