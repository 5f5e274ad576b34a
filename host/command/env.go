package command

import (
	"encoding/json"

	"github.com/google/jsonschema-go/jsonschema"

	"github.com/sentinel-runtime/sentinel/sentinels/reference"
)

// An EnvValue is the value of an environment variable: a text, or that of a secret. Its JSON is
// the text or {"secret": NAME}.
type EnvValue struct {
	Text   string
	Secret string // the name of the secret; Text is empty then
}

// UnmarshalJSON reads a value that its schema has accepted.
func (v *EnvValue) UnmarshalJSON(raw []byte) error {
	if name, ok := reference.SecretIn(raw); ok {
		*v = EnvValue{Secret: name}
		return nil
	}
	*v = EnvValue{}
	return json.Unmarshal(raw, &v.Text)
}

// envValueSchema describes an [EnvValue].
var envValueSchema = &jsonschema.Schema{
	Description: "a text, or the name of a secret that the step itself names", AnyOf: []*jsonschema.Schema{
		{Type: "string"},
		{Type: "object", Properties: map[string]*jsonschema.Schema{"secret": {Type: "string"}}, Required: []string{"secret"}, AdditionalProperties: &jsonschema.Schema{Not: &jsonschema.Schema{}}},
	},
}
