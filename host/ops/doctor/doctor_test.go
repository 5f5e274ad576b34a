package doctor_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/ops/doctor"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func TestMain(m *testing.M) {
	runtime.ServeChild()
	os.Exit(m.Run())
}

// examine runs all checks and returns them by name.
func examine(t *testing.T, opt doctor.Options) map[string]doctor.Check {
	t.Helper()
	if opt.Cache == "" {
		opt.Cache = filepath.Join(t.TempDir(), "plugins")
	}
	found := map[string]doctor.Check{}
	for _, c := range doctor.Run(t.Context(), opt) {
		if c.Name == "" || c.Detail == "" || (c.Status == doctor.OK) != (c.Fix == "") {
			t.Errorf("half a finding: %+v", c)
		}
		if _, twice := found[c.Name]; twice {
			t.Errorf("%q twice", c.Name)
		}
		found[c.Name] = c
	}
	return found
}

func want(t *testing.T, found map[string]doctor.Check, name string, status doctor.Status, parts ...string) {
	t.Helper()
	c, there := found[name]
	if !there || c.Status != status {
		t.Errorf("%s: %+v, want %s", name, c, status)
	}
	for _, part := range parts {
		if !strings.Contains(c.Detail+" "+c.Fix, part) {
			t.Errorf("%s: %+v, want it to say %q", name, c, part)
		}
	}
}

// keep makes a state folder with a store in it.
func keep(t *testing.T) (state string, rt *runtime.Runtime) {
	t.Helper()
	state = t.TempDir()
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	rt, err := runtime.Open(t.Context(), runtime.Options{Dir: state})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { rt.Close() })
	for i := range 50 {
		if _, err := rt.Emit(t.Context(), sentinels.Event{Name: "e", ID: fmt.Sprint(i)}); err != nil {
			t.Fatal(err)
		}
	}
	return state, rt
}

func TestWell(t *testing.T) {
	state, rt := keep(t)
	if _, err := rt.Snapshot(t.Context(), "hourly"); err != nil {
		t.Fatal(err)
	}
	held := examine(t, doctor.Options{State: state})
	want(t, held, "store owner", doctor.OK, fmt.Sprintf("process %d", os.Getpid()))
	want(t, held, "store", doctor.OK, "not read")
	want(t, held, "store closed", doctor.OK)
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	well := func(context.Context) (string, error) { return "fine", nil }
	found := examine(t, doctor.Options{State: state, Plugins: t.TempDir(), Config: well, Model: well, Server: well})
	for _, name := range []string{"state folder", "store owner", "store closed", "store", "snapshots", "cache folder", "child processes", "clock", "shell", "configuration", "model", "server"} {
		want(t, found, name, doctor.OK)
	}
	want(t, found, "store", doctor.OK, "sound")
	want(t, found, "snapshots", doctor.OK, "1, the newest")
	for _, name := range []string{"disk", "open files", "file watches", "time zones", "git", "plugins folder"} {
		if _, there := found[name]; !there { // how they are depends on the machine
			t.Errorf("%s was not looked at", name)
		}
	}
	if len(examine(t, doctor.Options{})) < 6 {
		t.Error("without a state folder the machine is not looked at")
	}
}

// TestNamesTheLocalZone: Go calls it Local, which says nothing.
func TestNamesTheLocalZone(t *testing.T) {
	for tz, name := range map[string]string{"Europe/Berlin": "Europe/Berlin, UTC", ":/usr/share/zoneinfo/Asia/Tokyo": "Asia/Tokyo, UTC", "": "UTC"} {
		t.Setenv("TZ", tz)
		got := examine(t, doctor.Options{})["time zones"].Detail
		if strings.Contains(got, "Local") || !strings.Contains(got, name) {
			t.Errorf("TZ=%s: %s", tz, got)
		}
	}
}

func TestNothingThereYet(t *testing.T) {
	found := examine(t, doctor.Options{State: filepath.Join(t.TempDir(), "state"), Plugins: filepath.Join(t.TempDir(), "plugins")})
	for _, name := range []string{"state folder", "store", "store closed", "snapshots", "cache folder", "plugins folder"} {
		want(t, found, name, doctor.OK)
	}
}

