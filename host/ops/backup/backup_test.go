package backup_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/ops/backup"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestMain(m *testing.M) {
	if file := os.Getenv("BACKUP_TEST_RESTORE"); file != "" {
		restoreUntilKilled(file)
		return
	}
	os.Exit(m.Run())
}

// archive returns a backup of a small project, with more files of one byte.
func archive(t *testing.T, more ...string) []byte {
	t.Helper()
	project := t.TempDir()
	for _, name := range more {
		write(t, filepath.Join(project, name), "x")
	}
	dir := filepath.Join(project, ".sentinel")
	for name, text := range map[string]string{
		".sentinel/sentinels/a.json": `{"id": "a"}`, ".sentinel/sentinels/.git/config": "[core]", ".sentinel/recipes/.git": "gitdir: ..", ".sentinel/plugins/grants.json": `{}`, ".continuum/sentinels/b.json": `{"id": "b"}`,
		".sentinel/state/shell/1.json": `{"id":"1","state":"running","bootId":"this-boot","pid":7}`, ".sentinel/state/shell/1.0.log": "printed",
		".sentinel/recipes/r.json": `{"id": "r"}`, ".sentinel/plugins/p.wasm": "module", ".sentinel/plugins/plugins.lock.json": `{}`, ".sentinel/state/logs/r1.jsonl": "{}", ".sentinel/state/audit/audit.jsonl": "{}",
		".sentinel/state/audit/audit.jsonl.20261130T225001.000000001": "{}", ".sentinel/state/files.json": "{}", ".sentinel/state/format.json": `{"format": 1}`, ".sentinel/state/shell/1.1.out": "printed",
		".sentinel/sentinels/.envrc": "obeyed", ".sentinel/sentinels/.vscode/tasks.json": "obeyed", ".sentinel/recipes/Makefile": "obeyed", ".sentinel/plugins/.mise.toml": "obeyed", ".continuum/sentinels/.mcp.json": "obeyed",
		".sentinel/state/blobs/aa/bb": "large", ".sentinel/state/token": "hunter2", ".sentinel/state/cache/x": "compiled",
		"config/config.json": `{"logs": {"level": "debug"}}`, "config/secrets.age": "encrypted", "config/secrets.key": "AGE-SECRET-KEY-1",
	} {
		write(t, filepath.Join(project, name), text)
	}
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: filepath.Join(t.TempDir(), "state")})
	if err != nil {
		t.Fatal(err)
	}
	s, err := rt.Snapshot(t.Context(), "backup")
	if err := errors.Join(err, rt.Close()); err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	err = backup.Write(t.Context(), &out, backup.Sources{
		Info: backup.Info{Version: "1.2.3", StoreFormat: runtime.StoreFormat, Taken: time.Now(), Project: project}, Dir: dir, State: filepath.Join(dir, "state"), Store: s.Path,
		Project: project, Config: filepath.Join(project, "config/config.json"), Secrets: filepath.Join(project, "config/secrets.age"),
	})
	if err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

func target(project string) backup.Target {
	return backup.Target{Dir: filepath.Join(project, ".sentinel"), Project: project}
}

// files returns the files below a folder with their content.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	found := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		rel, _ := filepath.Rel(dir, path)
		found[rel] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// A backup has what a host needs elsewhere, and nothing that belongs to this machine.
