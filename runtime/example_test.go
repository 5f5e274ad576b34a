package runtime_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log"

	"github.com/sentinel-runtime/sentinel/plugins"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/runtime/plugin"
)

// A program that embeds the runtime hands in the built-in step types, decodes a
// definition, starts a run and waits for its result. Here all state is in
// memory; Options.Dir keeps it, and Options.Commands and Models open the world.
func ExampleOpen() {
	ctx := context.Background()
	rt, err := runtime.Open(ctx, runtime.Options{
		Plugins: []plugin.Source{{Name: "builtin", Wasm: plugins.Builtin, Manifest: plugins.Manifest, Trusted: true}},
	})
	if err != nil {
		log.Fatal(err)
	}
	defer rt.Close()

	def, problems := rt.Decode([]byte(`{
	  "name": "greet",
	  "inputs": { "names": { "type": "array", "required": true } },
	  "steps": [
	    { "type": "loop", "each": "$names", "as": "name",
	      "steps": [ { "type": "emit", "event": "greeting:said", "data": "Hello, $name!" } ] }
	  ],
	  "loop": { "type": "once" }
	}`), "greet.json")
	if len(problems) > 0 {
		log.Fatal(problems)
	}
	id, err := rt.Start(ctx, def, runtime.StartOptions{
		Inputs: map[string]json.RawMessage{"names": json.RawMessage(`["Ada", "Grace"]`)},
	})
	if err != nil {
		log.Fatal(err)
	}
	res, err := rt.Wait(ctx, id)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(res.Sentinel, res.Status, "after", res.Iterations, "iteration")

	events, err := rt.Events("greeting:*", 10)
	if err != nil {
		log.Fatal(err)
	}
	for _, e := range events {
		fmt.Println(e.Name, string(e.Data))
	}
	// Output:
	// greet completed after 1 iteration
	// greeting:said "Hello, Ada!"
	// greeting:said "Hello, Grace!"
}
