package api

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	stdruntime "runtime"
	"slices"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// TokenName is the file in the state folder that holds the token.
const TokenName = "token"

// tokenBytes is the number of random bytes of a token.
const tokenBytes = 32

// tokenPrefix makes tokens recognisable to people and secret scanners.
const tokenPrefix = "sentinel_"

// validToken matches tokens; none of its characters needs quoting in headers,
// shells and subprotocols.
var validToken = lazyregexp.New(`^[A-Za-z0-9_-]{32,256}$`)

// Tokens checks bearer tokens. Who takes the same time for every invalid
// token and is safe for concurrent use.
type Tokens interface {
	// Who returns for whom a token stands; ok is false if it is invalid.
	Who(token string) (p principal.Principal, ok bool)
}

// TokenStore reads and writes the token file of a state folder.
type TokenStore struct {
	State string
	// Trust checks the owner and mode of the folder and the file. Default: only
	// the user or root may own and write them.
	Trust *trust.Policy
}

// Token returns the token of a state folder under the default trust policy; see
// [TokenStore.Token].
func Token(state string) (string, error) { return TokenStore{State: state}.Token() }

// RotateToken replaces the token of a state folder under the default trust
// policy; see [TokenStore.Rotate].
func RotateToken(state string) (string, error) { return TokenStore{State: state}.Rotate() }

// Token returns the token and creates one if there is none. A file that other
// users can read or could have written is refused: a client with the token may
// run commands.
func (s TokenStore) Token() (string, error) {
	token, err := s.read()
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	// A link does not replace a file, so two processes that create a token at
	// the same time return the same one.
	if err := s.place(os.Link); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", fmt.Errorf("create token: %w", err)
	}
	return s.read()
}

// Rotate replaces the token. The old one is valid for at most another second.
func (s TokenStore) Rotate() (string, error) {
	if err := s.Trust.Check(s.State); err != nil {
		return "", rotateError(err)
	}
	if err := s.place(os.Rename); err != nil {
		return "", rotateError(err)
	}
	return s.read()
}

func rotateError(err error) error { return fmt.Errorf("rotate token: %w", err) }

// randomToken returns a new token.
func randomToken() string {
	secret := make([]byte, tokenBytes)
	_, _ = rand.Read(secret) // never fails: it crashes the program instead
	return tokenPrefix + base64.RawURLEncoding.EncodeToString(secret)
}

// place writes a new token to a temporary file in the state folder, and has put give it its name.
func (s TokenStore) place(put func(temp, name string) error) error {
	f, err := os.CreateTemp(s.State, TokenName+".*.tmp") // mode 0600
	if err != nil {
		return err
	}
	defer os.Remove(f.Name())
	text := randomToken() + "\n"
	_, err = f.WriteString(text)
	if err == nil {
		err = f.Sync()
	}
	if err := errors.Join(err, f.Close()); err != nil {
		return err
	}
	name := filepath.Join(s.State, TokenName)
	return s.Trust.Content().WriteTokens(name, []byte(text), func() error { return put(f.Name(), name) })
}

// read reads the token.
func (s TokenStore) read() (string, error) {
	name := filepath.Join(s.State, TokenName)
	info, err := os.Lstat(name)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	// On Windows the folder's access list guards the file; its mode is
	// meaningless.
	others := info.Mode().Perm()&0o077 != 0 && stdruntime.GOOS != "windows"
	if !info.Mode().IsRegular() || others {
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("read token: %q has mode %v: other users can read it", name, info.Mode()),
			Hint: "make a new one with `sentinel token --rotate`: the old one may be known to others"}
	}
	// The file may have been replaced between Lstat and Open; the checks above
	// count only for the same file.
	f, opened, err := s.Trust.Open(name)
	if err != nil {
		return "", fmt.Errorf("read token: %w", err)
	}
	defer f.Close()
	if !os.SameFile(info, opened) {
		return "", fmt.Errorf("read token: %q was replaced while it was read", name)
	}
	text := make([]byte, 512)
	n, _ := f.Read(text) // a read error leaves an invalid token
	token := string(bytes.TrimSpace(text[:n]))
	if !validToken.MatchString(token) {
		return "", &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("read token: %q has no valid token", name),
			Hint: "make a new one with `sentinel token --rotate`"}
	}
	return token, nil
}

// TokenFile checks tokens against the token file of a state folder. A rotated
// token is valid within a second, without a restart.
//
// # Concurrency
//
// Safe for concurrent use.
type TokenFile struct {
	store TokenStore
	log   *slog.Logger
	now   func() time.Time
	learn func(token string) // called with each token that becomes valid; not nil

	mu      sync.Mutex
	due     bool // the token could not be created yet
	digest  [sha256.Size]byte
	good    bool
	checked time.Time

	named     []Named
	namedGood bool
	files     [2]fs.FileInfo // as they were when they were read; nil if there was none
	refused   error          // why files that git may have written do not count
}

