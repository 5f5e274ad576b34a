//go:build linux || darwin

package store_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/sentinel-runtime/sentinel/runtime/internal/store"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// migrationSteps are where a migration from format 0 can be interrupted.
var migrationSteps = []string{"snapshot", "mark", "commit 1", "finish"}

// formatZero creates a closed store of the format without a number.
func formatZero(t *testing.T, dir string) {
	t.Helper()
	smallStore(t, dir)
	if err := store.SetFormat(dir, 0, ""); err != nil {
		t.Fatal(err)
	}
}

// pairsOf returns the content of a store without its format.
func pairsOf(t *testing.T, file string) []string {
	t.Helper()
	pairs, lost, err := store.Walk(file)
	if err != nil || len(lost) > 0 {
		t.Fatalf("%s: %v, %v", file, lost, err)
	}
	return slices.DeleteFunc(pairs, func(p string) bool {
		return strings.HasPrefix(p, fmt.Sprintf("store %x=", "format")) || strings.HasPrefix(p, fmt.Sprintf("store %x=", "writer"))
	})
}

func formatFile(t *testing.T, dir string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, store.FormatFile))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		t.Fatal(err)
	}
	return string(text)
}

// checkMigrated opens a store that was one of format 0 and expects the content from
// before, the number, and a sound snapshot of format 0.
func checkMigrated(t *testing.T, dir string, want []string) *store.Migration {
	t.Helper()
	var log bytes.Buffer
	db, err := store.Open(t.Context(), dir, store.Options{Version: "1.2.3", Logger: slog.New(slog.NewTextHandler(&log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	m := db.Migration()
	if v, _, err := db.Get("a", []byte("k")); string(v) != "v" || err != nil {
		t.Errorf("read: %q, %v", v, err)
	}
	closeStore(t, db)
	file := filepath.Join(dir, "store.db")
	if got := pairsOf(t, file); !slices.Equal(got, want) {
		t.Errorf("the migration changed the content:\n%s\nwant\n%s", got, want)
	}
	if found, err := store.Inspect(dir); err != nil || found.Err(file) != nil || found.Format != store.Format || found.Writer != "1.2.3" {
		t.Errorf("%+v, %v", found, err)
	}
	if got, want := formatFile(t, dir), fmt.Sprintf("{\"format\":%d,\"version\":\"1.2.3\"}\n", store.Format); got != want {
		t.Errorf("format file %q, want %q", got, want)
	}
	if m != nil {
		if found, err := store.InspectFile(m.Snapshot); err != nil || found.Damaged > 0 || found.Format != m.From {
			t.Errorf("snapshot %s: %+v, %v", m.Snapshot, found, err)
		}
		if !slices.Equal(pairsOf(t, m.Snapshot), want) || !strings.Contains(log.String(), filepath.Base(m.Snapshot)) {
			t.Errorf("the snapshot has other content, or the log does not name it:\n%s", &log)
		}
	}
	return m
}

// A store without a number is migrated after a snapshot, once.
func TestMigration(t *testing.T) {
	dir := t.TempDir()
	formatZero(t, dir)
	want := pairsOf(t, filepath.Join(dir, "store.db"))
	if m := checkMigrated(t, dir, want); m == nil || m.From != 0 || m.To != store.Format {
		t.Errorf("migration %+v", m)
	}
	if m := checkMigrated(t, dir, want); m != nil {
		t.Errorf("migrated again: %+v", m)
	}
	// One that has no number may be of a newer version. A lost one is written again.
	file := filepath.Join(dir, store.FormatFile)
	for _, text := range []string{"", "{\"format\"", `{"format":1e3}`, `{"format":99999999999999999999}`, `{"format":"1"}`, `[]`, `{}`, `{"format":-1}`, `{"format":0}`, `{"format":1.5}`} {
		writeFile(t, dir, store.FormatFile, []byte(text))
		db, err := store.Open(t.Context(), dir, store.Options{Version: "1.2.3"})
		if !errors.Is(err, store.ErrFormat) || abi.As(err) == nil || !strings.Contains(err.Error(), store.FormatFile) || !strings.Contains(abi.As(err).Hint, "delete "+file) {
			t.Errorf("%q: %v", text, err)
		}
		if err == nil {
			_ = db.Close()
		}
		if _, err := store.Inspect(dir); !errors.Is(err, store.ErrFormat) {
			t.Errorf("inspect %q: %v", text, err)
		}
		if got := formatFile(t, dir); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if m := checkMigrated(t, dir, want); m != nil {
		t.Errorf("migrated again: %+v", m)
	}
}

// migrateVar is the state folder that a re-executed test binary opens until it kills
// itself at the step of migrateStepVar.
const (
	migrateVar     = "STORE_TEST_MIGRATE"
	migrateStepVar = "STORE_TEST_MIGRATE_STEP"
)

// migrateMain is the main function of the child.
func migrateMain() bool {
	dir := os.Getenv(migrateVar)
	if dir == "" {
		return false
	}
	store.OnMigration(func(step string) error {
		if step == os.Getenv(migrateStepVar) {
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {} // the signal ends the process
		}
		return nil
	})
	_, err := store.Open(context.Background(), dir, store.Options{Version: "1.2.3"})
	fmt.Println("not killed:", err)
	return true
}

// A process that is killed at any step of a migration loses nothing: the next one
// finishes it.
func TestMigrationKilled(t *testing.T) {
	for _, step := range migrationSteps {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			formatZero(t, dir)
			file := filepath.Join(dir, "store.db")
			want := pairsOf(t, file)
			for range 2 { // the second process may be killed too
				cmd := exec.Command(os.Args[0])
				cmd.Env = append(os.Environ(), migrateVar+"="+dir, migrateStepVar+"="+step)
				out, err := cmd.CombinedOutput()
				if step == "finish" && err == nil { // the first one has committed the format
					break
				}
				if err == nil {
					t.Fatalf("the child was not killed: %s", out)
				}
				if got := pairsOf(t, file); !slices.Equal(got, want) {
					t.Fatalf("content %s, want %s", got, want)
				}
			}
			checkMigrated(t, dir, want)
			snapshots, err := store.Snapshots(dir)
			if err != nil || len(snapshots) == 0 || len(snapshots) > 3 {
				t.Errorf("snapshots %v, %v", snapshots, err)
			}
		})
	}
}

// A migration that fails changes nothing, also on a full disk.
func TestMigrationFails(t *testing.T) {
	for _, step := range migrationSteps[:3] {
		t.Run(step, func(t *testing.T) {
			dir := t.TempDir()
			formatZero(t, dir)
			file := filepath.Join(dir, "store.db")
			want := pairsOf(t, file)
			restore := store.OnMigration(func(at string) error {
				if at == step {
					return syscall.ENOSPC
				}
				return nil
			})
			_, err := store.Open(t.Context(), dir, store.Options{Version: "1.2.3"})
			restore()
			var failed *store.MigrationError
			if !errors.As(err, &failed) || !store.IsFull(err) || failed.From != 0 || (failed.Snapshot == "") != (step == "snapshot") {
				t.Fatalf("error %v", err)
			}
			if found, err := store.Inspect(dir); err != nil || found.Format != 0 || found.Damaged > 0 {
				t.Errorf("%+v, %v", found, err)
			}
			if text := formatFile(t, dir); text != "" {
				t.Errorf("the folder was marked: %s", text)
			}
			checkMigrated(t, dir, want)
		})
	}
}

// The same on a file system without space.
func TestMigrationOnFullDisk(t *testing.T) {
	dir := smallDisk(t)
	formatZero(t, dir)
	want := pairsOf(t, filepath.Join(dir, "store.db"))
	free := fill(t, dir)
	_, err := store.Open(t.Context(), dir, store.Options{Version: "1.2.3"})
	var failed *store.MigrationError
	if !errors.As(err, &failed) || !store.IsFull(err) {
		t.Errorf("error %v", err)
	}
	if text := formatFile(t, dir); text != "" {
		t.Errorf("the folder was marked: %s", text)
	}
	free()
	if m := checkMigrated(t, dir, want); m == nil {
		t.Error("not migrated")
	}
}

// checkRefused expects that nothing opens, checks or changes a store of another
// format, and that the error names the version that wrote it and no damage.
func checkRefused(t *testing.T, dir string, want ...string) {
	t.Helper()
	file := filepath.Join(dir, "store.db")
	before, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	_, opened := store.Open(t.Context(), dir, store.Options{})
	_, compacted := store.Compact(context.Background(), dir, store.Options{})
	found, inspected := store.Inspect(dir)
	if inspected == nil {
		inspected = found.Err(file)
	}
	for what, err := range map[string]error{"open": opened, "compact": compacted, "inspect": inspected} {
		e := abi.As(err)
		if !errors.Is(err, store.ErrFormat) || errors.Is(err, store.ErrDamaged) || e == nil || e.Hint == "" {
			t.Errorf("%s: %v", what, err)
			continue
		}
		for _, text := range want {
			if !strings.Contains(err.Error(), text) {
				t.Errorf("%s: %q is not in %q", what, text, err)
			}
		}
	}
	if after, err := os.ReadFile(file); err != nil || !bytes.Equal(before, after) {
		t.Errorf("the file was changed, %v", err)
	}
}

// A store of a newer format is refused with the version that wrote it, also if it
// does not look sound to this version.
func TestNewerFormat(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir)
	if err := store.SetFormat(dir, 7, "9.8.7"); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, dir, "format 7", "sentinel 9.8.7", fmt.Sprintf("up to %d", store.Format))
	flip(t, filepath.Join(dir, "store.db"), "record")
	checkRefused(t, dir, "format 7", "sentinel 9.8.7")
}

// The file of the state folder refuses what this version cannot read at all.
func TestNewerFolder(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir)
	writeFile(t, dir, "store.db", []byte("a file of another kind"))
	writeFile(t, dir, store.FormatFile, []byte(`{"format":7,"version":"9.8.7","more":[1]}`))
	checkRefused(t, dir, "format 7", "sentinel 9.8.7")
	if _, err := store.HoldStore(dir); !errors.Is(err, store.ErrFormat) {
		t.Errorf("hold: %v", err)
	}
	writeFile(t, dir, store.FormatFile, []byte(`{"format":7,"version":"9.8.7","from":1}`))
	checkRefused(t, dir, "sentinel 9.8.7 began to migrate", "format 7")
}

