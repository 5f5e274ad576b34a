package secret_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// childDir names the folder in which this binary, started again, sets a secret without end.
const childDir = "SECRET_TEST_CHILD"

func TestMain(m *testing.M) {
	if dir := os.Getenv(childDir); dir != "" {
		v := secret.NewVault(filepath.Join(dir, "config.json"), nil)
		for i := 0; ; i++ {
			if err := v.Set(context.Background(), "KILLED", strings.Repeat(string(rune('a'+i%26)), 8<<10)); err != nil {
				panic(err)
			}
			fmt.Println("set")
		}
	}
	os.Exit(m.Run())
}

func vault(t *testing.T) (*secret.Vault, string, string) {
	t.Helper()
	v := secret.NewVault(filepath.Join(t.TempDir(), "sentinel", "config.json"), nil)
	values, identity := v.Files()
	return v, values, identity
}

func value(v *secret.Vault, name string) (string, error) {
	return secret.New(secret.Options{Vault: v, Getenv: func(string) string { return "" }, Redactor: new(redact.Redactor)}).Value(name)
}

func TestVault(t *testing.T) {
	v, values, identity := vault(t)
	if names, err := v.Names(); err != nil || len(names) != 0 {
		t.Errorf("empty: %q, %v", names, err)
	}
	for name, text := range map[string]string{"B": "value-of-b", "A": "value-of-a\nsecond line"} {
		if err := v.Set(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
		if got, err := value(v, name); got != text || err != nil {
			t.Errorf("%s: %q, %v", name, got, err)
		}
	}
	for _, path := range []string{values, identity} {
		text, err := os.ReadFile(path)
		info, _ := os.Stat(path)
		if err != nil || bytes.Contains(text, []byte("value-of")) || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: mode %v, %v", path, info.Mode(), err)
		}
	}
	if err := v.Set(t.Context(), "B", "another-value"); err != nil {
		t.Fatal(err)
	}
	if err := v.Remove(t.Context(), "A"); err != nil {
		t.Fatal(err)
	}
	if names, err := v.Names(); err != nil || fmt.Sprint(names) != "[B]" {
		t.Errorf("%q, %v", names, err)
	}
	if got, _ := value(v, "B"); got != "another-value" {
		t.Errorf("replaced: %q", got)
	}
	for name, text := range map[string]string{"lower": "value-of-lower", "SHORT": "1234567", "BINARY": "value\xff-of", "LONG": strings.Repeat("v", 16<<10+1)} {
		if err := v.Set(t.Context(), name, text); err == nil || strings.Contains(err.Error(), text) {
			t.Errorf("%s: %v", name, err)
		}
	}
	for _, name := range []string{"A", "NONE"} {
		if err := v.Remove(t.Context(), name); abi.CodeOf(err) != abi.NotFound {
			t.Errorf("remove %s: %v", name, err)
		}
		if _, err := value(v, name); abi.CodeOf(err) != abi.NotFound || !strings.Contains(abi.As(err).Hint, "sentinel secret set "+name) {
			t.Errorf("value of %s: %v", name, err)
		}
	}
	var none *secret.Vault
	if err := none.Set(t.Context(), "A", "value-of-a"); abi.CodeOf(err) != abi.Unavailable {
		t.Errorf("no folder: %v", err)
	}
}

