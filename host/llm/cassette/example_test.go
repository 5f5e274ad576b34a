package cassette_test

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func Example() {
	const tape = `{"cassette":"sentinel","version":1}
{"n":1,"key":"","request":{"messages":[{"role":"user","content":"3 tests fail"}]},"reply":{"text":"Fix a.go.","toolCalls":[],"finish":"stop","usage":{"inputTokens":9,"outputTokens":4,"costUsd":0,"calls":1},"provider":"openai","model":"gpt-4o"},"ms":800}
`
	player, err := cassette.Read("fix.jsonl", strings.NewReader(tape), cassette.PlayOptions{})
	if err != nil {
		fmt.Println(err)
		return
	}
	reply, err := player.Turn(context.Background(), sentinels.Turn{
		Messages: []sentinels.Message{{Role: "user", Content: "2 tests fail"}},
	}, nil)
	fmt.Println(reply.Text, err)
	_ = player.WriteReport(os.Stdout)
	// Output:
	// Fix a.go. <nil>
	// cassette fix.jsonl: 1 requests, 1 recorded turns, 1 diverged, 0 turns not asked for
	//   request 1 is answered by turn 1 and differs from it in messages[0].content
	//     messages[0].content
	//       was "3 tests fail"
	//       now "2 tests fail"
}