var _ Tokens = (*TokenFile)(nil)

// reread is how long a token is used before its file is read again.
const reread = time.Second

// OpenTokens opens the token file of a state folder under the default trust
// policy; see [TokenStore.Open].
func OpenTokens(state string, log *slog.Logger, learn func(token string)) (*TokenFile, error) {
	return TokenStore{State: state}.Open(log, learn)
}

// Open returns a checker of the token, and creates the token if there is none.
// While it cannot be written, as on a full disk, no token is valid. log logs
// later problems with the file; nil discards them. learn is called with each
// token that becomes valid, so that it can be redacted; it may be nil.
func (s TokenStore) Open(log *slog.Logger, learn func(token string)) (*TokenFile, error) {
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	if learn == nil {
		learn = func(string) {}
	}
	t := &TokenFile{store: s, log: log, now: time.Now, learn: learn, namedGood: true}
	_, err := s.Token()
	if abi.As(err) != nil { // there is a token that must not be used
		return nil, err
	}
	t.due = err != nil
	t.current()
	return t, nil
}

// Who compares digests, so that its duration does not depend on the token or
// its length. While the file is unreadable no token is valid. A token that was
// created a moment ago is valid at once: the program that a person starts after
// `sentinel token --rotate` has it.
func (t *TokenFile) Who(token string) (principal.Principal, bool) {
	p, ok := t.match(token)
	if !ok && t.changed() {
		return t.match(token)
	}
	return p, ok
}

// changed reports whether a file is another one than was read, and has it read again.
func (t *TokenFile) changed() bool {
	now := t.stat()
	t.mu.Lock()
	defer t.mu.Unlock()
	if unchanged(t.files, now) {
		return false
	}
	t.checked = time.Time{}
	return true
}

// unchanged reports whether files are what they were.
func unchanged(was, now [2]fs.FileInfo) bool {
	for i := range was {
		switch {
		case was[i] == nil || now[i] == nil:
			if was[i] != nil || now[i] != nil {
				return false
			}
		case !os.SameFile(was[i], now[i]) || was[i].Size() != now[i].Size() || !was[i].ModTime().Equal(now[i].ModTime()):
			return false
		}
	}
	return true
}

// stat returns what the folder has of the two files.
func (t *TokenFile) stat() (files [2]fs.FileInfo) {
	for i, name := range []string{TokenName, NamedName} {
		if info, err := os.Lstat(filepath.Join(t.store.State, name)); err == nil {
			files[i] = info
		}
	}
	return files
}

// match is Who for the tokens that were read within the last second.
func (t *TokenFile) match(token string) (principal.Principal, bool) {
	digest, good, named := t.current()
	given := sha256.Sum256([]byte(token))
	if subtle.ConstantTimeCompare(given[:], digest[:]) == 1 && good {
		return principal.Principal{Kind: principal.Person}, true
	}
	text, now := []byte(hex.EncodeToString(given[:])), t.now()
	found := -1
	for i := range named { // all, so that the time says nothing
		if subtle.ConstantTimeCompare([]byte(named[i].Digest), text) == 1 {
			found = i
		}
	}
	if found < 0 || named[found].expired(now) || !slices.Contains(principal.Kinds(), named[found].As) {
		return principal.Principal{}, false
	}
	return principal.Principal{Kind: named[found].As, Name: named[found].Name}, true
}

// read returns the token, and creates it if Open could not. A deleted token is
// not created again: an operator deletes it to revoke all access.
func (t *TokenFile) read() (string, error) {
	if !t.due {
		return t.store.read()
	}
	token, err := t.store.Token()
	t.due = err != nil
	return token, err
}

// current returns the digest of the token, and the named tokens, reading the file at most once a
// second. If the clock was set back, it reads again.
func (t *TokenFile) current() ([sha256.Size]byte, bool, []Named) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if now := t.now(); t.checked.IsZero() || now.Sub(t.checked) >= reread || now.Before(t.checked) {
		files := t.stat() // before they are read: a later change is noticed
		if t.refused != nil || !unchanged(t.files, files) {
			t.refused = t.store.Trust.Content().CheckTracked(t.store.State)
		}
		t.files = files
		token, err := t.read()
		if t.refused != nil {
			token, err = "", t.refused
		}
		if err != nil && (t.good || t.checked.IsZero()) {
			t.log.Error("no token is valid until the token file is fixed", "error", err)
		}
		digest := sha256.Sum256([]byte(token))
		if err == nil && digest != t.digest {
			t.learn(token)
		}
		t.digest, t.good, t.checked = digest, err == nil, now
		named, err := t.store.named()
		if t.refused != nil {
			named, err = nil, t.refused
		}
		if err != nil && t.namedGood {
			t.log.Error("no named token is valid until their file is fixed", "error", err)
		}
		t.named, t.namedGood = named, err == nil
	}
	return t.digest, t.good, t.named
}