// TestVaultIsRefused checks that a file that others may read, or that is damaged, gives an error
// with what to do, changes nothing, and that a plugin gets an error without a path.
func TestVaultIsRefused(t *testing.T) {
	for name, tt := range map[string]struct {
		spoil func(values, identity string) error
		want  string
	}{
		"open identity":    {func(_, identity string) error { return os.Chmod(identity, 0o644) }, "others may read or change the identity"},
		"missing identity": {func(_, identity string) error { return os.Remove(identity) }, "is missing"},
		"no identity":      {func(_, identity string) error { return os.WriteFile(identity, []byte("nothing\n"), 0o600) }, "it has no identity"},
		"folder":           {func(_, identity string) error { _ = os.Remove(identity); return os.Mkdir(identity, 0o700) }, "not a regular file"},
		"cut":              {func(values, _ string) error { return os.Truncate(values, 200) }, "it is damaged"},
		"text":             {func(values, _ string) error { return os.WriteFile(values, []byte("{}"), 0o600) }, "it is damaged"},
		"other identity": {func(values, _ string) error {
			other := secret.NewVault(filepath.Join(filepath.Dir(values), "other", "config.json"), nil)
			if err := other.Set(context.Background(), "X", "value-of-x"); err != nil {
				return err
			}
			path, _ := other.Files()
			return os.Rename(path, values)
		}, "encrypted for another identity"},
	} {
		t.Run(name, func(t *testing.T) {
			v, values, identity := vault(t)
			if err := v.Set(t.Context(), "A", "value-of-a"); err != nil {
				t.Fatal(err)
			}
			if err := tt.spoil(values, identity); err != nil {
				t.Fatal(err)
			}
			before, _ := os.ReadFile(values)
			for _, err := range []error{v.Set(t.Context(), "B", "value-of-b"), v.Remove(t.Context(), "A")} {
				if e := abi.As(err); e == nil || e.Hint == "" || !strings.Contains(e.Message, tt.want) {
					t.Errorf("%v, want %q and a hint", err, tt.want)
				}
			}
			if after, _ := os.ReadFile(values); !bytes.Equal(before, after) {
				t.Error("the file was changed")
			}
			if _, err := value(v, "A"); abi.CodeOf(err) != abi.Denied || strings.Contains(err.Error(), "secrets.") {
				t.Errorf("value: %v", err)
			}
		})
	}
}

// TestVaultWriters checks that writers of several processes lose nothing of each other.
func TestVaultWriters(t *testing.T) {
	v, values, _ := vault(t)
	errs := make(chan error)
	for i := range 8 {
		other := secret.NewVault(filepath.Join(filepath.Dir(values), "config.json"), nil)
		go func() { errs <- other.Set(t.Context(), fmt.Sprintf("S%d", i), "value-of-one") }()
	}
	for range 8 {
		if err := <-errs; err != nil {
			t.Error(err)
		}
	}
	if names, err := v.Names(); err != nil || len(names) != 8 {
		t.Errorf("%q, %v", names, err)
	}
}

// TestVaultIsKilled kills a writer at many moments: the file has a whole value, the one before or
// the one after.
func TestVaultIsKilled(t *testing.T) {
	v, values, _ := vault(t)
	if err := v.Set(t.Context(), "KEPT", "value-of-kept"); err != nil {
		t.Fatal(err)
	}
	for i := range 12 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), childDir+"="+filepath.Dir(values))
		out, err := cmd.StdoutPipe()
		if err == nil {
			err = cmd.Start()
		}
		if err != nil {
			t.Fatal(err)
		}
		if _, err := out.Read(make([]byte, 4)); err != nil { // it has written once
			t.Error(err)
		}
		time.Sleep(time.Duration(i) * 300 * time.Microsecond)
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		got, err := value(v, "KILLED")
		if err != nil || len(got) != 8<<10 || strings.Trim(got, got[:1]) != "" {
			t.Fatalf("%d bytes, %v", len(got), err)
		}
		if got, err := value(v, "KEPT"); got != "value-of-kept" {
			t.Fatalf("the other value: %q, %v", got, err)
		}
	}
	if err := v.Set(t.Context(), "AFTER", "value-of-after"); err != nil { // no lock is left
		t.Error(err)
	}
}

