package api

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TokenName is the file in the state folder that holds the token.
const TokenName = "token"

// tokenBytes is how much chance a token is made of.
const tokenBytes = 32

// tokenPrefix lets people and scanners of leaked secrets know one.
const tokenPrefix = "sentinel_"

// validToken is what we make: it needs no quoting in headers, shells and
// subprotocols.
var validToken = lazyregexp.New(`^[A-Za-z0-9_-]{32,256}$`)

// Tokens says which bearer tokens are good. It takes the same time for every
// wrong one and is safe for concurrent use.
type Tokens interface {
	Valid(token string) bool
}

// TokenStore is the file with the token of a state folder.
type TokenStore struct {
	State string
	// Trust decides whether the folder and the file are obeyed. Default: they have to
	// be the user's or root's alone.
	Trust *trust.Policy
}

// Token returns the token of a state folder that is this user's or root's alone; see
// [TokenStore.Token].
func Token(state string) (string, error) { return TokenStore{State: state}.Token() }

// RotateToken replaces the token of such a folder; see [TokenStore.Rotate].
func RotateToken(state string) (string, error) { return TokenStore{State: state}.Rotate() }

// Token returns the token and makes one if there is none. A file that others may read
// or could have put there is refused: a client with the token may run commands.
func (s TokenStore) Token() (string, error) {
	token, err := s.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	temp, err := newToken(s.State)
	if err != nil {
		return "", err
	}
	defer os.Remove(temp)
	// A link does not replace, so of two processes that make one at the same
	// time both return the same.
	if err := os.Link(temp, filepath.Join(s.State, TokenName)); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("make token: %w", err)
	}
	return s.read()
}

// Rotate puts a new token in the place of the old one, which is good for a second
// longer at most.
func (s TokenStore) Rotate() (string, error) {
	if err := s.Trust.Check(s.State); err != nil {
		return "", rotateError(err)
	}
	temp, err := newToken(s.State)
	if err != nil {
		return "", err
	}
	if err := os.Rename(temp, filepath.Join(s.State, TokenName)); err != nil {
		return "", errors.Join(rotateError(err), os.Remove(temp))
	}
	return s.read()
}

func rotateError(err error) error { return fmt.Errorf("rotate token: %w", err) }

// newToken writes a token to a file beside its place.
func newToken(state string) (temp string, err error) {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret)                           // never fails: the program ends instead
	f, err := os.CreateTemp(state, TokenName+".*.tmp") // mode 0600
	if err != nil {
		return "", fmt.Errorf("make token: %w", err)
	}
	_, err = f.WriteString(tokenPrefix + base64.RawURLEncoding.EncodeToString(secret) + "\n")
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return "", errors.Join(fmt.Errorf("make token: %w", err), os.Remove(f.Name()))
	}
	return f.Name(), nil
}

// read reads the token.
func (s TokenStore) read() (string, error) {
	name := filepath.Join(s.State, TokenName)
	info, err := os.Lstat(name)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	// On Windows the folder's access list guards the file; its mode says nothing.
	others := info.Mode().Perm()&0o077 != 0 && stdruntime.GOOS != "windows"
	if !info.Mode().IsRegular() || others {
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("read token: %q has mode %v, others must not read it", name, info.Mode()),
			Hint: "make a new one with `sentinel token --rotate`: the old one may be known to others"}
	}
	// Between the look and the opening the file may have been swapped; only one
	// that is the same was judged.
	f, opened, err := s.Trust.Open(name)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer f.Close()
	if !os.SameFile(info, opened) {
		return "", fmt.Errorf("read token: %q changed meanwhile", name)
	}
	text := make([]byte, 512)
	n, _ := f.Read(text) // what cannot be read is no token
	token := string(bytes.TrimSpace(text[:n]))
	if !validToken.MatchString(token) {
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("read token: %q holds none", name),
			Hint: "make a new one with `sentinel token --rotate`"}
	}
	return token, nil
}

// TokenFile is the token of a state folder as a server checks it: a rotated one
// is good within a second, without a restart.
//
// # Concurrency
//
// Safe for concurrent use.
type TokenFile struct {
	store TokenStore
	log   *slog.Logger
	now   func() time.Time
	learn func(token string) // called with each token that becomes good; not nil

	mu      sync.Mutex
	due     bool // there was no space to make one
	digest  [sha256.Size]byte
	good    bool
	checked time.Time
}

var _ Tokens = (*TokenFile)(nil)

// reread is how long a token that was read counts.
const reread = time.Second

// OpenTokens returns the token of a state folder that is this user's or root's alone;
// see [TokenStore.Open].
func OpenTokens(state string, log *slog.Logger, learn func(token string)) (*TokenFile, error) {
	return TokenStore{State: state}.Open(log, learn)
}

// Open returns the token as a server checks it, and makes one if there is none. Where
// it cannot be written, as on a full disk, no token is good until it can. log takes
// what is wrong with the file later; nil discards it. learn is called with each token
// that becomes good, so that it can be kept out of what is written; nil is not called.
func (s TokenStore) Open(log *slog.Logger, learn func(token string)) (*TokenFile, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if learn == nil {
		learn = func(string) {}
	}
	t := &TokenFile{store: s, log: log, now: time.Now, learn: learn}
	_, err := s.Token()
	if abi.As(err) != nil { // there is one, and it must not be used
		return nil, err
	}
	t.due = err != nil
	t.current()
	return t, nil
}

// Valid compares digests, so that the time it takes says nothing of the token,
// not even its length. While the file is unreadable no token is good.
func (t *TokenFile) Valid(token string) bool {
	digest, good := t.current()
	given := sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(given[:], digest[:]) == 1 && good
}

// read returns the token, made now if there was no space before. One that was
// deleted is not made again: that is how an operator keeps everyone out.
func (t *TokenFile) read() (string, error) {
	if !t.due {
		return t.store.read()
	}
	token, err := t.store.Token()
	t.due = err != nil
	return token, err
}

// current returns the digest of the token, reading the file at most once a
// second. A clock that was set back counts as time that passed.
func (t *TokenFile) current() ([sha256.Size]byte, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.checked.IsZero() || now.Sub(t.checked) >= reread || now.Before(t.checked) {
		token, err := t.read()
		if err != nil && (t.good || t.checked.IsZero()) {
			t.log.Error("no token is good until this is mended", "error", err)
		}
		digest := sha256.Sum256([]byte(token))
		if err == nil && digest != t.digest {
			t.learn(token)
		}
		t.digest, t.good, t.checked = digest, err == nil, now
	}
	return t.digest, t.good
}
