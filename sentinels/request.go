package sentinels

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Commands whose results are the outputs of steps: of those with a shell line, and of those of type
// http.
const (
	ShellCommand   = "code/shell/execute"
	RequestCommand = "http/request"
)

// httpStep is the step type that makes a request.
const httpStep = "http"

// Command returns the command whose result is the output of every step of the type, "" if there is
// none.
func (s *TypeSpec) Command() string {
	if s.Type == httpStep {
		return RequestCommand
	}
	for _, m := range s.Marks() {
		if m.Mark == markShell {
			return ShellCommand
		}
	}
	return ""
}

// Origin returns the scheme, host and port that a URL begins with, "https://api.example.com", and ""
// if it has none, or a reference before their end: what follows cannot change where it leads then.
func Origin(address string) string {
	scheme, rest, ok := strings.Cut(address, "://")
	if !ok {
		return ""
	}
	authority := rest
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		authority = rest[:end]
	}
	if authority == "" || strings.ContainsAny(scheme+authority, "$\\") {
		return ""
	}
	return scheme + "://" + authority
}

// Origin returns where the step sends a request as far as the step itself writes it out, see
// [Origin]; "" for a step that makes none.
func (s *Step) Origin() string {
	request := s.request()
	return Origin(reference.Text(request["url"]))
}

// requestSecrets reports a request with a secret whose URL begins with a reference: the host refuses
// it, because a value must not decide where a secret is sent.
func (c *checker) requestSecrets(s *Step, path string) {
	for _, place := range s.requestSecrets() {
		eachSecret(place.raw, func(_, name string) {
			if s.Origin() == "" {
				c.Add(Problem{Path: path + "." + s.OriginPath(), Kind: KindValue,
					Hint:    `write the scheme and the host out, as in "https://api.example.com/users/$id"`,
					Message: fmt.Sprintf("the secret %q goes to a host that the step does not write out", name)})
			}
		})
	}
}

// OriginPath returns where the URL of [Step.Origin] is in the step.
func (s *Step) OriginPath() string {
	if s.Type == httpStep {
		return "url"
	}
	return "params.url"
}

// request returns the fields of a step of type http, or the parameters of one that calls its
// command; nil for any other step.
func (s *Step) request() map[string]json.RawMessage {
	switch {
	case s.Type == httpStep:
		return s.Fields
	case reference.Text(s.Fields["command"]) != RequestCommand:
		return nil
	}
	params := map[string]json.RawMessage{}
	if raw := s.Fields["params"]; len(raw) > 0 && raw[0] == '{' {
		strictjson.EachMember(raw, func(name, value []byte) bool {
			params[strictjson.Unquote(name)] = value
			return true
		})
	}
	return params
}

// requestSecrets are the objects of a request that can have secrets, each with its path in the step.
func (s *Step) requestSecrets() (list []stepEnv) {
	request := s.request()
	if request == nil {
		return nil
	}
	at := ""
	if s.Type != httpStep {
		at = "params."
	}
	list = []stepEnv{{at + "headers", request["headers"]}, {at + "auth", request["auth"]}}
	if auth := request["auth"]; len(auth) > 0 && auth[0] == '{' {
		strictjson.EachMember(auth, func(name, value []byte) bool {
			if strictjson.IsString(name, "basic") {
				list = append(list, stepEnv{at + "auth.basic", value})
			}
			return true
		})
	}
	return list
}
