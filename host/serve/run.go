package serve

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime"
)

// A Start is the result of the server's start, for [Options.Ready].
type Start struct {
	URL      string           // of the API, empty without a port
	Verifier string           // URL of the server with the verifier alone, empty without one
	PID      int              //
	Unclean  bool             // the previous process crashed or was killed
	Recovery runtime.Recovery // of the unfinished runs
	Files    int              // definitions of the watched folders
	Problems int              // files with problems
	Took     time.Duration    // from the call of Open until everything was up
}

// Run resumes every unfinished run, arms triggers, watches the folder and
// listens, until ctx ends. Then it shuts down gracefully: it disarms triggers,
// gives active steps the configured grace period, interrupts what is left and
// closes the store. Until then the API answers, and reports that it is stopping.
// Run returns nil if nothing was left in doubt.
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
		return errors.New("run server: it is already running, or closed")
	}
	return errors.Join(err, s.Close())
}

func (s *Server) run(ctx context.Context) error {
	s.logMeant()
	ports, err := s.listen(ctx)
	if err != nil {
		return err
	}
	// The context of what runs beside the engine; it ends after the drain.
	beside, end := context.WithCancel(context.WithoutCancel(ctx))
	var work sync.WaitGroup
	defer func() {
		s.sockets.Close() // otherwise the port waits for WebSocket clients, which do not leave by themselves
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
	for name, port := range ports {
		work.Go(func() { fail(name, port.Run(beside)) })
	}
	work.Go(func() { s.publishEvents(beside) })
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
	work.Go(func() { s.host.RunTickets(beside) })
	if port := ports[listenerAPI]; port != nil {
		start.URL = port.URL()
		s.host.Listening(start.URL)
	}
	if port := ports[listenerVerifier]; port != nil {
		start.Verifier = port.URL()
	}
	start.Took = time.Since(s.opened)
	s.state.up()
	if s.opt.Ready != nil {
		s.opt.Ready(start)
	}
	s.logWebhooks()
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

// logWebhooks logs where the requests of each webhook go.
func (s *Server) logWebhooks() {
	list, err := s.host.Webhooks()
	if err != nil {
		s.log.Warn("the webhooks of some definitions are not listed", "error", err)
	}
	for _, t := range list {
		if t.Armed {
			s.log.Info("webhook", "sentinel", t.Sentinel, "url", t.Requests.URL)
		} else {
			s.log.Warn("webhook refuses all requests", "sentinel", t.Sentinel, "url", t.Requests.URL, "error", cmp.Or(t.Problem, t.Ended, "its triggers are paused"))
		}
	}
}

// begin starts the parts in the order of their dependencies: files first, so that
// runs continue with the newest revisions; runs before triggers, so that overlap
// policies see the active runs.
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
	if ctx.Err() != nil { // stopped during the start
		return start, nil
	}
	if err != nil {
		return start, fmt.Errorf("resume runs: %w", err)
	}
	for _, f := range start.Recovery.Failed {
		attrs := []any{"run", f.Run, "sentinel", f.Sentinel, "error", f.Error}
		if f.Error.Hint != "" {
			attrs = append(attrs, "hint", f.Error.Hint)
		}
		s.log.Error("run cannot continue", attrs...)
	}
	if err := rt.Arm(ctx); err != nil && ctx.Err() == nil {
		return start, fmt.Errorf("arm triggers: %w", err)
	}
	return start, nil
}

// drain disarms triggers, waits for steps, then interrupts what is left.
func (s *Server) drain() error {
	rt := s.host.Runtime()
	rt.Disarm()
	ctx, cancel := context.WithTimeout(context.Background(), s.host.Settings().Serve.Drain.Std())
	defer cancel()
	return rt.Drain(ctx)
}
