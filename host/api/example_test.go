package api_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/command"
)

// Whatever is in the registry can be called over HTTP, by those with a token.
func Example() {
	hello := command.NewDynamic("greet/hello", "Say hello.", nil, nil, command.Options{Effect: command.Reads},
		func(_ context.Context, call *command.Call) (json.RawMessage, error) {
			return json.RawMessage(`{"heard":` + string(call.Params) + `}`), nil
		})
	registry, err := command.NewRegistry(hello)
	if err != nil {
		panic(err)
	}
	a, err := api.New(api.Options{Commands: registry, Tokens: oneToken(goodToken)})
	if err != nil {
		panic(err)
	}
	srv := httptest.NewServer(a.Handler())
	defer srv.Close()

	for _, token := range []string{"guessed", goodToken} {
		req, err := http.NewRequest(http.MethodPost, srv.URL+"/v1/commands/greet/hello", strings.NewReader(`{"name":"Ada"}`))
		if err != nil {
			panic(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("Authorization", "Bearer "+token)
		res, err := srv.Client().Do(req)
		if err != nil {
			panic(err)
		}
		text, err := io.ReadAll(res.Body)
		if err != nil {
			panic(err)
		}
		res.Body.Close()
		if res.StatusCode == http.StatusOK {
			fmt.Printf("%s %s", res.Status, text)
		} else {
			fmt.Println(res.Status)
		}
	}
	// Output:
	// 401 Unauthorized
	// 200 OK {"heard":{"name":"Ada"}}
}
