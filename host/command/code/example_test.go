package code_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
)

func Example() {
	dir, err := os.MkdirTemp("", "example")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	registry, err := command.NewRegistry(code.Commands(code.Options{})...)
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, c := range []struct{ name, params string }{
		{"code/write", `{"path":"greet.txt","content":"hello world\n"}`},
		{"code/edit", `{"path":"greet.txt","old":"world","new":"sentinel"}`},
		{"code/search", `{"pattern":"sent.*"}`},
		{"code/write", `{"path":".git/hooks/pre-commit","content":"evil"}`},
	} {
		answer, err := registry.Call(context.Background(), &command.Call{Command: c.name, Params: json.RawMessage(c.params), By: command.ByModel, Workspace: dir})
		if err != nil {
			fmt.Println(err)
			continue
		}
		var out struct{ Path, Text string }
		_ = json.Unmarshal(answer, &out) // it is JSON by contract
		fmt.Println(c.name, out.Path+out.Text)
	}
	// Output:
	// code/write greet.txt
	// code/edit greet.txt
	// code/search greet.txt:1: hello sentinel
	//
	// write ".git/hooks/pre-commit": models may not write files that steer tools
}
