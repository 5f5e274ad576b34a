package secret

import (
	"errors"
	"fmt"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// A Place says where a value is: one of the two.
type Place struct {
	Env  string `json:"env,omitempty"`  // name of a variable
	File string `json:"file,omitempty"` // absolute path; read whole, without the line ends at its end
}

// Places are the secrets that are configured, by name.
type Places map[string]Place

// Pattern is what the name of a secret is like; clause A2.4 of sdk/ABI.md.
const Pattern = "^[A-Z][A-Z0-9_]{0,63}$"

var named = lazyregexp.New(Pattern)

// Named reports whether a text can be the name of a secret.
func Named(name string) bool { return named.MatchString(name) }

// UnmarshalJSON reads an object whose names come once. What is wrong with a
// secret is said with its name and never with what stands in place of it: people
// write the value itself where its place is wanted.
func (p *Places) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	members, err := strictjson.Members(raw, strictjson.Limits{})
	if bad := (*strictjson.Error)(nil); errors.As(err, &bad) {
		if bad.Kind == strictjson.Duplicate {
			return errors.New(bad.Reason)
		}
		return errors.New(`want an object of names and places, {"SLACK_TOKEN": {"env": "SLACK_TOKEN"}}`)
	}
	*p = Places{}
	for _, m := range members {
		if !Named(m.Key) {
			return fmt.Errorf("invalid name of a secret %.70q: want capitals, digits and _, at most 64", m.Key)
		}
		place, err := parsePlace(m.Value)
		if err != nil {
			return fmt.Errorf("%s: %w", m.Key, err)
		}
		(*p)[m.Key] = place
	}
	return nil
}

var errPlace = errors.New(`want the place of the value, not the value: {"env": VARIABLE} or {"file": PATH}`)

func parsePlace(raw []byte) (Place, error) {
	var place Place
	if strictjson.Decode(raw, &place, strictjson.Limits{}) != nil || (place.Env == "") == (place.File == "") {
		return Place{}, errPlace
	}
	if place.File != "" && !filepath.IsAbs(place.File) {
		return Place{}, errors.New("the path of its file has to be absolute: it does not depend on where the program is started")
	}
	return place, nil
}
