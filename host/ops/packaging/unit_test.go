package packaging_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ops/packaging"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// settings are the lines of a unit by their keys.
func settings(text string) map[string][]string {
	out := map[string][]string{}
	for _, line := range strings.Split(text, "\n") {
		if key, value, ok := strings.Cut(line, "="); ok && !strings.HasPrefix(line, "#") {
			out[key] = append(out[key], value)
		}
	}
	return out
}

// A unit says where everything is, how long the end may take, and what the
// process may write to.
func TestUnit(t *testing.T) {
	u := packaging.Unit{Program: "/usr/local/bin/sentinel", Dir: "/srv/ci/.sentinel", Workspace: "/srv/ci", Account: "ci", Drain: time.Minute}
	text, err := u.Text()
	if err != nil {
		t.Fatal(err)
	}
	got := settings(text)
	for key, want := range map[string][]string{
		"Type": {"notify"}, "ExecStart": {"/usr/local/bin/sentinel serve /srv/ci/.sentinel"}, "WorkingDirectory": {"/srv/ci"}, "User": {"ci"},
		"KillMode": {"mixed"}, "TimeoutStopSec": {"85"}, "Restart": {"on-failure"}, "ReadWritePaths": {"/srv/ci"}, "UMask": {"0077"},
		"NoNewPrivileges": {"yes"}, "ProtectSystem": {"strict"}, "PrivateTmp": {"yes"}, "CapabilityBoundingSet": {""}, "WantedBy": {"multi-user.target"}, "Delegate": {"memory pids"}, "DelegateSubgroup": {"host"},
	} {
		if !slices.Equal(got[key], want) {
			t.Errorf("%s is %q, want %q", key, got[key], want)
		}
	}
	if got["MemoryDenyWriteExecute"] != nil {
		t.Error("no plugin could be compiled")
	}
	if got["ProtectControlGroups"] != nil {
		t.Error("no confined command could have a cgroup")
	}
	// Above every group of settings stands why.
	for _, group := range regexp.MustCompile(`(?m)^(Protect\w+|Restrict\w+|Private\w+|Restart|KillMode|UMask|LockPersonality|NoNewPrivileges|CapabilityBoundingSet|LimitNOFILE|Delegate)=`).FindAllStringIndex(text, -1) {
		above := strings.Split(strings.TrimSuffix(text[:group[0]], "\n"), "\n")
		for i := len(above) - 1; !strings.HasPrefix(above[i], "# "); i-- {
			if above[i] == "" || strings.HasPrefix(above[i], "[") {
				t.Errorf("nothing says why: %s", text[group[0]:group[1]])
				break
			}
		}
	}

	u.Dir, u.State, u.Args = "/etc/sentinel", "/var/lib/sentinel", []string{"--listen", "127.0.0.1:9000"}
	if text, err = u.Text(); err != nil {
		t.Fatal(err)
	}
	got = settings(text)
	if want := "/usr/local/bin/sentinel serve /etc/sentinel --state /var/lib/sentinel --workspace /srv/ci --listen 127.0.0.1:9000"; got["ExecStart"][0] != want {
		t.Errorf("starts %q", got["ExecStart"])
	}
	if want := []string{"/srv/ci", "/etc/sentinel", "/var/lib/sentinel"}; !slices.Equal(got["ReadWritePaths"], want) {
		t.Errorf("writes to %q", got["ReadWritePaths"])
	}

	u.User = true
	if text, err = u.Text(); err != nil {
		t.Fatal(err)
	}
	got = settings(text)
	if got["User"] != nil || got["ProtectSystem"] != nil || got["WantedBy"][0] != "default.target" || got["NoNewPrivileges"][0] != "yes" {
		t.Errorf("the unit of a user is\n%s", text)
	}
}

