package secret

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
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
type Source struct{ opt Options }

// New returns a source.
func New(opt Options) *Source {
	if opt.Getenv == nil {
		opt.Getenv = os.Getenv
	}
	return &Source{opt}
}

// Value returns the value that a secret has now. Its error is an *[abi.Error]
// that names the secret and neither its value nor its place: plugins see it.
func (s *Source) Value(name string) (string, error) {
	value, err := s.read(name)
	if err != nil {
		return "", err
	}
	switch {
	case len(value) > maxValue:
		return "", unusable(name, fmt.Sprintf("has more than %d KiB", maxValue>>10), "give the name another value")
	case !utf8.ValidString(value) || strings.ContainsRune(value, 0):
		return "", unusable(name, "is not text", "encode it, for example as base64")
	}
	if err := s.opt.Redactor.Register(value); err != nil {
		return "", unusable(name, "is too short to be kept out of what is written", "use one of at least 8 bytes")
	}
	return value, nil
}

// Learn makes the redactor know what those of the secrets hold that can be
// read. It is for what is about to be shown to a caller that may have used them.
func (s *Source) Learn(names ...string) {
	for _, name := range names {
		_, _ = s.Value(name) // what cannot be read cannot have been used either
	}
}

// Hide replaces every secret that is known by ***. More says that text is only
// the beginning of what there was.
func (s *Source) Hide(text []byte, more bool) []byte {
	return s.opt.Redactor.Hide(text, "***", more)
}

// Configured returns the names that the configuration has, sorted.
func (s *Source) Configured() []string { return slices.Sorted(maps.Keys(s.opt.Places)) }

// read looks where the configuration says, and only there if it says something:
// another value than the one that was meant would go out.
func (s *Source) read(name string) (string, error) {
	if !Named(name) {
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("secret %.70q: no name of a secret", name)}
	}
	place, ok := s.opt.Places[name]
	if !ok {
		place.Env = Env + name
	}
	if place.File != "" {
		return s.readFile(name, place.File)
	}
	value := s.opt.Getenv(place.Env)
	if value == "" {
		return "", missing(name)
	}
	return value, nil
}

func missing(name string) *abi.Error {
	return &abi.Error{
		Code: abi.NotFound, Permanent: true, Message: fmt.Sprintf("secret %q: has no value on this host", name),
		Hint: fmt.Sprintf("set %s%s where the host runs, or say under secrets in its configuration where the value is", Env, name),
	}
}

func unusable(name, why, hint string) *abi.Error {
	return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("secret %q: its value %s", name, why), Hint: hint}
}
