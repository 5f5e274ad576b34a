package cli_test

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/cli"
)

// skippedBlock is the comment before a console block that is not executed, with the reason.
var skippedBlock = regexp.MustCompile(`<!-- not executed: (.+) -->\n$`)

// pluginBlock matches the commands of the section "Write your own step".
var pluginBlock = regexp.MustCompile(`^sentinel |shout/`)

// consoleCommands returns the commands of the console blocks of a page: the lines behind "$ ", with
// the texts behind <<'END'. What else is in a block is output.
func consoleCommands(t *testing.T, page string) (commands []string) {
	t.Helper()
	for {
		before, rest, found := strings.Cut(page, "```console\n")
		if !found {
			return commands
		}
		block, after, closed := strings.Cut(rest, "```\n")
		if !closed {
			t.Fatalf("a block without an end: %.200s", rest)
		}
		if reason := skippedBlock.FindStringSubmatch(before); reason != nil {
			t.Logf("a block is not executed: %s", reason[1])
		} else {
			inText := false
			for line := range strings.Lines(block) {
				command, begins := strings.CutPrefix(line, "$ ")
				switch {
				case begins:
					commands = append(commands, command)
					inText = strings.Contains(command, "<<'END'")
				case inText:
					commands[len(commands)-1] += line
					inText = line != "END\n"
				}
			}
		}
		page = after
	}
}

// TestReadme executes the console blocks of README.md in the order in which they are written, in one
// shell and an empty folder with bin and examples, as a reader does who types them one after the
// other. A command that a server has to be ready for is repeated until it succeeds. With -short no
// plugin is built.
func TestReadme(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("bash is not on this machine")
	}
	page, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	commands := consoleCommands(t, string(page))
	if len(commands) < 20 {
		t.Fatalf("%d commands: %q", len(commands), commands)
	}
	sentinel, err := exec.LookPath("sentinel")
	if err != nil {
		t.Fatal(err)
	}
	examples, err := filepath.Abs("../../examples")
	if err != nil {
		t.Fatal(err)
	}
	dir, home := t.TempDir(), t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "bin"), 0o755); err != nil {
		t.Fatal(err)
	}
	for to, from := range map[string]string{"bin/sentinel": sentinel, "examples": examples} {
		if err := os.Symlink(from, filepath.Join(dir, to)); err != nil {
			t.Fatal(err)
		}
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := free.Addr().String()
	_ = free.Close()

	var script strings.Builder
	_, noCurl := exec.LookPath("curl")
	for _, c := range commands {
		c = strings.ReplaceAll(c, "localhost:8080", address)
		line, _, _ := strings.Cut(c, " #")
		line = strings.TrimSpace(line)
		switch {
		case testing.Short() && pluginBlock.MatchString(line):
			continue
		case strings.HasPrefix(line, "curl") && noCurl != nil:
			t.Logf("SKIPPED: curl is not on this machine: %s", line)
			continue
		case strings.HasSuffix(line, "&") || strings.HasPrefix(line, "kill") || strings.Contains(line, "<<"):
			if strings.HasSuffix(line, "&") {
				script.WriteString("served=$(cat serve.log 2>/dev/null | grep -c msg=serving)\n")
			}
			fmt.Fprintf(&script, "echo %s\n%s", quoteLine("== "+line), c)
			if strings.HasSuffix(line, "&") { // a reader is slower than the server, and a command before it would have the store
				script.WriteString("n=0; until test $(cat serve.log 2>/dev/null | grep -c msg=serving) -gt $served; do n=$((n+1)); test $n -lt 600 || exit 9; sleep 0.1; done\n")
			}
		default:
			fmt.Fprintf(&script, "echo %s\nn=0; until { %s}; do n=$((n+1)); test $n -lt 150 || exit 9; sleep 0.2; done\n", quoteLine("== "+line), c)
		}
		if line == "kill -9 $!" {
			script.WriteString("wait $! 2>/dev/null || true\n")
		}
	}
	cmd := exec.Command(bash, "-c", script.String())
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "HOME="+home, "XDG_CONFIG_HOME="+home, "PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"), "SENTINEL_TRUST_ROOTS="+dir,
		"XDG_CACHE_HOME="+cacheHome, "GOCACHE="+goCache(t), "GOPROXY=off", "SENTINEL_SERVE_LISTEN="+address)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr, cmd.WaitDelay = &out, &out, 10*time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }() // the server that it leaves
	state, err := cmd.Process.Wait()
	if err != nil || !state.Success() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		t.Fatalf("%v, %v\n%s", state, err, out.String())
	}
	wants := []string{"3 of 3", "exit code 3", "a server runs here, process"}
	if !testing.Short() {
		wants = append(wants, "shout 0.1.0", "2 passed, 0 failed", `"text": "HELLO indeed!"`, "HELLO indeed!!")
	}
	for _, want := range wants {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in the output\n%s", want, out.String())
		}
	}
}

func quoteLine(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

// TestHelpExamples: the lines in the help of verbs name verbs and flags that exist.
func TestHelpExamples(t *testing.T) {
	n, problems := cli.CheckExamples(func(line string) []string {
		line, _, _ = strings.Cut(line, " #")
		var words []string
		for _, m := range regexp.MustCompile(`(?:'[^']*'|"[^"]*"|[^\s'"])+`).FindAllString(line, -1) {
			words = append(words, strings.NewReplacer("'", "", `"`, "").Replace(m))
		}
		return words
	})
	for _, problem := range problems {
		t.Error(problem)
	}
	if n < 40 {
		t.Errorf("found only %d examples", n)
	}
}

// goCache returns the build cache of the user: with an empty one, below a home or the cacheHome of tests, `go test` in
// a script compiles the standard library again, in 40 s of processor time.
func goCache(t *testing.T) string {
	t.Helper()
	cmd := exec.Command("go", "env", "GOCACHE")
	cmd.Env = append(os.Environ(), "XDG_CACHE_HOME="+userCacheHome)
	out, err := cmd.Output()
	if err != nil {
		t.Logf("no Go toolchain: what needs it is skipped: %v", err)
	}
	dir := strings.TrimSpace(string(out))
	if dir == filepath.Join(cacheHome, "go-build") {
		t.Fatalf("the build cache %s is the empty one of these tests, want that of the user", dir)
	}
	return dir
}