func TestDamagedAndUnclean(t *testing.T) {
	state, rt := keep(t)
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(state, "store.open"), []byte("1 1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	found := examine(t, doctor.Options{State: state})
	want(t, found, "store closed", doctor.Warn, "without closing")
	want(t, found, "store", doctor.OK, "sound")

	file := filepath.Join(state, "store.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	clear(b[4096*2:])
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	found = examine(t, doctor.Options{State: state})
	want(t, found, "store", doctor.Fail, "damaged", "sentinel recover")
	after, err := os.ReadFile(file)
	if err != nil || string(after) != string(b) {
		t.Error("the examination changed the store")
	}
}

// A flipped bit in a value is found although every page is in order, and the
// finding names where; so is a store that is gone.
func TestFlippedAndMissing(t *testing.T) {
	state, rt := keep(t)
	if err := rt.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(state, "store.db")
	b, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(`"id":"17"`) // of an event; freed pages hold older copies
	for at := bytes.Index(b, text); at >= 0; at = bytes.Index(b, text) {
		b[at+6] ^= 1
	}
	if err := os.WriteFile(file, b, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, examine(t, doctor.Options{State: state}), "store", doctor.Fail, `table "events" key`, "checksum", "sentinel recover")
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	want(t, examine(t, doctor.Options{State: state}), "store", doctor.Fail, "missing", "blobs", "sentinel recover")
}

func TestOpenToOthers(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("modes do not restrict this user")
	}
	state, rt := keep(t)
	rt.Close()
	cache := t.TempDir()
	if err := os.Chmod(cache, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, check string }{
		{state, "state folder"}, {filepath.Join(state, "store.db"), "state folder"}, {filepath.Join(state, "blobs"), "state folder"},
		{cache, "cache folder"},
	} {
		info, err := os.Stat(c.path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(c.path, info.Mode().Perm()|0o044); err != nil {
			t.Fatal(err)
		}
		want(t, examine(t, doctor.Options{State: state, Cache: cache}), c.check, doctor.Fail, c.path, "mode")
		if err := os.Chmod(c.path, info.Mode()); err != nil {
			t.Fatal(err)
		}
	}
	plugins := t.TempDir()
	if err := os.Chmod(plugins, 0o777); err != nil {
		t.Fatal(err)
	}
	want(t, examine(t, doctor.Options{Plugins: plugins}), "plugins folder", doctor.Fail, "others may write")
	if err := os.Chmod(plugins, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(plugins, "x.wasm"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	want(t, examine(t, doctor.Options{Plugins: plugins}), "plugins folder", doctor.Fail, "x.wasm is empty")
}

// TestTrust: what the host would refuse to obey is named, with the mend.
func TestTrust(t *testing.T) {
	if !trust.Supported {
		t.Skip("files have no owners and modes here")
	}
	state, rt := keep(t)
	rt.Close()
	dir := t.TempDir()
	definition, module := filepath.Join(dir, "a.json"), filepath.Join(dir, "x.wasm")
	for _, path := range []string{definition, module} {
		if err := os.WriteFile(path, []byte("x"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	opt := doctor.Options{State: state, Plugins: dir, Obeyed: []string{definition}, Only: []string{"trust"}}
	want(t, examine(t, opt), "trust", doctor.OK, "root's alone")
	for _, path := range []string{filepath.Join(state, "store.db"), definition, module, dir} {
		info, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, info.Mode().Perm()|0o002); err != nil {
			t.Fatal(err)
		}
		want(t, examine(t, opt), "trust", doctor.Fail, path, "every user may write", "chmod go-w")
		trusting := opt
		if trusting.Trust, err = trust.New(trust.Options{Paths: []string{path}}); err != nil {
			t.Fatal(err)
		}
		want(t, examine(t, trusting), "trust", doctor.OK, "not looked at", path)
		if err := os.Chmod(path, info.Mode().Perm()); err != nil {
			t.Fatal(err)
		}
	}
}

func TestMachineNotWell(t *testing.T) {
	if os.PathSeparator != '/' {
		t.Skip("the programs are scripts")
	}
	dir := t.TempDir()
	script := func(name, body string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+body+"\n"), 0o700); err != nil {
			t.Fatal(err)
		}
		return path
	}
	found := examine(t, doctor.Options{
		Git: script("git", "echo git version 2.20.1"), Shell: script("sh", "echo ill"),
		Child:  runtime.Child{Path: script("child", "exit 3")},
		Config: func(context.Context) (string, error) { return "", errors.New("line 3: no") },
		Model: func(context.Context) (string, error) {
			return "", &abi.Error{Code: abi.NotFound, Message: "no key", Hint: "set KEY"}
		},
		Now: func() time.Time { return time.Date(1970, 1, 1, 0, 0, 0, 0, time.UTC) },
	})
	want(t, found, "git", doctor.Warn, "2.20.1", "2.31")
	want(t, found, "shell", doctor.Fail)
	want(t, found, "child processes", doctor.Fail, "slow conditions")
	want(t, found, "configuration", doctor.Fail, "line 3", "config show")
	want(t, found, "model", doctor.Fail, "no key", "set KEY")
	want(t, found, "clock", doctor.Fail, "1970")
	found = examine(t, doctor.Options{Git: filepath.Join(dir, "none"), Shell: filepath.Join(dir, "none")})
	want(t, found, "git", doctor.Warn, "install git")
	want(t, found, "shell", doctor.Fail)
}

// The clock was set back behind the store's last write.
func TestClockSetBack(t *testing.T) {
	state, rt := keep(t)
	rt.Close()
	past := time.Now().Add(-time.Hour)
	want(t, examine(t, doctor.Options{State: state, Now: func() time.Time { return past }}), "clock", doctor.Warn, "set back")
}

// A check that hangs does not keep the others.
func TestLimit(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	found := examine(t, doctor.Options{Limit: 300 * time.Millisecond, Server: func(context.Context) (string, error) {
		<-release
		return "", nil
	}})
	want(t, found, "server", doctor.Fail, "not through")
}

func TestWorst(t *testing.T) {
	list := []doctor.Check{{Status: doctor.OK}}
	for _, next := range []doctor.Status{doctor.OK, doctor.Warn, doctor.Fail, doctor.OK} {
		list = append(list, doctor.Check{Status: next})
		worst := doctor.Worst(list)
		if (len(list) < 3 && worst != doctor.OK) || (len(list) == 3 && worst != doctor.Warn) || (len(list) > 3 && worst != doctor.Fail) {
			t.Errorf("worst of %d is %s", len(list), worst)
		}
	}
}
