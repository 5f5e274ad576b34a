package confine_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sentinel-runtime/sentinel/host/confine"
)

// TestBoundsOfCgroups finds the limits of the own cgroup and of those above it, in both versions and in containers.
func TestBoundsOfCgroups(t *testing.T) {
	for name, test := range map[string]struct {
		cgroup, mount string // AT is the folder of the test
		files         map[string]string
		want          string
	}{
		"version 2": {
			"0::/user.slice/a b\n", "30 23 0:26 / AT/cg\\040roup rw - cgroup2 cgroup2 rw\n",
			map[string]string{"cg roup/user.slice/a b": "max 7", "cg roup/user.slice": "4915 900", "cg roup": ""},
			"user.slice/pids.max 4915 900",
		},
		"version 2, limits at two levels": {
			"0::/a/b\n", "30 23 0:26 / AT/c rw - cgroup2 cgroup2 rw\n",
			map[string]string{"c/a/b": "100 10", "c/a": "2048 30"},
			"b/pids.max 100 10, a/pids.max 2048 30",
		},
		"a container with a namespace of cgroups": {
			"0::/\n", "30 23 0:26 / AT/c ro - cgroup2 cgroup rw\n",
			map[string]string{"c": "2048 12", "": "5 5"},
			"c/pids.max 2048 12",
		},
		"outside of the namespace": {
			"0::/../../x\n", "30 23 0:26 / AT/c rw - cgroup2 cgroup rw\n",
			map[string]string{"c": "64 12", "": "5 5"},
			"c/pids.max 64 12",
		},
		"version 1 in a container that shows its part": {
			"8:cpu,pids:/docker/1\n3:cpuset:/docker/1\n0::/\n", "31 2 0:27 /docker/1 AT/p rw - cgroup cgroup rw,pids,cpu\n",
			map[string]string{"p": "1024 3"},
			"p/pids.max 1024 3",
		},
		"version 1": {
			"8:pids:/a\n", "31 2 0:27 / AT/x rw - cgroup cgroup rw,cpuset\n32 2 0:28 / AT/p rw - cgroup cgroup rw,pids\n",
			map[string]string{"p/a": "700 3", "p": "max 3"},
			"a/pids.max 700 3",
		},
		"no controller": {"4:memory:/\n", "31 2 0:27 / AT/p rw - cgroup cgroup rw,memory\n", map[string]string{"p": "7 3"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			at := t.TempDir()
			write := func(path, text string) {
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			write(at+"/proc/self/cgroup", test.cgroup)
			write(at+"/proc/self/mountinfo", "20 1 0:19 / / rw - ext4 /dev/vda rw\n"+strings.ReplaceAll(test.mount, "AT", strings.ReplaceAll(at, " ", `\040`)))
			for dir, text := range test.files {
				if most, used, ok := strings.Cut(text, " "); ok {
					write(filepath.Join(at, dir, "pids.max"), most+"\n")
					write(filepath.Join(at, dir, "pids.current"), used+"\n")
				}
			}
			var got []string
			for _, b := range confine.BoundsOfCgroups(at + "/proc") {
				name, _ := filepath.Rel(filepath.Dir(filepath.Dir(b.Name)), b.Name)
				if strings.HasPrefix(b.Name, at+"/cg roup/") {
					name = strings.TrimPrefix(b.Name, at+"/cg roup/")
				}
				got = append(got, fmt.Sprintf("%s %d %d", name, b.Most, b.Used))
			}
			if strings.Join(got, ", ") != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// TestProcessesOfUser counts as the kernel does: by real user, each thread.
func TestProcessesOfUser(t *testing.T) {
	at := t.TempDir()
	for pid, text := range map[string]string{
		"1":    "Name:\tUid: 7\nUid:\t7\t0\t0\t0\nThreads:\t12\n",
		"22":   "Name:\tx\nUid:\t8\t7\t7\t7\nThreads:\t100\n",
		"300":  "Name:\tx\nUid:\t7\t7\t7\t7\nThreads:\t1\n",
		"self": "Name:\tx\nUid:\t7\t7\t7\t7\nThreads:\t1000\n",
	} {
		if err := os.MkdirAll(filepath.Join(at, pid), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(at, pid, "status"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if n := confine.ProcessesOfUser(at, 7); n != 13 {
		t.Errorf("%d, want 13", n)
	}
	if n := confine.ProcessesOfUser("/proc", os.Getuid()); n < 2 {
		t.Errorf("%d of this user", n)
	}
}

// TestPartOfProcesses: whatever commands have, the host keeps a quarter of what was left.
func TestPartOfProcesses(t *testing.T) {
	for _, most := range []uint64{30, 700, 2048, 4915, 1_000_000} {
		const used = 20
		first := confine.Part(most, used, 0)
		if want := (most - used) / 4 * 3 / 4; first != want {
			t.Errorf("of %d: %d, want %d", most, first, want)
		}
		idle, busy := uint64(0), uint64(0)
		for range 100 {
			idle += confine.Part(most, used, idle)
			busy += confine.Part(most, used+busy, busy)
		}
		if reserve := (most - used) / 4; idle > most-used-reserve || busy > most-used-reserve {
			t.Errorf("of %d: commands have %d and %d, and at least %d are of the host", most, idle, busy, reserve)
		}
	}
	if n := confine.Part(100, 200, 0); n != 0 {
		t.Errorf("%d processes where none is left", n)
	}
}

// TestProcessesAreLeft: commands leave the host processes where the user may have few.
func TestProcessesAreLeft(t *testing.T) {
	needNamespaces(t)
	var before unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_NPROC, &before); err != nil {
		t.Fatal(err)
	}
	limit := func(left uint64) {
		lower := before
		lower.Cur = confine.ProcessesOfUser("/proc", os.Getuid()) + left
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &lower); err != nil {
			t.Skip("this user may not have as many processes: ", err)
		}
	}
	t.Cleanup(func() {
		if err := unix.Setrlimit(unix.RLIMIT_NPROC, &before); err != nil {
			t.Error(err)
		}
	})
	limit(800)
	if n, by := confine.ProcessLimit(); n > 150 || n < 100 || !strings.Contains(by, "ulimit -u") {
		t.Errorf("%d processes by %q", n, by)
	}
	// Its shell waits by what needs no process.
	c := command(t, "(i=0; while [ $i -lt 1200 ]; do sleep 600 & i=$((i+1)); echo >>count; done); : >full; while :; do :; done")
	p, err := runner(t).Begin(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Stop()
	for full := false; !full; {
		select {
		case <-p.Done(): // the superuser's, which has no limit but that of the launcher
			full = true
		case <-time.After(10 * time.Millisecond):
			_, err := os.Stat(filepath.Join(c.Root, "full"))
			full = err == nil
		}
	}
	if err := exec.Command("true").Run(); err != nil {
		t.Errorf("a program of the host: %v", err)
	}
	p.Stop()
	r, err := p.Wait()
	text, readErr := os.ReadFile(filepath.Join(c.Root, "count"))
	n := len(text)
	if most := 600; err != nil || readErr != nil || n < 50 || n > most || os.Getuid() != 0 && n > 150 {
		t.Errorf("%d processes, %v %v: %s", n, err, readErr, describe(r))
	}
	limit(40)
	if r, err := runner(t).Run(t.Context(), command(t, "echo executed")); err == nil || !strings.Contains(err.Error(), "ulimit -u") {
		t.Errorf("%v %s", err, describe(r))
	}
}

// TestIDsOfProcesses: the namespace of a command has few ids, and the machine has those that it had.
func TestIDsOfProcesses(t *testing.T) {
	for release, want := range map[string]bool{
		"6.14.0": true, "6.18.44-fc": true, "7.0-rc1": true, "10.1.2": true,
		"6.13.9": false, "6.1.0-40-amd64": false, "5.15.0": false, "6": false, "": false, "x": false,
	} {
		if got := confine.HasBoundOfIDs(release); got != want {
			t.Errorf("%q: %t", release, got)
		}
	}
	needNamespaces(t)
	const file = "/proc/sys/kernel/pid_max"
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	c := command(t, "cat "+file)
	c.Limits.Processes = 77
	r := execute(t, c)
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(before) {
		t.Fatalf("the machine has %s ids, and had %s: %v", after, before, err)
	}
	var u unix.Utsname
	if err := unix.Uname(&u); err != nil {
		t.Fatal(err)
	}
	want := string(before)
	if confine.HasBoundOfIDs(unix.ByteSliceToString(u.Release[:])) {
		want = "393\n"
	}
	if string(r.Output) != want {
		t.Errorf("want %s ids: %s", want, describe(r))
	}
}

// chains starts processes that each start another and end, without end.
const chains = `h() { (h) & }; i=0; while [ $i -lt 50 ]; do (h) & i=$((i+1)); done; `

// Processes that start others without end cannot outlive their command, by a time limit or by its
// end.
func TestForksWithoutEnd(t *testing.T) {
	needNamespaces(t)
	c := command(t, chains+"sleep 600")
	c.Timeout = time.Second
	if r := execute(t, c); !r.TimedOut || r.Duration > time.Minute {
		t.Errorf("%s", describe(r))
	}
	if r := execute(t, command(t, chains+"exit 3")); r.ExitCode != 3 || r.Duration > time.Minute {
		t.Errorf("%s", describe(r))
	}
}

// What the kernel counts by user is left to the user's other programs.
func TestSignalsAreLeft(t *testing.T) {
	needNamespaces(t)
	var most unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_SIGPENDING, &most); err != nil || most.Max == unix.RLIM_INFINITY {
		t.Skip("this user may have any number of waiting signals")
	}
	c := helper(t, "waiting signals", "")
	c.Shell = fmt.Sprintf("%s='waiting signals' ./helper", helperVariable)
	r := execute(t, c)
	if n, err := strconv.ParseUint(strings.TrimSpace(string(r.Output)), 10, 64); err != nil || n == 0 || n > most.Max/8 {
		t.Errorf("%d signals wait of %d: %s", n, most.Max, describe(r))
	}
}

// A process has ended, or ends, by what the kernel says of its threads. One without memory may keep its files.
func TestProcessEnds(t *testing.T) {
	const first, exiting, second = "7 (a) b) Z 1 7 7 0 -1 4228108 0 0", "8 (a b) D 1 7 7 0 -1 4194308 0 0", "8 (a b) S 1 7 7 0 -1 4194560 0 0"
	for _, c := range []struct {
		threads []string
		ends    bool
	}{{nil, true}, {[]string{first}, true}, {[]string{first, exiting}, true}, {[]string{first, ""}, true}, {[]string{first, second}, false}} {
		dir := t.TempDir()
		for i, stat := range c.threads {
			thread := filepath.Join(dir, "task", fmt.Sprint(7+i))
			if err := os.MkdirAll(thread, 0o700); err != nil {
				t.Fatal(err)
			}
			for name, text := range map[string]string{"stat": stat, "statm": "0 0 0 0 0 0 0\n"} {
				if err := os.WriteFile(filepath.Join(thread, name), []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		}
		if ends := confine.Ends(dir); ends != c.ends {
			t.Errorf("%q: ends: %t", c.threads, ends)
		}
	}
}
