package livefeed_test

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// A watcher reads a run, goes away, and comes back to where it was.
func Example() {
	f := livefeed.New(livefeed.Options{Epoch: "demo"})
	defer f.Close()
	observer := runtime.Observer{Progress: f.Progress}

	watcher, err := f.Subscribe("", []string{"run:r1"})
	if err != nil {
		panic(err)
	}
	observer.Progress(runtime.Progress{Event: runtime.OnRunStart, Run: "r1"})
	e, err := watcher.Next(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Cursor, e.Topic, e.Kind)
	watcher.Close()

	observer.Progress(runtime.Progress{Event: runtime.OnRunEnd, Run: "r1"})
	watcher, err = f.Subscribe(e.Cursor.String(), []string{"run:r1"})
	if err != nil {
		panic(err)
	}
	defer watcher.Close()
	e, err = watcher.Next(context.Background())
	if err != nil {
		panic(err)
	}
	fmt.Println(e.Cursor, e.Topic, e.Kind)
	// Output:
	// demo-1 run:r1 run.start
	// demo-2 run:r1 run.end
}