// TestAll checks the order of the places of values.
func TestAll(t *testing.T) {
	v, _, _ := vault(t)
	dir := t.TempDir()
	for _, name := range []string{"A", "B", "C", "D"} {
		if err := v.Set(t.Context(), name, "vault-value-"+name); err != nil {
			t.Fatal(err)
		}
		if name != "D" {
			if err := os.WriteFile(filepath.Join(dir, name), []byte("credential-"+name+"\n"), 0o440); err != nil {
				t.Fatal(err)
			}
		}
	}
	env := map[string]string{"CREDENTIALS_DIRECTORY": dir, "SENTINEL_SECRET_A": "variable-A", "SENTINEL_SECRET_B": "variable-B", "OWN": "configured-A"}
	s := secret.New(secret.Options{
		Places: secret.Places{"A": {Env: "OWN"}}, Vault: v, Redactor: new(redact.Redactor), Getenv: func(name string) string { return env[name] },
		Environ: func() []string {
			return []string{"SENTINEL_SECRET_A=variable-A", "SENTINEL_SECRET_B=variable-B", "SENTINEL_SECRET_E=", "OTHER=1"}
		},
	})
	all, err := s.All()
	want := map[string]secret.From{"A": secret.FromConfig, "B": secret.FromEnviron, "C": secret.FromCredential, "D": secret.FromVault}
	if diff := cmp.Diff(want, all); err != nil || diff != "" {
		t.Errorf("%v (-want +got):\n%s", err, diff)
	}
	for name, want := range map[string]string{"A": "configured-A", "B": "variable-B", "C": "credential-C", "D": "vault-value-D"} {
		if got, err := s.Value(name); got != want || err != nil {
			t.Errorf("%s: %q, %v, want %q", name, got, err, want)
		}
	}
	if err := os.Chmod(filepath.Join(dir, "C"), 0o444); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Value("C"); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a credential that others may read: %v", err)
	}
}

func TestAllowed(t *testing.T) {
	config, folder := filepath.Join(t.TempDir(), "sentinel", "config.json"), t.TempDir()
	a := secret.NewAllowed(config, folder, nil)
	err := a.Check("KEY", "deploy")
	if e := abi.As(err); e == nil || e.Code != abi.Denied || !strings.HasSuffix(e.Hint, "sentinel secret allow KEY deploy") {
		t.Errorf("%+v", err)
	}
	if err := a.Set(t.Context(), "KEY", []string{"release", "deploy", "deploy"}, true); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(folder, link); err != nil {
		t.Fatal(err)
	}
	if list, err := secret.NewAllowed(config, link, nil).Sentinels("KEY"); err != nil || fmt.Sprint(list) != "[deploy release]" {
		t.Errorf("%q, %v", list, err)
	}
	for _, other := range []*secret.Allowed{secret.NewAllowed(config, t.TempDir(), nil), secret.NewAllowed("", folder, nil)} {
		if err := other.Check("KEY", "deploy"); err == nil {
			t.Error("allowed elsewhere")
		}
	}
	if err := a.Set(t.Context(), "KEY", []string{"deploy"}, false); err != nil || a.Check("KEY", "deploy") == nil || a.Check("KEY", "release") != nil {
		t.Errorf("revoked: %v", err)
	}
	other := secret.NewAllowed(config, t.TempDir(), nil)
	if err := other.Set(t.Context(), "KEY", []string{"release"}, true); err != nil {
		t.Fatal(err)
	}
	if had, err := a.Revoke(t.Context()); !had || err != nil || a.Check("KEY", "release") == nil || other.Check("KEY", "release") != nil {
		t.Errorf("all of the folder revoked: %t, %v", had, err)
	}
	if had, err := a.Revoke(t.Context()); had || err != nil {
		t.Errorf("revoked again: %t, %v", had, err)
	}
	if err := os.WriteFile(filepath.Join(filepath.Dir(config), "secrets.json"), []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := a.Check("KEY", "release"); err == nil || !strings.Contains(err.Error(), "it is damaged") {
		t.Errorf("damaged: %v", err)
	}
}
