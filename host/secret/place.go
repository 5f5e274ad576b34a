package secret

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
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

var named = regexp.MustCompile(Pattern)

// Named reports whether a text can be the name of a secret.
func Named(name string) bool { return named.MatchString(name) }

// UnmarshalJSON reads an object whose names come once. What is wrong with a
// secret is said with its name and never with what stands in place of it: people
// write the value itself where its place is wanted.
func (p *Places) UnmarshalJSON(raw []byte) error {
	if string(raw) == "null" {
		return nil
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	if open, err := d.Token(); err != nil || open != json.Delim('{') {
		return errors.New(`an object of names and places is wanted, {"SLACK_TOKEN": {"env": "SLACK_TOKEN"}}`)
	}
	*p = Places{}
	for d.More() {
		token, err := d.Token()
		if err != nil {
			return err
		}
		name, _ := token.(string) // the decoder lets nothing else be a name
		var one json.RawMessage
		if err := d.Decode(&one); err != nil {
			return err
		}
		if !Named(name) {
			return fmt.Errorf("%.70q is no name of a secret: capitals, digits and _ are, 64 at most", name)
		}
		if _, twice := (*p)[name]; twice {
			return fmt.Errorf("%s is there twice", name)
		}
		place, err := parsePlace(one)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		(*p)[name] = place
	}
	_, err := d.Token()
	return err
}

var errPlace = errors.New(`where the value is has to be said, not what it is: {"env": VARIABLE} or {"file": PATH}`)

func parsePlace(raw []byte) (Place, error) {
	var place Place
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	if d.Decode(&place) != nil || (place.Env == "") == (place.File == "") {
		return Place{}, errPlace
	}
	if place.File != "" && !filepath.IsAbs(place.File) {
		return Place{}, errors.New("the path of its file has to be absolute: it does not depend on where the program is started")
	}
	return place, nil
}
