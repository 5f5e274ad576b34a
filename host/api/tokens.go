package api

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// NamedName is the file in the state folder with the named tokens. It has digests of them,
// not the tokens.
const NamedName = "tokens.json"

// A Named token stands for a principal.
type Named struct {
	Name      string         `json:"name"`
	As        principal.Kind `json:"as"`
	Digest    string         `json:"sha256,omitempty"`
	CreatedAt time.Time      `json:"createdAt"`
	ExpiresAt *time.Time     `json:"expiresAt,omitempty"`
}

// expired reports whether the token has ended.
func (n Named) expired(now time.Time) bool { return n.ExpiresAt != nil && !now.Before(*n.ExpiresAt) }

// Limits of named tokens.
const (
	maxNamed     = 1000
	maxNamedFile = 1 << 20
)

// New makes a named token and returns it; it cannot be read again. expires is how long it
// is valid, 0 for ever.
func (s TokenStore) New(as principal.Kind, name string, expires time.Duration, now time.Time) (string, error) {
	switch {
	case !slices.Contains(principal.Kinds(), as):
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "as", Message: fmt.Sprintf("as: %.40q: want person, agent or viewer", as)}
	case expires < 0:
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: "expires", Message: "expires: want a duration above 0"}
	}
	if err := principal.CheckName(name); err != nil {
		return "", err
	}
	token := randomToken()
	sum := sha256.Sum256([]byte(token))
	n := Named{Name: name, As: as, Digest: hex.EncodeToString(sum[:]), CreatedAt: now.UTC().Truncate(time.Second)}
	if expires > 0 {
		at := now.Add(expires).UTC().Truncate(time.Second)
		n.ExpiresAt = &at
	}
	err := s.change(func(list []Named) ([]Named, error) {
		list = slices.DeleteFunc(list, func(o Named) bool { return o.expired(now) })
		if slices.ContainsFunc(list, func(o Named) bool { return o.Name == name }) {
			return nil, &abi.Error{Code: abi.Conflict, Permanent: true, Field: "name", Message: fmt.Sprintf("there is a token %s", name), Hint: "revoke it first: sentinel token revoke " + name}
		}
		if len(list) >= maxNamed {
			return nil, &abi.Error{Code: abi.Limit, Permanent: true, Message: fmt.Sprintf("there are %d tokens, the most there may be", maxNamed)}
		}
		return append(list, n), nil
	})
	if err != nil {
		return "", err
	}
	return token, nil
}

// List returns the named tokens, without their digests.
func (s TokenStore) List() ([]Named, error) {
	list, err := s.named()
	list = append([]Named{}, list...) // [] in JSON
	for i := range list {
		list[i].Digest = ""
	}
	return list, err
}

// Revoke ends a named token. A server refuses it within a second.
func (s TokenStore) Revoke(name string) error {
	return s.change(func(list []Named) ([]Named, error) {
		left := slices.DeleteFunc(slices.Clone(list), func(o Named) bool { return o.Name == name })
		if len(left) == len(list) {
			return nil, &abi.Error{Code: abi.NotFound, Permanent: true, Field: "name", Message: fmt.Sprintf("no token %.80q", name), Hint: "sentinel token list shows those that exist"}
		}
		return left, nil
	})
}

// change replaces the list. Two changes at the same time are by the same user; the file
// is replaced as a whole, so it is never half of one.
func (s TokenStore) change(fn func([]Named) ([]Named, error)) error {
	if err := s.Trust.Check(s.State); err != nil {
		return err
	}
	list, err := s.named()
	if err == nil {
		list, err = fn(list)
	}
	if err != nil {
		return err
	}
	text, err := json.MarshalIndent(list, "", "  ")
	if err != nil {
		return err
	}
	name, text := filepath.Join(s.State, NamedName), append(text, '\n')
	return s.Trust.Content().WriteTokens(name, text, func() error { return atomicfile.Replace(name, text, 0o600) })
}

// named reads the list; there need not be one.
func (s TokenStore) named() ([]Named, error) {
	name := filepath.Join(s.State, NamedName)
	f, info, err := s.Trust.Open(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	defer f.Close()
	if info.Size() > maxNamedFile {
		return nil, fmt.Errorf("read tokens: %s has %d bytes", name, info.Size())
	}
	text := make([]byte, info.Size())
	if _, err := f.ReadAt(text, 0); err != nil && len(text) > 0 {
		return nil, fmt.Errorf("read tokens: %w", err)
	}
	var list []Named
	if err := json.Unmarshal(text, &list); err != nil {
		return nil, fmt.Errorf("read tokens: %s: %w", name, err)
	}
	return list, nil
}
