package client_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http/httptest"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A program defines nothing here: it starts what is there and calls a command.
func Example() {
	registry, err := command.NewRegistry(
		command.NewDynamic("sentinel/start", "Start a run.", nil, nil, command.Options{Effect: command.Changes, Idempotent: true},
			func(context.Context, *command.Call) (json.RawMessage, error) {
				return json.RawMessage(`{"run":"0199a3c0-0000-7000-8000-000000000001"}`), nil
			}),
		command.NewDynamic("code/read", "Read a file.", nil, nil, command.Options{Effect: command.Reads},
			func(context.Context, *command.Call) (json.RawMessage, error) {
				return nil, &abi.Error{Code: abi.NotFound, Message: "no file", Hint: "look with code/tree"}
			}),
	)
	if err != nil {
		panic(err)
	}
	server, err := api.New(api.Options{Commands: registry, Tokens: oneToken{}})
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(server.Handler())
	defer srv.Close()

	c, err := client.New(client.Options{URL: srv.URL, Token: token})
	if err != nil {
		panic(err)
	}
	defer c.Close()
	run, err := c.Start(context.Background(), "nightly", client.StartOptions{Key: "2026-10-01"})
	fmt.Println(run, err)

	err = c.Call(context.Background(), "code/read", map[string]string{"path": "README"}, nil)
	fmt.Println(abi.CodeOf(err), abi.As(err).Hint)
	// Output:
	// 0199a3c0-0000-7000-8000-000000000001 <nil>
	// not_found look with code/tree
}
