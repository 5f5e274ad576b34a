package command

import (
	"encoding/json"
	"errors"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// valueLimits bound a value that is validated: a model's reply, the largest there
// is, has at most 16 MiB.
var valueLimits = strictjson.Limits{Bytes: 16 << 20, Depth: maxParamDepth, Keys: 100_000, StringBytes: 16 << 20}

// ValidateJSON reports how a value violates a JSON Schema, in one line; nil if
// it does not. A schema that cannot be used is an error too.
func ValidateJSON(schema, value json.RawMessage) error {
	s, err := compileSchema(schema)
	if err != nil {
		return err
	}
	v, err := strictjson.Any(value, valueLimits)
	if err != nil {
		return err
	}
	err = s.validate(v, len(value))
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
