package secret

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/sentinel-runtime/sentinel/host/internal/trust"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Env begins the variables that hold secrets without being configured.
const Env = "SENTINEL_SECRET_"

// maxValue is how many bytes a value has at most. A private key has 3 KiB.
const maxValue = 16 << 10

// Options configure a [Source].
type Options struct {
	// Places are the configured secrets. Default none.
	Places Places
	// Vault has the values that `sentinel secret set` stored. Default none.
	Vault *Vault
	// Environ returns the environment, of which [Source.All] lists the secrets. Default none.
	Environ func() []string
	// Getenv reads the environment. Default os.Getenv.
	Getenv func(string) string
	// Redactor learns every value before it is handed out. Required.
	Redactor Redactor
	// Trust decides whether files with values are obeyed. Default: they and the
	// folders above have to be the user's or root's alone.
	Trust *trust.Policy
}

// A Redactor keeps secrets out of what is written.
type Redactor interface {
	// Register adds secrets. One that cannot be hidden is an error.
	Register(secrets ...string) error
	Hide(data []byte, mark string, more bool) []byte
}

// A Source hands out the values of secrets.
//
// # Concurrency
//
// Safe for concurrent use.
type Source struct {
	opt Options

	mu      sync.Mutex
	learned os.FileInfo // the file of the vault whose values the redactor knows
}

// New returns a source.
func New(opt Options) *Source {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	return &Source{opt: opt}
}

// Value returns the value that a secret has now. Its error is an *[abi.Error]
// that names the secret and neither its value nor its place: plugins see it.
func (s *Source) Value(name string) (string, error) {
	value, err := s.read(name)
	if err != nil {
		return "", err
	}
	if why, hint := invalid(value); why != "" {
		return "", unusable(name, why, hint)
	}
	if err := s.opt.Redactor.Register(value); err != nil {
		return "", unusable(name, tooShort, tooShortHint)
	}
	return value, nil
}

const tooShort, tooShortHint = "is too short to be kept out of what is written", "use one of at least 8 bytes"

// invalid returns why a value cannot be that of a secret, "" if it can.
func invalid(value string) (why, hint string) {
	switch {
	case len(value) > maxValue:
		return fmt.Sprintf("has more than %d KiB", maxValue>>10), "give the name another value"
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "is not text", "encode it, for example as base64"
	case len(strings.TrimSpace(value)) < shortValue:
		return tooShort, tooShortHint
	}
	return "", ""
}

// Learn makes the redactor know what those of the secrets hold that can be
// read. It is for what is about to be shown to a caller that may have used them.
func (s *Source) Learn(names ...string) {
	for _, name := range names {
		_, _ = s.Value(name) // what cannot be read cannot have been used either
	}
}

// LearnStored makes the redactor know the values in the vault, if its file is another one than at the
// last time. It is for what is shown to a caller who must not see them: another process may have stored
// one since.
func (s *Source) LearnStored() {
	if s.opt.Vault == nil {
		return
	}
	path, _ := s.opt.Vault.Files()
	s.mu.Lock()
	defer s.mu.Unlock()
	now, err := os.Stat(path)
	if err != nil || s.learned != nil && os.SameFile(s.learned, now) && s.learned.ModTime().Equal(now.ModTime()) {
		return
	}
	values, err := s.opt.Vault.read()
	if err != nil {
		return // no step can have used them either
	}
	for _, value := range values {
		_ = s.opt.Redactor.Register(value) // one that is too short cannot be used
	}
	s.learned = now
}

// Hide replaces every secret that is known by ***. More says that text is only
// the beginning of what there was.
func (s *Source) Hide(text []byte, more bool) []byte {
	return s.opt.Redactor.Hide(text, "***", more)
}

// Configured returns the names that the configuration has, sorted.
func (s *Source) Configured() []string { return slices.Sorted(maps.Keys(s.opt.Places)) }

// A From says where the value of a secret is.
type From string

// Where values are, in the order in which they are looked for: a place of the configuration, a
// variable of the environment, a credential of systemd, and the vault.
const (
	FromConfig     From = "configuration"
	FromEnviron    From = "environment"
	FromCredential From = "systemd credential"
	FromVault      From = "sentinel secret set"
)

// All returns the names of all secrets that the host finds, and where the value of each is.
// Whether it can be used is not known.
func (s *Source) All() (map[string]From, error) {
	vault, err := s.opt.Vault.Names()
	all := map[string]From{}
	for _, name := range vault {
		all[name] = FromVault
	}
	if dir := s.opt.Getenv(credentials); dir != "" {
		entries, _ := os.ReadDir(dir) // one that cannot be read has none
		for _, e := range entries {
			if Named(e.Name()) {
				all[e.Name()] = FromCredential
			}
		}
	}
	if s.opt.Environ != nil {
		for _, entry := range s.opt.Environ() {
			name, value, _ := strings.Cut(entry, "=")
			if name, ok := strings.CutPrefix(name, Env); ok && Named(name) && value != "" {
				all[name] = FromEnviron
			}
		}
	}
	for name := range s.opt.Places {
		all[name] = FromConfig
	}
	return all, err
}

// credentials is the variable with the folder of the credentials that systemd passes to a
// service, a file each.
const credentials = "CREDENTIALS_DIRECTORY"

// read looks where the configuration says, and only there if it says something:
// another value than the one that was meant would go out.
func (s *Source) read(name string) (string, error) {
	if !Named(name) {
		return "", badName(name)
	}
	place, ok := s.opt.Places[name]
	switch {
	case place.File != "":
		return s.readFile(name, place.File)
	case ok:
		if value := s.opt.Getenv(place.Env); value != "" {
			return value, nil
		}
		return "", missing(name)
	}
	if value := s.opt.Getenv(Env + name); value != "" {
		return value, nil
	}
	if dir := s.opt.Getenv(credentials); dir != "" {
		value, err := s.readCredential(name, filepath.Join(dir, name))
		if abi.CodeOf(err) != abi.NotFound {
			return value, err
		}
	}
	values, err := s.opt.Vault.read()
	if err != nil {
		return "", unusable(name, "is not known: the file of `sentinel secret set` cannot be read", "sentinel secret list says why")
	}
	if value := values[name]; value != "" {
		return value, nil
	}
	return "", missing(name)
}

func badName(name string) *abi.Error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("secret %.70q: no name of a secret", name), Hint: "want capitals, digits and _, at most 64, such as GH_TOKEN"}
}

func missing(name string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("secret %q: has no value on this host", name),
		Hint: fmt.Sprintf("store it with `sentinel secret set %s`, set %s%s where the host runs, or say under secrets in its configuration where the value is", name, Env, name),
	}
}

func unusable(name, why, hint string) *abi.Error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("secret %q: its value %s", name, why), Hint: hint}
}
