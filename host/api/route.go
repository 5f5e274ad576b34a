package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// Access says who may use a route.
type Access string

// The kinds of access. The zero value is none of them, and New refuses it: a
// route that says nothing must not be open.
const (
	AccessToken Access = "token" // a bearer token
	AccessHook  Access = "hook"  // the webhook's own secret, which its trigger checks
	AccessOpen  Access = "open"  // anybody: it tells nothing but whether the process is well
)

// match says what a route wants to know about the revision an edit was made on.
type match int

const (
	matchNone     match = iota
	matchOptional       // If-Match is obeyed
	matchRequired       // without it the answer is 428
)

// A Param is one parameter of a route's query.
type Param struct {
	Name    string
	Type    string // "string", "integer" or "boolean"
	As      string // the command's name for it; default Name
	Summary string
}

// A Route is one line of the table. Everything that the guard, the mux and the
// OpenAPI document know of it is here.
type Route struct {
	Method  string
	Pattern string // as net/http has it, without the method
	Name    string // unique; the operationId
	Access  Access
	Summary string
	Command string // that answers; "" if the API does by itself
	Query   []Param
	Status  int // of success; default 200

	// body is what the request's body is to the command: "" there is none,
	// "*" its members are parameters, else the parameter that it is.
	body string
	// raw bodies are read by the handler itself and may be of any type.
	raw bool
	// media is the type of the answer; default JSON.
	media   string
	maxBody int64 // bytes; default maxBody
	match   match
	// fixed are parameters that the route itself gives the command.
	fixed map[string]any
	// serve answers; nil forwards to Command.
	serve func(a *API, w http.ResponseWriter, r *http.Request) error
	// answer shapes the command's result; nil hands it out as it is.
	answer func(a *API, w http.ResponseWriter, r *http.Request, route *Route, result json.RawMessage) error
}

// A Mount is a handler of somebody else at a route of its own. The handler gets
// requests that the guard has let in, with bodies up to 16 MB of any type.
type Mount struct {
	Method, Pattern string
	Name            string // unique; the operationId
	Access          Access
	Summary         string
	Handler         http.Handler
}

// Body limits, in bytes.
const (
	maxBody        = 1 << 20
	maxCommandBody = 4 << 20 // no command takes more
	maxMountBody   = 16 << 20
)

// String returns the route as net/http writes a pattern.
func (r *Route) String() string { return r.Method + " " + r.Pattern }

// methods are what the guard lets through to the mux.
var methods = []string{
	http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions,
}

// placeholder finds {name} and {name...} in a pattern.
var placeholder = lazyregexp.New(`\{([a-zA-Z]+)(\.\.\.)?\}`)

// placeholders returns the names of a pattern's path values.
func (r *Route) placeholders() []string {
	var names []string
	for _, m := range placeholder.FindAllStringSubmatch(r.Pattern, -1) {
		names = append(names, m[1])
	}
	return names
}

// check reports what is wrong with a line of the table.
// Mounts come from elsewhere, so this is no mere assertion.
func (r *Route) check() error {
	switch {
	case !slices.Contains(methods, r.Method) || r.Method == http.MethodHead || r.Method == http.MethodOptions:
		return fmt.Errorf("route %q: method %q", r.Pattern, r.Method)
	case !strings.HasPrefix(r.Pattern, "/"):
		return fmt.Errorf("route %q: pattern does not begin with a slash", r)
	case r.Access != AccessToken && r.Access != AccessHook && r.Access != AccessOpen:
		return fmt.Errorf("route %q: access %q", r, r.Access)
	case r.Name == "" || r.Summary == "":
		return fmt.Errorf("route %q: no name or no summary", r)
	case r.serve == nil && r.Command == "":
		return fmt.Errorf("route %q: nothing answers", r)
	}
	return nil
}
