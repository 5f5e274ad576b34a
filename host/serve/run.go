package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/runtime"
)

// A Start says what Run found and began with.
type Start struct {
	URL      string           // of the API, empty without a port of its own
	PID      int              //
	Unclean  bool             // the process before this one did not end by itself
	Recovery runtime.Recovery // the runs that were not over
	Files    int              // definitions of the watched folders
	Problems int              // files that hold none
	Took     time.Duration    // from Run's call until everything was up
}

// Run carries on every run that is not over, arms triggers, watches the folder
// and listens, until ctx ends. Then it drains: nothing fires any more, steps
// under way get the configured time to come to their end, what is left is cut
// off, and the store is closed. Run returns nil for an end that left nothing in
// doubt. The API answers until then, and says that it is stopping.
func (s *Server) Run(ctx context.Context) error {
	var err error
	ran := false
	s.begun.Do(func() {
		ran = true
		defer close(s.ended)
		ctx, stop := context.WithCancel(ctx)
		defer stop()
		defer context.AfterFunc(s.life, stop)()
		err = s.run(ctx)
	})
	if !ran {
		return errors.New("run server: it runs already, or is closed")
	}
	return errors.Join(err, s.Close())
}

func (s *Server) run(ctx context.Context) error {
	began := time.Now()
	var port *api.Server
	if addr := s.host.Settings().Serve.Listen; addr != "" {
		var err error
		if port, err = s.listen(ctx, addr); err != nil {
			return err
		}
	}
	// What goes on beside the engine has a context that ends after the drain.
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer func() {
		s.sockets.Close() // else the port waits for watchers, who never go by themselves
		end()
		work.Wait()
	}()
	failed := make(chan error, 1)
	fail := func(what string, err error) {
		if err != nil && beside.Err() == nil {
			select {
			case failed <- fmt.Errorf("%s: %w", what, err):
			default:
			}
		}
	}
	if port != nil {
		work.Go(func() { fail("listen", port.Run(beside)) })
	}
	work.Go(func() { s.tellEvents(beside) })
	work.Go(func() { s.retrySocket(beside) })
	folder, unwatch := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { fail("watch folder", s.folder.Run(folder)) })
	defer func() { unwatch(); watching.Wait() }()
	start, err := s.begin(ctx, failed)
	if err != nil {
		return errors.Join(err, s.drain())
	}
	work.Go(func() { s.upkeep(beside) })
	if port != nil {
		start.URL = port.URL()
	}
	start.Took = time.Since(began)
	s.state.up()
	if s.opt.Ready != nil {
		s.opt.Ready(start)
	}
	select {
	case <-ctx.Done():
	case err = <-failed:
	}
	s.state.stopping()
	s.api.Drain()
	if s.opt.Stopping != nil {
		s.opt.Stopping()
	}
	unwatch()
	watching.Wait()
	return errors.Join(err, s.drain())
}

// begin brings everything up in the order in which it depends on each other:
// files first, so that runs go on with the newest revisions; runs before
// triggers, so that what fires finds the runs that are on.
func (s *Server) begin(ctx context.Context, failed <-chan error) (Start, error) {
	rt := s.host.Runtime()
	start := Start{PID: os.Getpid(), Unclean: rt.Unclean()}
	select {
	case <-s.folder.Ready():
	case err := <-failed:
		return start, err
	case <-ctx.Done():
		return start, nil
	}
	for _, f := range s.folder.Files() {
		start.Files++
		if len(f.Problems) > 0 {
			start.Problems++
		}
	}
	var err error
	start.Recovery, err = rt.ResumeAll(ctx, runtime.ResumeOptions{By: "server", OnInterrupt: s.opt.Host.OnInterrupt})
	if err != nil {
		return start, fmt.Errorf("resume runs: %w", err)
	}
	for _, f := range start.Recovery.Failed {
		s.log.Error("run cannot go on", "run", f.Run, "error", f.Error)
	}
	if err := rt.Arm(ctx); err != nil {
		return start, fmt.Errorf("arm triggers: %w", err)
	}
	return start, nil
}

// drain ends the engine's part in the order: triggers, steps, the rest.
func (s *Server) drain() error {
	rt := s.host.Runtime()
	rt.Disarm()
	ctx, cancel := context.WithTimeout(context.Background(), s.host.Settings().Serve.Drain.Std())
	defer cancel()
	return rt.Drain(ctx)
}

func (s *Server) listen(ctx context.Context, addr string) (*api.Server, error) {
	settled := s.host.Settings().Serve
	return s.api.Listen(ctx, api.ListenOptions{Addr: addr, CertFile: settled.TLSCert, KeyFile: settled.TLSKey, TLSElsewhere: settled.TLSElsewhere})
}
