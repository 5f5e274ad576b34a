package packaging_test

import (
	"debug/elf"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/config"
)

// root is the folder that the image is built from.
const root = "../../.."

// instruction is one line of the Containerfile, continued ones joined.
type instruction struct{ name, rest string }

func containerfile(t *testing.T) []instruction {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	var out []instruction
	joined := ""
	for _, line := range strings.Split(string(text), "\n") {
		line = strings.TrimSpace(line)
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		if more, ok := strings.CutSuffix(line, `\`); ok {
			joined += more
			continue
		}
		name, rest, _ := strings.Cut(joined+line, " ")
		out, joined = append(out, instruction{name, strings.TrimSpace(rest)}), ""
	}
	if joined != "" || len(out) == 0 {
		t.Fatalf("the file ends within %q", joined)
	}
	return out
}

func all(list []instruction, name string) []string {
	var out []string
	for _, i := range list {
		if i.name == name {
			out = append(out, i.rest)
		}
	}
	return out
}

// exec form of an instruction.
func words(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	if err := json.Unmarshal([]byte(text[strings.Index(text, "["):]), &out); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return out
}

// What the Containerfile copies is there, and what the program is built from is
// copied; the compiler is as new as the module wants.
func TestContainerfileCopies(t *testing.T) {
	list := containerfile(t)
	var copied []string
	for _, c := range all(list, "COPY") {
		if strings.HasPrefix(c, "--from=") {
			continue
		}
		fields := strings.Fields(c)
		for _, source := range fields[:len(fields)-1] {
			if _, err := os.Stat(filepath.Join(root, source)); err != nil {
				t.Errorf("COPY %s: %v", c, err)
			}
			copied = append(copied, path.Clean(source))
		}
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if .Module}}{{if .Module.Main}}{{.Dir}}{{end}}{{end}}", "./host/cmd/sentinel")
	cmd.Dir = root
	deps, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	top, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	for _, dir := range strings.FieldsFunc(string(deps), func(r rune) bool { return r == '\n' }) { // not Fields: a path may have spaces
		rel, err := filepath.Rel(top, dir)
		if err != nil {
			t.Fatal(err)
		}
		first, _, _ := strings.Cut(filepath.ToSlash(rel), "/")
		if !slices.Contains(copied, first) {
			t.Errorf("the program needs %s, which is not copied", rel)
		}
	}
	mod, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	wanted := regexp.MustCompile(`(?m)^go 1\.(\d+)`).FindSubmatch(mod)
	given := regexp.MustCompile(`golang:1\.(\d+)`).FindStringSubmatch(strings.Join(all(list, "FROM"), " "))
	if wanted == nil || given == nil {
		t.Fatal("no version of Go is named")
	}
	need, _ := strconv.Atoi(string(wanted[1]))
	have, _ := strconv.Atoi(given[1])
	if have < need {
		t.Errorf("the image has Go 1.%d, the module wants 1.%d", have, need)
	}
}

// The image runs as an arbitrary user, and all that it sets is a setting.
func TestContainerfileSettings(t *testing.T) {
	list := containerfile(t)
	if user := all(list, "USER"); len(user) != 1 || user[0] == "root" || user[0] == "0" {
		t.Errorf("it runs as %q", user)
	}
	text, err := os.ReadFile(filepath.Join(root, "Containerfile"))
	if err != nil {
		t.Fatal(err)
	}
	// Also those of its comments, which people copy.
	named := regexp.MustCompile(`SENTINEL_[A-Z_]+=`).FindAllString(string(text), -1)
	if len(named) < 6 {
		t.Fatalf("only %q are named", named)
	}
	for _, n := range named {
		if !slices.Contains(settingNames(), strings.TrimSuffix(n, "=")) {
			t.Errorf("there is no setting for %s", n)
		}
	}
}

// The command that builds the image's program makes one that needs no library,
// knows its version, and runs a sentinel with nothing around it; what the
// image starts, it understands.
func TestContainerfileBuilds(t *testing.T) {
	if testing.Short() {
		t.Skip("the image is not built with -short: it needs a build of the program")
	}
	skipOtherBuildFlags(t)
	list := containerfile(t)
	line := ""
	for _, run := range all(list, "RUN") {
		if strings.Contains(run, "go build") {
			line = run
		}
	}
	out := t.TempDir()
	if !strings.Contains(line, "/out/sentinel") {
		t.Fatalf("nothing is built: %q", line)
	}
	build := exec.Command("sh", "-c", strings.ReplaceAll(line, "/out/", out+"/"))
	build.Dir = root
	build.Env = append(os.Environ(), "VERSION=v0.0.0-test", "TARGETOS=", "TARGETARCH=")
	if text, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", line, err, text)
	}
	program := filepath.Join(out, "sentinel")
	if runtime.GOOS == "linux" {
		static(t, program)
	}

	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "one.json"), []byte(`{"name":"one","steps":[{"type":"wait","durationMs":1}]}`), 0o644); err != nil {
		t.Fatal(err)
	}
	tell := func(args ...string) string {
		t.Helper()
		cmd := exec.Command(program, args...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/nowhere"}
		text, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%q: %v\n%s", args, err, text)
		}
		return string(text)
	}
	if got := tell("version"); !strings.HasPrefix(got, "sentinel v0.0.0-test ") {
		t.Errorf("its version is %s", got)
	}
	if got := tell("run", "one.json"); !strings.Contains(got, "completed") {
		t.Errorf("a run shows %s", got)
	}
	entry := words(t, all(list, "ENTRYPOINT")[0])
	if entry[len(entry)-1] != "sentinel" {
		t.Fatalf("it starts %q", entry)
	}
	serve := exec.Command(program, append(words(t, all(list, "CMD")[0]), "--listen", "none")...)
	serve.Dir, serve.Env = dir, []string{"PATH=/nowhere"}
	if err := serve.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- serve.Wait() }()
	defer func() { _ = serve.Process.Kill() }()
	check := words(t, all(list, "HEALTHCHECK")[0])
	if check[0] != "sentinel" {
		t.Fatalf("its health check is %q", check)
	}
	healthy := func() (string, error) {
		cmd := exec.Command(program, check[1:]...)
		cmd.Dir, cmd.Env = dir, []string{"PATH=/nowhere"}
		text, err := cmd.CombinedOutput()
		return string(text), err
	}
	for end := time.Now().Add(2 * time.Minute); ; time.Sleep(50 * time.Millisecond) {
		said, err := healthy()
		if err == nil && strings.Contains(said, "serves") {
			break
		}
		if time.Now().After(end) {
			t.Fatalf("it never got healthy: %s, %v", said, err)
		}
	}
	if err := serve.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("the server ended with %v", err)
	}
	if said, err := healthy(); err == nil {
		t.Errorf("it is healthy without a server: %s", said)
	}
}

// skipOtherBuildFlags skips the test unless everything else is compiled as the
// image compiles it: with other flags the whole program would be compiled again.
func skipOtherBuildFlags(t *testing.T) {
	t.Helper()
	out, err := exec.Command("go", "env", "CGO_ENABLED", "GOFLAGS").Output()
	if err != nil {
		t.Fatal(err)
	}
	if cgo, flags, _ := strings.Cut(string(out), "\n"); cgo != "0" || !strings.Contains(flags, "-trimpath") {
		t.Skipf("builds here have CGO_ENABLED=%s GOFLAGS=%q, other than the image's; make test has the same", cgo, strings.TrimSpace(flags))
	}
}

// static holds a program to needing no other file to start.
func static(t *testing.T, program string) {
	t.Helper()
	f, err := elf.Open(program)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			t.Error("it needs a dynamic linker")
		}
	}
	if libs, err := f.ImportedLibraries(); err == nil && len(libs) > 0 {
		t.Error(fmt.Sprint("it needs ", libs))
	}
}

// settingNames are the variables that settle something.
func settingNames() []string {
	loaded, err := config.Load(config.Options{File: "/nowhere/config.json", Getenv: func(string) string { return "" }})
	if err != nil {
		panic(err) // defaults are always in order
	}
	var out []string
	for _, s := range loaded.Settings {
		out = append(out, config.EnvName(s.Key))
	}
	return out
}
