package command_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

func Example() {
	type in struct {
		Name  string `json:"name" jsonschema:"whom to greet"`
		Times int    `json:"times,omitempty" jsonschema:"how often" minimum:"1" maximum:"3"`
	}
	type out struct {
		Text string `json:"text"`
	}
	greet := command.New("demo/greet", "Greet a person.", command.Options{Effect: command.Reads},
		func(_ context.Context, _ *command.Call, p in) (out, error) {
			return out{fmt.Sprintf("hello %s, %d", p.Name, p.Times)}, nil
		})
	registry, err := command.NewRegistry(greet)
	if err != nil {
		fmt.Println(err)
		return
	}
	call := &command.Call{Command: "demo/greet", By: command.ByModel, Params: json.RawMessage(`{"name":"Ada","times":"2"}`)}
	answer, err := registry.Call(context.Background(), call)
	fmt.Println(string(answer), err)

	call.Params = json.RawMessage(`{"nam":"Ada"}`)
	_, err = registry.Call(context.Background(), call)
	fmt.Println(abi.As(err).Code, abi.As(err).Field, abi.As(err).Hint)
	// Output:
	// {"text":"hello Ada, 2"} <nil>
	// bad_fields nam did you mean "name"?
}
