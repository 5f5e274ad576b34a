package api_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func TestTokenIsMadeOnce(t *testing.T) {
	state := t.TempDir()
	var mu sync.Mutex
	seen := map[string]bool{}
	var all sync.WaitGroup
	for range 16 {
		all.Go(func() {
			token, err := api.Token(state)
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			seen[token] = true
		})
	}
	all.Wait()
	if len(seen) != 1 {
		t.Fatalf("%d tokens were made", len(seen))
	}
	token, err := api.Token(state)
	if err != nil || !seen[token] || !strings.HasPrefix(token, "sentinel_") || len(token) < 9+43 {
		t.Errorf("token %q, %v", token, err)
	}
	info, err := os.Stat(filepath.Join(state, api.TokenName))
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("mode %v, %v", info.Mode(), err)
	}
	if left, _ := filepath.Glob(filepath.Join(state, "*.tmp")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestBadTokenFiles(t *testing.T) {
	for name, spoil := range map[string]func(file string) error{
		"readable by others": func(file string) error { return os.Chmod(file, 0o640) },
		"empty":              func(file string) error { return os.WriteFile(file, nil, 0o600) },
		"too short":          func(file string) error { return os.WriteFile(file, []byte("abc\n"), 0o600) },
		"two lines":          func(file string) error { return os.WriteFile(file, []byte(goodToken+"\n"+goodToken), 0o600) },
		"a link":             func(file string) error { return os.Rename(file, file+"x") },
		"a folder":           func(file string) error { _ = os.Remove(file); return os.Mkdir(file, 0o700) },
	} {
		state := t.TempDir()
		if _, err := api.Token(state); err != nil {
			t.Fatal(err)
		}
		file := filepath.Join(state, api.TokenName)
		if err := spoil(file); err != nil {
			t.Fatal(err)
		}
		if name == "a link" {
			if err := os.Symlink(file+"x", file); err != nil {
				t.Fatal(err)
			}
		}
		if token, err := api.Token(state); abi.CodeOf(err) != abi.Denied || abi.As(err).Hint == "" {
			t.Errorf("%s: %q, %v", name, token, err)
		}
	}
}

// A token that cannot be written does not prevent a start: no token is valid until
// there is space, and then one is made.
func TestTokenWithoutSpace(t *testing.T) {
	state := filepath.Join(t.TempDir(), "away") // stands for a disk without space
	var learned []string
	tokens, err := api.OpenTokens(state, nil, func(token string) { learned = append(learned, token) })
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	tokens.SetNow(func() time.Time { return now })
	if tokens.Valid("") || len(learned) > 0 {
		t.Error("there is a token")
	}
	if err := os.Mkdir(state, 0o700); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	tokens.Valid("x")
	token, err := os.ReadFile(filepath.Join(state, api.TokenName))
	if err != nil {
		t.Fatalf("no token was made: %v", err)
	}
	own := strings.TrimSpace(string(token))
	if !tokens.Valid(own) || len(learned) != 1 || learned[0] != own {
		t.Errorf("token %q is not good, or was not learned: %q", own, learned)
	}
}

// TestTokenOfOthers: a token that another user has put there, or can, would be known
// to that user.
func TestTokenOfOthers(t *testing.T) {
	if !trust.Supported {
		t.Skip("files have no owners and modes here")
	}
	state := t.TempDir()
	token, err := api.Token(state)
	if err != nil {
		t.Fatal(err)
	}
	tokens, err := api.OpenTokens(state, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	tokens.SetNow(func() time.Time { return now })
	check := func(what string, good bool) {
		t.Helper()
		now = now.Add(time.Second)
		if tokens.Valid(token) != good {
			t.Errorf("%s: the token is good: %v", what, !good)
		}
		_, err := api.Token(state)
		if (err == nil) != good || !good && (abi.CodeOf(err) != abi.Denied || !strings.Contains(err.Error(), "is not trusted")) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	check("as it was made", true)
	for _, mode := range []os.FileMode{0o777, 0o707} {
		if err := os.Chmod(state, mode); err != nil {
			t.Fatal(err)
		}
		check("in a folder that others may write to", false)
		if _, err := api.RotateToken(state); abi.CodeOf(err) != abi.Denied {
			t.Errorf("rotate: %v", err)
		}
	}
	trusting, err := trust.New(trust.Options{Paths: []string{state}})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := (api.TokenStore{State: state, Trust: trusting}).Token(); err != nil || got != token {
		t.Errorf("in a trusted folder: %q, %v", got, err)
	}
	if err := os.Chmod(state, 0o700); err != nil {
		t.Fatal(err)
	}
	check("mended", true)
	if os.Getuid() != 0 {
		t.Skip("only root can give files to other users")
	}
	if err := os.Chown(filepath.Join(state, api.TokenName), 54321, -1); err != nil {
		t.Fatal(err)
	}
	check("of another user", false)
}

// A rotated token is good within a second, and the old one no longer.
func TestRotate(t *testing.T) {
	state := t.TempDir()
	tokens, err := api.OpenTokens(state, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(1000, 0)
	tokens.SetNow(func() time.Time { return now })
	old, err := api.Token(state)
	if err != nil {
		t.Fatal(err)
	}
	if !tokens.Valid(old) || tokens.Valid("") || tokens.Valid(old[:len(old)-1]) || tokens.Valid(old+"x") {
		t.Error("the first token is not judged rightly")
	}
	fresh, err := api.RotateToken(state)
	if err != nil || fresh == old {
		t.Fatalf("%q, %v", fresh, err)
	}
	now = now.Add(time.Second)
	if tokens.Valid(old) || !tokens.Valid(fresh) {
		t.Error("the rotated token is not judged rightly")
	}
	if err := os.Chmod(filepath.Join(state, api.TokenName), 0o644); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Second)
	if tokens.Valid(fresh) || tokens.Valid("") {
		t.Error("a token that others can read is good")
	}
}
