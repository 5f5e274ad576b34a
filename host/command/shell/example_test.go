//go:build unix

package shell_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/shell"
)

func Example() {
	m, err := shell.New(shell.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	defer m.Close()
	registry, err := command.NewRegistry(shell.Commands(m)...)
	if err != nil {
		fmt.Println(err)
		return
	}
	ctx := context.Background()
	started, err := registry.Call(ctx, &command.Call{
		Command: "code/shell/execute", Run: "run", Workspace: os.TempDir(),
		Params: json.RawMessage(`{"command":"echo building; echo error: no such file; exit 1","wait":false,"rules":[{"pattern":"error","classification":"error"}]}`),
	})
	if err != nil {
		fmt.Println(err)
		return
	}
	var e struct {
		ExecutionID string `json:"executionId"`
	}
	_ = json.Unmarshal(started, &e) // it is JSON by contract
	answer, err := m.Watch(ctx, "run", json.RawMessage(`{"executionId":"`+e.ExecutionID+`"}`))
	if err != nil {
		fmt.Println(err)
		return
	}
	var out shell.WatchAnswer
	_ = json.Unmarshal(answer, &out) // likewise
	fmt.Println(out.Text, *out.ExitCode)
	// Output:
	// building
	// error: no such file 1
}
