package data_test

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/data"
)

func Example() {
	registry, err := command.NewRegistry(data.Commands(data.Options{})...)
	if err != nil {
		fmt.Println(err)
		return
	}
	records := memory{}
	for _, c := range []command.Call{
		{Command: "data/create", Params: json.RawMessage(`{"collection":"notes","id":"first","data":{"text":"hello"}}`)},
		{Command: "data/update", Params: json.RawMessage(`{"collection":"notes","id":"first","data":{"done":true},"revision":1}`)},
		{Command: "data/update", Params: json.RawMessage(`{"collection":"notes","id":"first","data":{"done":false},"revision":1}`)},
		{Command: "data/delete", Params: json.RawMessage(`{"collection":"notes","id":"first"}`)},
	} {
		c.Records = records
		if _, err := registry.Call(context.Background(), &c); err != nil {
			fmt.Println(err)
			continue
		}
		fmt.Println(c.Command, "ok")
	}
	// Output:
	// data/create ok
	// data/update ok
	// data/update: document "first" has revision 2 by now, not 1
	// data/delete ok
}