// What a unit cannot carry is refused and not mangled.
func TestUnitRefuses(t *testing.T) {
	good := packaging.Unit{Program: "/p", Dir: "/d", Workspace: "/w", Account: "a"}
	for name, change := range map[string]func(u *packaging.Unit){
		"relative program": func(u *packaging.Unit) { u.Program = "p" },
		"no folder":        func(u *packaging.Unit) { u.Dir = "" },
		"odd program":      func(u *packaging.Unit) { u.Program = `/a"b` },
		"line end":         func(u *packaging.Unit) { u.Workspace = "/w\nExecStartPre=/bin/evil" },
		"in an argument":   func(u *packaging.Unit) { u.Args = []string{"a\rb"} },
		"in a variable":    func(u *packaging.Unit) { u.Env = []string{"A=b\nc"} },
		"no account":       func(u *packaging.Unit) { u.Account = "" },
		"odd account":      func(u *packaging.Unit) { u.Account = `a\` },
	} {
		u := good
		change(&u)
		if text, err := u.Text(); abi.CodeOf(err) != abi.BadFields {
			t.Errorf("%s: %v\n%s", name, err, text)
		}
	}
}

// A folder that ends in a backslash does not join its line with the next one.
func TestUnitLinesEnd(t *testing.T) {
	for _, user := range []bool{false, true} {
		u := packaging.Unit{Program: "/p", Dir: `/srv/d\`, Workspace: `/srv/w\`, State: `/srv/s\`, Account: "a", User: user, Records: `/srv/r\`, Args: []string{`x\`}, Env: []string{`A=b\`}}
		text, err := u.Text()
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(text) {
			if strings.HasSuffix(line, "\\\n") {
				t.Errorf("user %t: systemd joins %q with the next line", user, line)
			}
		}
		if got := settings(text); got["WorkingDirectory"][0] != `/srv/w\/` || !strings.HasSuffix(got["Description"][0], `/srv/d\/`) {
			t.Errorf("user %t:\n%s", user, text)
		}
	}
}

// systemd takes the unit, also with names that its quoting is for.
func TestUnitVerifies(t *testing.T) {
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("there is no systemd-analyze here")
	}
	program, err := exec.LookPath("true")
	if err != nil {
		t.Skip("there is no program to name")
	}
	version, err := exec.Command(analyze, "--version").Output()
	var release int
	if _, scanErr := fmt.Sscanf(string(version), "systemd %d", &release); err != nil || scanErr != nil {
		t.Fatal(err, scanErr)
	}
	for name, place := range map[string]string{"plain": "project", "odd": `a b"c'd\e$HOME%n;f#g`, "a backslash at the end": `project\`} {
		for _, user := range []bool{false, true} {
			ws := filepath.Join(t.TempDir(), place)
			if err := os.MkdirAll(filepath.Join(ws, ".sentinel"), 0o755); err != nil {
				t.Fatal(err)
			}
			odd := filepath.Join(t.TempDir(), "the $HOME 100% bin")
			if err := os.Symlink(program, odd); err != nil {
				t.Fatal(err)
			}
			u := packaging.Unit{Program: odd, Dir: filepath.Join(ws, ".sentinel"), Workspace: ws, Account: "builder", User: user,
				Env: []string{`A=$b "c" %d`}, Args: []string{"--listen", "$x"}, Records: filepath.Join(ws, "trusted")}
			text, err := u.Text()
			if err != nil {
				t.Fatal(err)
			}
			if release < 254 { // it would say that it ignores the line
				text = strings.Replace(text, "DelegateSubgroup=host\n", "", 1)
			}
			file := filepath.Join(t.TempDir(), "sentinel-test.service")
			if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			args := []string{"verify", "--man=no", "--recursive-errors=no", file}
			if user {
				args = append([]string{"--user"}, args...)
			}
			cmd := exec.Command(analyze, args...)
			cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+t.TempDir(), "SYSTEMD_LOG_LEVEL=warning")
			// It tells on other units of the machine, too.
			out, err := cmd.CombinedOutput()
			for _, line := range strings.Split(string(out), "\n") {
				if strings.Contains(line, "sentinel-test.service") {
					t.Errorf("%s, user %t: %s", name, user, line)
				}
			}
			if err != nil {
				t.Errorf("%s, user %t: %v\n%s\n%s", name, user, err, out, text)
			}
		}
	}
}
