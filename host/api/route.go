package api

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
)

// Access is the kind of authentication that a route requires.
type Access string

// The kinds of access. The zero value is invalid and New refuses it: a route
// without an access must not be open.
const (
	AccessToken Access = "token" // a bearer token
	AccessHook  Access = "hook"  // the webhook's own secret, which its trigger checks
	AccessOpen  Access = "open"  // none; the response shows only whether the process is healthy
)

// match is whether a route requires the revision that an edit is based on.
type match int

const (
	matchNone     match = iota
	matchOptional       // If-Match may be given
	matchRequired       // without If-Match the response is 428
)

// Param is one parameter of a route's query.
type Param struct {
	Name    string
	Type    string // "string", "integer", "boolean", "list" of texts between commas, or "duration", which commands get in milliseconds
	As      string // the command's name for it; "-" if the command does not get it. Default Name
	Summary string
}

// Route is one row of the table. The guard, the mux and the OpenAPI document
// use nothing else.
type Route struct {
	Method  string
	Pattern string // as in net/http, without the method
	Name    string // unique; the operationId
	Access  Access
	Summary string
	Command string // the command to call; "" if serve is set
	Query   []Param
	Status  int // of success; default 200

	// body maps the request's body to parameters: "" means no body, "*" that
	// its members are the parameters, any other value is the name of the one
	// parameter.
	body string
	// anyType means that the body is JSON whatever its content type says.
	anyType bool
	// raw means that the handler reads the body, which may be of any type.
	raw bool
	// media is the content type of the response; default JSON.
	media   string
	maxBody int64 // bytes; default maxBody
	match   match
	// fixed are parameters that the route sets.
	fixed map[string]any
	// serve handles the request; nil forwards it to Command.
	serve func(a *API, w http.ResponseWriter, r *http.Request) error
	// answer writes the command's result; nil writes it unchanged.
	answer func(a *API, w http.ResponseWriter, r *http.Request, route *Route, result json.RawMessage) error
}

// Mount is a handler of the caller with a route of its own. The handler
// receives requests that the guard has admitted, with bodies of up to 16 MB of
// any type.
type Mount struct {
	Method, Pattern string
	Name            string // unique; the operationId
	Access          Access
	Summary         string
	Query           []Param
	Handler         http.Handler
}

// OwnerMount is the route by which a client asks which process has the store. Its handler
// and its path are those of package control.
func OwnerMount(h http.Handler) Mount {
	return Mount{Method: http.MethodGet, Pattern: "/v1/owner", Name: "owner", Access: AccessToken, Summary: "The process that has the store, and its active runs.", Handler: h}
}

// BackupMount is the route by which a client receives a backup of the state.
func BackupMount(h http.Handler) Mount {
	return Mount{Method: http.MethodGet, Pattern: "/v1/backup", Name: "backup", Access: AccessToken, Query: []Param{{Name: "secrets", Type: "boolean", Summary: "add the encrypted secrets"}}, Summary: "A backup of the state, as tar and gzip. For people alone.", Handler: h}
}

// Body limits, in bytes.
const (
	maxBody        = 1 << 20
	maxCommandBody = 4 << 20 // the largest body of a command
	maxMountBody   = 16 << 20
)

// String returns the route as a pattern of net/http.
func (r *Route) String() string { return r.Method + " " + r.Pattern }

// methods are the methods that the guard passes to the mux.
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

// check validates a route. Mounts come from callers, so it returns errors
// instead of panicking.
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
		return fmt.Errorf("route %q: neither a command nor a handler", r)
	}
	return nil
}
