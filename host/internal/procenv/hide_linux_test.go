package procenv_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/internal/procenv"
)

// role makes this program one of the processes of a test.
const role = "PROCENV_TEST_ROLE"

func TestMain(m *testing.M) {
	switch os.Getenv(role) {
	case "host":
		serveHost()
	case "reader":
		text, err := os.ReadFile("/proc/" + os.Getenv("PROCENV_TEST_PID") + "/environ")
		fmt.Printf("%q %v", text, err)
	default:
		os.Exit(m.Run())
	}
}

// serveHost hides its environment, prints what it can still read and runs until
// its standard input ends.
func serveHost() {
	if err := procenv.Hide(); err != nil {
		fmt.Println("error:", err)
		return
	}
	// A process that is not dumpable must still reach what the host uses.
	_, fdErr := os.Stat("/proc/self/fd/0")
	_, exeErr := os.Readlink("/proc/self/exe")
	child := exec.Command("/proc/self/exe")
	child.Env = []string{role + "=reader", "PROCENV_TEST_PID=self"}
	out, childErr := child.Output()
	fmt.Printf("%s %s %v %v %v %t\n", os.Getenv("SENTINEL_SECRET_X"), os.Getenv("PATH"), fdErr, exeErr, childErr, bytes.Contains(out, []byte("PROCENV_TEST_PID=self")))
	_, _ = io.Copy(io.Discard, os.Stdin)
}

// as makes cmd run as a user, if this process is root.
func as(cmd *exec.Cmd, user uint32) *exec.Cmd {
	if os.Getuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: user, Gid: user, NoSetGroups: false}}
	}
	return cmd
}

// startHost starts a process that hides its environment, and returns its pid.
func startHost(t *testing.T, user uint32, more ...string) int {
	t.Helper()
	host := as(exec.Command("/proc/self/exe"), user)
	host.Dir = "/"
	host.Env = append([]string{"PATH=/usr/bin:/bin", role + "=host", "SENTINEL_SECRET_X=s3cret-value", "MY_KEY=other-value", "broken-value", "MY_KEY=twice-value"}, more...)
	in, err := host.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := host.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := host.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = host.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	if want := "s3cret-value /usr/bin:/bin <nil> <nil> <nil> true\n"; err != nil || line != want {
		t.Fatalf("the process printed %q, %v, want %q", line, err, want)
	}
	return host.Process.Pid
}

// read returns what a process of a user reads of another one's environment.
func read(t *testing.T, user uint32, pid int) string {
	t.Helper()
	reader := as(exec.Command("/proc/self/exe"), user)
	reader.Dir = "/"
	reader.Env = []string{role + "=reader", "PROCENV_TEST_PID=" + strconv.Itoa(pid)}
	out, err := reader.CombinedOutput()
	if err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return string(out)
}

// TestHide reads the environment of a process as root and as its own user.
func TestHide(t *testing.T) {
	const otherUser = 65534
	for _, user := range []uint32{0, otherUser} {
		if os.Getuid() != 0 && user == 0 {
			continue // the other case is this user's own
		}
		t.Run(fmt.Sprintf("uid %d", user), func(t *testing.T) {
			pid := startHost(t, user)
			got := read(t, user, pid)
			if strings.Contains(got, "-value") {
				t.Errorf("uid %d reads %s", user, got)
			}
			if user != 0 && !strings.Contains(got, "permission denied") {
				t.Errorf("the process is dumpable: uid %d reads %s", user, got)
			}
			if user == 0 && (!strings.Contains(got, "PATH=/usr/bin:/bin") || !strings.Contains(got, "SENTINEL_SECRET_X=")) {
				t.Errorf("root cannot read the harmless variables: %s", got)
			}
		})
	}
}

// TestHideInsideAnExecution checks that the outer host can still read the cookie.
func TestHideInsideAnExecution(t *testing.T) {
	user := uint32(65534)
	got := read(t, user, startHost(t, user, "SENTINEL_COOKIE=c00kie"))
	if !strings.Contains(got, "SENTINEL_COOKIE=c00kie") || strings.Contains(got, "-value") {
		t.Error(got)
	}
}