func TestRestore(t *testing.T) {
	a := archive(t)
	project := t.TempDir()
	done, err := backup.Restore(t.Context(), bytes.NewReader(a), target(project))
	if err != nil || done.Version != "1.2.3" || len(done.Beside) != 2 {
		t.Fatalf("%+v, %v", done, err)
	}
	got := files(t, project)
	for name, want := range map[string]string{
		".sentinel/sentinels/a.json": `{"id": "a"}`, ".sentinel/plugins/grants.json": `{}`, ".continuum/sentinels/b.json": `{"id": "b"}`,
		".sentinel/recipes/r.json": `{"id": "r"}`, ".sentinel/plugins/p.wasm": "module", ".sentinel/plugins/plugins.lock.json": `{}`, ".sentinel/state/logs/r1.jsonl": "{}", ".sentinel/state/audit/audit.jsonl": "{}",
		".sentinel/state/audit/audit.jsonl.20261130T225001.000000001": "{}", ".sentinel/state/files.json": "{}", ".sentinel/state/format.json": `{"format": 1}`, ".sentinel/state/shell/1.1.out": "printed",
		".sentinel/state/shell/1.0.log": "printed", ".sentinel/state/blobs/aa/bb": "large", ".sentinel/state/restored/config.json": `{"logs": {"level": "debug"}}`, ".sentinel/state/restored/secrets.age": "encrypted",
	} {
		if got[name] != want {
			t.Errorf("%s: %q, want %q", name, got[name], want)
		}
	}
	if text := got[".sentinel/state/shell/1.json"]; text != `{"id":"1","state":"lost"}` {
		t.Errorf("record of an execution: %s", text)
	}
	for name, text := range got {
		if strings.Contains(text, "hunter2") || strings.Contains(text, "AGE-SECRET-KEY") || strings.Contains(text, "obeyed") || strings.Contains(name, "cache") {
			t.Errorf("%s must not be in a backup", name)
		}
	}
	// The folder is not empty any more.
	if _, err := backup.Restore(t.Context(), bytes.NewReader(a), target(project)); abi.CodeOf(err) != abi.Conflict {
		t.Errorf("a second restore: %v", err)
	}
	// Definitions of the project are never replaced.
	other := t.TempDir()
	write(t, filepath.Join(other, ".continuum/sentinels/b.json"), `{}`)
	if done, err = backup.Restore(t.Context(), bytes.NewReader(a), target(other)); err != nil || len(done.Beside) != 3 {
		t.Fatalf("%+v, %v", done, err)
	}
	if got := files(t, other); got[".continuum/sentinels/b.json"] != `{}` || got[".sentinel/state/restored/sentinels/b.json"] != `{"id": "b"}` {
		t.Errorf("definition %q beside %q", got[".continuum/sentinels/b.json"], done.Beside)
	}
	// A definition does not take the place of the configuration that is kept.
	named := t.TempDir()
	write(t, filepath.Join(named, ".continuum/sentinels/config.json"), `{}`)
	b := archive(t, ".continuum/sentinels/config.json")
	if _, err = backup.Restore(t.Context(), bytes.NewReader(b), target(named)); err != nil {
		t.Fatal(err)
	}
	if got := files(t, named); got[".sentinel/state/restored/config.json"] != `{"logs": {"level": "debug"}}` || got[".sentinel/state/restored/sentinels/config.json"] != "x" {
		t.Errorf("a definition that is called as the configuration: %q", got[".sentinel/state/restored/config.json"])
	}
	// A link could lead anywhere.
	linked, outside := t.TempDir(), t.TempDir()
	if err := errors.Join(os.Mkdir(filepath.Join(linked, ".continuum"), 0o700), os.Symlink(outside, filepath.Join(linked, ".continuum", "sentinels"))); err != nil {
		t.Fatal(err)
	}
	if _, err = backup.Restore(t.Context(), bytes.NewReader(a), target(linked)); abi.CodeOf(err) != abi.Conflict || len(files(t, outside)) > 0 {
		t.Errorf("through a link: %v, %v", err, files(t, outside))
	}
}

// TestRestoreKeepsFreeSpace: an archive is not unpacked beyond the space that has to stay free.
func TestRestoreKeepsFreeSpace(t *testing.T) {
	zeros := strings.Repeat("\x00", 40<<20)
	a := rewrite(t, archive(t), func(h *tar.Header, text []byte) []byte {
		if strings.HasSuffix(h.Name, "store.db") {
			return []byte(zeros)
		}
		return text
	})
	to := target(t.TempDir())
	to.MinFree = 1 << 60
	_, err := backup.Restore(t.Context(), bytes.NewReader(a), to)
	if abi.CodeOf(err) != abi.Unavailable || !strings.Contains(err.Error(), "must stay free") {
		t.Errorf("%v", err)
	}
	if got := files(t, to.Project); len(got) > 0 {
		t.Errorf("left %d files", len(got))
	}
}

// TestRestoreCountsFiles: files of a byte take more than that of the space.
func TestRestoreCountsFiles(t *testing.T) {
	var more []string
	for i := range 5000 {
		more = append(more, fmt.Sprintf(".sentinel/state/logs/%d.jsonl", i))
	}
	to := target(t.TempDir())
	to.MinFree = 1 << 60
	if _, err := backup.Restore(t.Context(), bytes.NewReader(archive(t, more...)), to); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("%v", err)
	}
}

// restored returns the files of an archive, restored into a folder.
func restored(t *testing.T, a []byte) map[string]string {
	t.Helper()
	project := t.TempDir()
	if _, err := backup.Restore(t.Context(), bytes.NewReader(a), target(project)); err != nil {
		t.Fatal(err)
	}
	return files(t, project)
}

