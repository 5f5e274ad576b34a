package command

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// ValidateJSON reports how a value violates a JSON Schema, in one line; nil if
// it does not. A schema that cannot be used is an error too.
func ValidateJSON(schema, value json.RawMessage) error {
	s, _, err := compileSchema(schema)
	if err != nil {
		return err
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return err
	}
	err = s.Validate(v)
	var invalid *jsonschema.ValidationError
	if !errors.As(err, &invalid) {
		return err
	}
	var found []problem
	collect(invalid, &found)
	texts := make([]string, 0, len(found))
	for i, p := range found {
		if i == maxProblems {
			break
		}
		texts = append(texts, p.text)
	}
	return errors.New(strings.Join(texts, "; "))
}