// A store without checksums is one of an early version and not a damaged one.
func TestWithoutChecksums(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir)
	if err := store.RemoveChecksums(dir); err != nil {
		t.Fatal(err)
	}
	checkRefused(t, dir, "without checksums")
}

// A rebuilt store keeps its format, also if its number is lost.
func TestRebuildKeepsFormat(t *testing.T) {
	dir := t.TempDir()
	smallStore(t, dir)
	flip(t, filepath.Join(dir, "store.db"), "\x00\x00\x00\x00\x00\x00\x00\x01") // also other numbers
	found, err := store.Inspect(dir)
	if err != nil || found.Damaged == 0 || found.Format != store.Format {
		t.Fatalf("%+v, %v", found, err)
	}
	to := filepath.Join(t.TempDir(), "store.db")
	if _, err := store.Rebuild(t.Context(), to, store.RebuildOptions{Damaged: filepath.Join(dir, "store.db"), Format: found.Format, Choose: func(_ string, damaged []store.JournalRecord, _ bool, _ []store.JournalRecord) []store.JournalRecord {
		return damaged
	}}); err != nil {
		t.Fatal(err)
	}
	if found, err := store.InspectFile(to); err != nil || found.Damaged > 0 || found.Format != store.Format {
		t.Errorf("%+v, %v", found, err)
	}
}
