package api

import (
	"fmt"
	"net/http"
	"strings"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Path values by their names. A value that does not fit is refused before any
// code of a route sees it (API.md, G4). None of them ever becomes a part of a
// file's path.
var pathValues = map[string]func(string) bool{
	"id":       func(s string) bool { return sentinels.ID(s).Valid() },
	"sentinel": func(s string) bool { return sentinels.ID(s).Valid() },
	"run":      func(s string) bool { return sentinels.ID(s).Valid() }, // a UUID is one; whether it is a run is for the store to say
	"name":     lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}){0,4}$`).MatchString,
	"address":  func(s string) bool { return len(s) <= 256 && stepAddress.MatchString(s) || stepID.MatchString(s) },
	"path":     func(s string) bool { return len(s) <= 512 && stepPath.MatchString(s) || stepID.MatchString(s) },
	"revision": lazyregexp.New(`^[1-9][0-9]{0,8}$`).MatchString,
	"trigger":  lazyregexp.New(`^[A-Za-z0-9][A-Za-z0-9_#-]{0,63}$`).MatchString,
}

var (
	stepID      = lazyregexp.New(`^[A-Za-z0-9_][A-Za-z0-9_-]{0,63}$`) // as FORMAT.md F3 has it
	stepAddress = lazyregexp.New(`^[0-9]{1,6}(\.[A-Za-z][A-Za-z0-9_]{0,63}(\.[0-9]{1,6})+)*$`)
	stepPath    = lazyregexp.New(`^[0-9]{1,6}(#[0-9]{1,9})?(\.[A-Za-z][A-Za-z0-9_]{0,63}(\.[0-9]{1,6}(#[0-9]{1,9})?)+)*$`)
)

// checkPathValues refuses values that do not fit their names. Those of mounts
// have names of their own; they are held to what no path may have.
func checkPathValues(r *http.Request, route *Route) error {
	// The mux has decoded them: what was %2F is a slash by now, and is refused.
	for _, name := range route.placeholders() {
		value := r.PathValue(name)
		good := plain
		if known := pathValues[name]; known != nil {
			good = known
		}
		if !good(value) {
			return &abi.Error{Code: abi.BadFields, Permanent: true, Field: name, Message: fmt.Sprintf("path: %.80q is no %s", value, name)}
		}
	}
	return nil
}

// plain reports whether a value has neither control characters nor parts that
// climb.
func plain(s string) bool {
	if len(s) > 1024 || strings.ContainsFunc(s, func(c rune) bool { return c < ' ' || c == 0x7f || c == '\\' }) {
		return false
	}
	for part := range strings.SplitSeq(s, "/") {
		if part == ".." || part == "." {
			return false
		}
	}
	return true
}
