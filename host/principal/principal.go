// Package principal says who a request is made by: a person, an agent or a viewer, and
// under which name. A token proves the kind, and the kernel lowers that of a process below
// a step; a person may act under a name (a persona), or give up rights by acting as an
// agent.
package principal

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Kind says what a principal may do.
type Kind string

// The kinds of principals.
const (
	Person Kind = "person" // everything
	Agent  Kind = "agent"  // everything but decisions, grants, configuration and tokens
	Viewer Kind = "viewer" // reads
)

// Kinds are all kinds.
func Kinds() []Kind { return []Kind{Person, Agent, Viewer} }

// A Principal is who a request is made by. The zero value is a person without a name.
type Principal struct {
	Kind    Kind    // "" is a person
	Name    string  // of the token or the persona; empty for none
	Process Process // that sent the request
}

// A Process is one that sends requests. The zero value is an unknown one.
type Process struct {
	PID     int
	Program string // base name of its executable, empty if unknown
	Remote  string // address of a connection that this process has for a step; empty for any other
}

// The names of agents and viewers that have the token of a person, in place of those that they
// give themselves.
const (
	BelowStep = "below-step"      // below a step, or a child of the process that has the store
	Unknown   = "unknown-process" // which has ended, or cannot be found
)

// Below returns the principal of a process below a step, or of one of which this cannot be
// found out, that has the token of a person: an agent at most, with this name. It chooses no
// name: with it would come the records, keys and shares of an agent that has a token, and with
// many names many shares.
func (p Principal) Below(name string) Principal {
	if p.Kind != Viewer {
		p.Kind = Agent
	}
	p.Name = name
	return p
}

// String returns the form in messages: "agent ci".
func (p Principal) String() string {
	kind := p.Kind
	if kind == "" {
		kind = Person
	}
	return strings.TrimSpace(string(kind) + " " + p.Name)
}

// Header is the header in which a person's request has its [Principal.Header].
const Header = "Sentinel-As"

// Header returns the value of the header for a principal, "" for none.
func (p Principal) Header() string {
	if p.Kind == "" || p.Kind == Person {
		return p.Name
	}
	return string(p.Kind) + ":" + p.Name
}

// Narrow returns the principal as that p acts by the value of a header. Only a person has
// others act in its place.
func (p Principal) Narrow(header string) (Principal, error) {
	if header == "" {
		return p, nil
	}
	if p.Kind != "" && p.Kind != Person {
		return p, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("%s: the token is for %s, which acts under no other name", Header, p)}
	}
	kind, name, ok := strings.Cut(header, ":")
	if !ok {
		kind, name = string(Person), header
	}
	if !slices.Contains(Kinds(), Kind(kind)) {
		return p, &abi.Error{Code: abi.BadFields, Permanent: true, Field: Header, Message: fmt.Sprintf("%s: %.40q: want NAME, agent:NAME or viewer:NAME", Header, header)}
	}
	if err := CheckName(name); err != nil {
		return p, err
	}
	p.Kind, p.Name = Kind(kind), name
	return p, nil
}

var validName = lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)

// CheckName returns an error if a name has characters that no name has: it is part of
// file names, logs and headers.
func CheckName(name string) error {
	if validName.MatchString(name) {
		return nil
	}
	return &abi.Error{Code: abi.BadFields, Permanent: true, Field: "name", Message: fmt.Sprintf("name %.80q: want at most 64 letters, digits, dots, dashes and underscores", name)}
}

// ErrRevoked ends what is open with a token that was revoked or has expired.
var ErrRevoked = errors.New("the token is not valid any more")

// RevokeCheck is how often what a named token has begun asks whether the token is valid.
const RevokeCheck = 2 * time.Second

type validityKey struct{}

// WithValidity returns a context whose calls are made with a named token. valid reports
// whether it still counts.
func WithValidity(ctx context.Context, valid func() bool) context.Context {
	return context.WithValue(ctx, validityKey{}, valid)
}

// Validity returns whether the named token of a context still counts, nil for one without.
func Validity(ctx context.Context) func() bool {
	valid, _ := ctx.Value(validityKey{}).(func() bool)
	return valid
}

type key struct{}

// With returns a context whose calls are made by p.
func With(ctx context.Context, p Principal) context.Context { return context.WithValue(ctx, key{}, p) }

// From returns who the calls of a context are made by: a person without a name if nothing
// else was said.
func From(ctx context.Context) Principal {
	p, _ := ctx.Value(key{}).(Principal)
	return p
}