// An archive that is cut or changed at any place restores nothing.
func TestDamagedArchive(t *testing.T) {
	a := archive(t)
	whole := restored(t, a)
	for i := range 40 {
		at := len(a) * i / 40
		flipped := bytes.Clone(a)
		flipped[at] ^= 0x10
		for what, text := range map[string][]byte{"cut": a[:at], "flipped": flipped} {
			project := t.TempDir()
			_, err := backup.Restore(t.Context(), bytes.NewReader(text), target(project))
			if err == nil && what == "flipped" && at < 10 {
				continue // the time and the system in the header of gzip
			}
			if got := files(t, project); err == nil && what == "flipped" && maps.Equal(got, whole) {
				continue // bits that fill a byte
			}
			if got := files(t, project); err == nil || len(got) > 0 {
				t.Errorf("%s at byte %d of %d: %v, left %d files", what, at, len(a), err, len(got))
			}
		}
	}
}

// rewrite returns an archive with other entries.
func rewrite(t *testing.T, a []byte, change func(h *tar.Header, text []byte) []byte) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(a))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	zw := gzip.NewWriter(&out)
	tw := tar.NewWriter(zw)
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(r)
		if err != nil {
			t.Fatal(err)
		}
		text = change(h, text)
		if h.Size = int64(len(text)); h.Typeflag != tar.TypeReg {
			h.Size, text = 0, nil
		}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := tw.Write(text); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// Names that leave the folder, links, other content and newer formats are refused.
func TestForeignArchive(t *testing.T) {
	a := archive(t)
	const blob = "sentinel/state/blobs/aa/bb"
	for what, change := range map[string]func(h *tar.Header, text []byte) []byte{
		"leaves the folder": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Name = "sentinel/../../outside"
			}
			return text
		},
		"absolute": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Name = "/tmp/outside"
			}
			return text
		},
		"a token": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Name = "sentinel/state/token"
			}
			return text
		},
		"a file of the project that is not a definition": func(h *tar.Header, text []byte) []byte {
			if h.Name == "continuum/b.json" {
				h.Name = "continuum/authorized_keys"
			}
			return text
		},
		"a list of processes": func(h *tar.Header, text []byte) []byte {
			if h.Name == "sentinel/state/shell/1.0.log" {
				h.Name = "sentinel/state/shell/1.Tree"
			}
			return text
		},
		"a git repository": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Name = "sentinel/sentinels/.Git/config"
			}
			return text
		},
		"a bare git repository": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Name = "sentinel/sentinels/Head"
			}
			return text
		},
		"link": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Typeflag, h.Linkname = tar.TypeSymlink, "/etc/passwd"
			}
			return text
		},
		"changed": func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				return []byte("other")
			}
			return text
		},
		"newer": func(h *tar.Header, text []byte) []byte {
			if h.Name == backup.InfoName {
				return bytes.Replace(text, []byte(`"format": 1`), []byte(`"format": 9`), 1)
			}
			return text
		},
	} {
		project := t.TempDir()
		_, err := backup.Restore(t.Context(), bytes.NewReader(rewrite(t, a, change)), target(project))
		if got := files(t, project); err == nil || len(got) > 0 {
			t.Errorf("%s: %v, left %v", what, err, got)
		}
		if what == "newer" && (err == nil || !strings.Contains(err.Error(), "1.2.3")) {
			t.Errorf("%s: %v does not name the version", what, err)
		}
	}
	for _, name := range []string{ // the folder, an extension that is not its own, or a name that programs obey
		"sentinel/sentinels/.hg/hgrc", "sentinel/sentinels/.envrc", "sentinel/sentinels/.vscode/tasks.json", "sentinel/sentinels/.mcp.json", "sentinel/sentinels/sub/b.json", "sentinel/sentinels/Makefile",
		"sentinel/recipes/Makefile", "sentinel/recipes/p.wasm", "sentinel/plugins/.mise.toml", "sentinel/plugins/package.json", "sentinel/plugins/sub/p.wasm", "sentinel/sentinels/.json",
		"sentinel/state/logs/.envrc", "sentinel/state/logs/sub/r1.jsonl", "sentinel/state/audit/.hg/hgrc", "sentinel/state/blobs/aa/.envrc", "sentinel/state/blobs/tmp/aa", "sentinel/state/blobs/Makefile",
		"sentinel/state/shell/Makefile", "sentinel/state/files.json/.envrc", "sentinel/Makefile", "sentinel/config.json", "continuum/.mcp.json", "config/.envrc",
	} {
		project := t.TempDir()
		_, err := backup.Restore(t.Context(), bytes.NewReader(rewrite(t, a, func(h *tar.Header, text []byte) []byte {
			if h.Name == blob {
				h.Name = name
			}
			return bytes.Replace(text, []byte(`"`+blob+`"`), []byte(`"`+name+`"`), 1) // in the list of files
		})), target(project))
		if got := files(t, project); abi.CodeOf(err) != abi.BadFields || !strings.Contains(err.Error(), fmt.Sprintf("an entry that no backup has: %q", name)) || len(got) > 0 {
			t.Errorf("%s: %v, left %v", name, err, got)
		}
	}
	project := t.TempDir()
	_, err := backup.Restore(t.Context(), bytes.NewReader(rewrite(t, a, func(h *tar.Header, text []byte) []byte {
		if h.Name == "sentinel/sentinels/a.json" {
			h.Name = "sentinel/.gitignore" // in backups by earlier versions
		}
		return bytes.Replace(text, []byte(`"sentinel/sentinels/a.json"`), []byte(`"sentinel/.gitignore"`), 1) // in the list of files
	})), target(project))
	if got := files(t, project); err != nil || len(got) == 0 || strings.Contains(fmt.Sprint(got), "gitignore") {
		t.Errorf("what git leaves out: %v, %v", got, err)
	}
	if _, err := backup.Restore(t.Context(), strings.NewReader("no archive"), target(t.TempDir())); abi.CodeOf(err) != abi.BadFields {
		t.Errorf("a text: %v", err)
	}
}

