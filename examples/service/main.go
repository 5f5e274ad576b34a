// Command service is a program of its own, a small shop, with the host process
// inside: the whole of `sentinel serve` as a part of its server.
//
//	go run ./examples/service FOLDER
//
// It shows what a program does that embeds the service:
//
//   - [open] mounts the API below a path of the program's mux, on the program's
//     listener, behind the program's own keys: the service opens no port.
//   - commands.go adds a command that steps, models and people call like any
//     other, and says what may be repeated after a crash.
//   - trigger.go adds a kind of trigger, which misses nothing while the program
//     is down.
//   - [shopfront.serve] runs it until the program is asked to end, and drains.
//   - The test steers it by host/client, as another program would.
//
// Whether to embed this or the engine alone, see ../embed: the engine is a
// library without HTTP, files that are watched, or triggers of its own.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"syscall"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

func main() {
	runtime.ServeChild() // first of all: in a child process it does not return
	// The first signal drains; the handler is gone then, so a second one ends the
	// process at once.
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	if err := run(ctx, os.Stdout, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "service:", err)
		os.Exit(1)
	}
}

// run serves the shop in a folder until ctx ends.
func run(ctx context.Context, w io.Writer, args []string) error {
	if len(args) != 1 {
		return errors.New("usage: service FOLDER")
	}
	key := os.Getenv("SHOP_KEY")
	if key == "" {
		return errors.New("SHOP_KEY is not set: it is what callers must know")
	}
	s, err := open(ctx, args[0], map[string]string{key: "the owner"})
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", "127.0.0.1:8181")
	if err != nil {
		return errors.Join(err, s.close())
	}
	fmt.Fprintf(w, "orders go to http://%s/orders, the sentinels' API is below /sentinel\n", listener.Addr())
	server := &http.Server{Handler: s.handler(), ReadHeaderTimeout: 10 * time.Second}
	served := make(chan error, 1)
	go func() { served <- server.Serve(listener) }()
	// The API answers while the service drains, so the listener ends after it.
	err = s.serve(ctx)
	bye, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	err = errors.Join(err, server.Shutdown(bye))
	if end := <-served; !errors.Is(end, http.ErrServerClosed) {
		err = errors.Join(err, end)
	}
	return err
}
