// Command follow prints every event of a server as it comes about, one a line:
// the live feed, by the Go client. SENTINEL_URL and SENTINEL_TOKEN say where the
// server is. Its arguments are patterns of event names, all without any.
//
// A server that ends is waited for: the feed goes on behind the last event that
// was seen, in the next process too.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := follow(ctx, os.Stdout, os.Args[1:]); err != nil && ctx.Err() == nil {
		fmt.Fprintln(os.Stderr, "follow:", err)
		os.Exit(1)
	}
}

// follow writes events to w until ctx ends.
func follow(ctx context.Context, w io.Writer, patterns []string) error {
	c, named, err := client.FromEnv(os.Getenv)
	if err != nil {
		return err
	}
	if !named {
		return errors.New(client.EnvURL + " names no server")
	}
	defer c.Close()
	var topics []string
	for _, p := range patterns {
		topics = append(topics, "events:"+p)
	}
	if len(topics) == 0 {
		topics = []string{"events:**"}
	}
	return c.Watch(ctx, client.WatchOptions{Topics: topics}, func(m client.Message) error {
		if m.Gap != nil { // the server did not keep for us what it told meanwhile
			_, err := fmt.Fprintln(w, "events may be missing here; `sentinel events` has them all")
			return err
		}
		var e sentinels.Event
		if err := json.Unmarshal(m.Event, &e); err != nil {
			return err
		}
		_, err := fmt.Fprintf(w, "event %s from %s\n", e.Name, e.Source)
		return err
	})
}