// TestRestoredExecutionsHaveNoProcess: of the record of an execution in a foreign archive, no process is
// left, however its members are spelled.
func TestRestoredExecutionsHaveNoProcess(t *testing.T) {
	a := archive(t)
	digest := func(text []byte) string { return fmt.Sprintf("%x", sha256.Sum256(text)) }
	for record, want := range map[string]string{
		`{"id":"1","state":"running","bootId":"","bootid":"b","PID":7,"startTime":1,"cookie":"c"}`: `{"id":"1","state":"lost"}`,
		`{"id":"1","state":"ended","STATE":"running","boot\u0049D":"b","pid":7}`:                   `{"id":"1","state":"ended"}`,
		`{"id":"1","ſtate":"running","State":"ended","bootID":"b"}`:                                `{"id":"1","state":"lost"}`,
		`null`:        `{}`,
		`[{"pid":7}]`: `{}`,
	} {
		project, before := t.TempDir(), ""
		_, err := backup.Restore(t.Context(), bytes.NewReader(rewrite(t, a, func(h *tar.Header, text []byte) []byte {
			switch h.Name {
			case "sentinel/state/shell/1.json":
				before = digest(text)
				return []byte(record)
			case "files.json":
				return bytes.Replace(text, []byte(before), []byte(digest([]byte(record))), 1)
			}
			return text
		})), target(project))
		if got := files(t, project)[".sentinel/state/shell/1.json"]; err != nil || got != want {
			t.Errorf("%s: %s, %v; want %s", record, got, err, want)
		}
	}
}

// restoreUntilKilled restores a file and kills this process after some bytes.
func restoreUntilKilled(file string) {
	text, err := os.ReadFile(file)
	n, atErr := strconv.Atoi(os.Getenv("BACKUP_TEST_KILL"))
	if err = errors.Join(err, atErr); err == nil {
		_, err = backup.Restore(context.Background(), io.MultiReader(bytes.NewReader(text[:n]), killer{}, bytes.NewReader(text[n:])), target(os.Getenv("BACKUP_TEST_PROJECT")))
	}
	fmt.Println("not killed:", err)
}

type killer struct{}

func (killer) Read([]byte) (int, error) {
	p, err := os.FindProcess(os.Getpid())
	if err == nil {
		err = p.Kill()
	}
	if err != nil {
		return 0, err
	}
	select {} // the signal ends the process
}

// A restore that is killed leaves no folder that a host would open, and the next one says
// what was left.
func TestRestoreKilled(t *testing.T) {
	a := archive(t)
	file := filepath.Join(t.TempDir(), "a.tar.gz")
	write(t, file, string(a))
	for _, at := range []int{20, len(a) / 3, len(a) - 30, len(a)} {
		project := t.TempDir()
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "BACKUP_TEST_RESTORE="+file, "BACKUP_TEST_PROJECT="+project, "BACKUP_TEST_KILL="+strconv.Itoa(at))
		out, err := cmd.CombinedOutput()
		to := target(project)
		if _, statErr := os.Stat(to.Dir); err == nil && !strings.Contains(string(out), "not killed: <nil>") || err != nil && !errors.Is(statErr, os.ErrNotExist) {
			t.Fatalf("killed at %d: %v %s, folder %v", at, err, out, statErr)
		}
		if err == nil {
			continue // everything was read before
		}
		_, err = backup.Restore(t.Context(), bytes.NewReader(a), to)
		if abi.CodeOf(err) != abi.Conflict || !strings.Contains(err.Error(), "interrupted") {
			t.Fatalf("after a kill at %d: %v", at, err)
		}
		if err := os.RemoveAll(to.Dir + ".restoring"); err != nil {
			t.Fatal(err)
		}
		if _, err := backup.Restore(t.Context(), bytes.NewReader(a), to); err != nil {
			t.Errorf("again: %v", err)
		}
	}
}
