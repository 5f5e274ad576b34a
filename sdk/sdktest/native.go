package sdktest

import (
	"context"
	"encoding/json"
	"runtime"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Native returns a target that executes the steps of a plugin as plain Go, without a
// sandbox. It does not check fields against their schema, and a ctx that ends does not end
// a step. So `sentinel plugin test` may refuse fields that a step gets here.
func Native(p sdk.Plugin) Target { return native{p} }

type native struct{ plugin sdk.Plugin }

func (n native) Fields(step string, fields json.RawMessage) (json.RawMessage, error) {
	manifest, err := sdk.Parse(n.plugin.Describe())
	if err != nil {
		return nil, err
	}
	aliases := map[string]string{}
	var properties sdk.Value
	for _, s := range manifest.Get("steps").Items() {
		if s.Get("type").StringOr("") != step {
			continue
		}
		for alias, field := range s.Get("aliases").Fields() {
			aliases[alias] = field.StringOr("")
		}
		properties = s.Get("fields").Get("properties")
	}
	given, err := GuestFields(fields, aliases, func(field string) string {
		return properties.Get(field).Get(abi.Keyword).StringOr("")
	})
	if err != nil {
		return nil, err
	}
	return json.Marshal(given)
}

// Role returns the role of a step type, "" for none.
func (n native) Role(step string) abi.Role {
	for _, s := range n.plugin.Steps {
		if s.Type == step && s.Provides != nil {
			return s.Provides.As
		}
	}
	return ""
}

// CheckOutput checks nothing: guests are compiled without a library for schemas, and so are
// their tests. `sentinel plugin test` checks it.
func (n native) CheckOutput(string, json.RawMessage) error { return nil }

// Execute runs the step in a goroutine of its own: an error of call ends that goroutine,
// which a step cannot prevent.
func (n native) Execute(_ context.Context, input []byte, call CallFunc) (Execution, error) {
	var output string
	var err error
	done := make(chan struct{})
	go func() {
		defer close(done)
		out, fault := n.plugin.Run(string(input), func(function, request string) string {
			var answer []byte
			if answer, _, err = call(function, []byte(request)); err != nil {
				runtime.Goexit()
			}
			return string(answer)
		})
		if output = out; fault != nil {
			err = fault
		}
	}()
	<-done
	if err != nil {
		return Execution{}, err
	}
	v, err := sdk.Parse(output)
	if err != nil {
		return Execution{}, err
	}
	return Execution{Output: json.RawMessage(v.Get("output").String())}, nil
}

func (n native) Validate(_ context.Context, step string, fields json.RawMessage) (json.RawMessage, error) {
	if len(fields) == 0 {
		fields = json.RawMessage(`{}`)
	}
	input, err := json.Marshal(map[string]any{"type": step, "fields": fields})
	if err != nil {
		return nil, err
	}
	out, fault := n.plugin.Check(string(input))
	if fault != nil {
		return nil, fault
	}
	v, err := sdk.Parse(out)
	return json.RawMessage(v.Get("problems").String()), err
}

var _ RoleTarget = native{}
