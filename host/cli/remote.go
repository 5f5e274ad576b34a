package cli

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/control"
)

// A remote is another process that answers in this one's place. Its errors are
// those of the commands, with their codes, so that exit codes do not depend on
// who carried a command out.
type remote interface {
	Call(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error)
	Commands(ctx context.Context) ([]control.Command, error)
	Close()
}

// A named server is one that SENTINEL_URL names. It may be on another machine:
// no path of ours means anything there.
type namedServer struct{ client *client.Client }

func (n namedServer) Call(ctx context.Context, name string, params json.RawMessage) (json.RawMessage, error) {
	var out json.RawMessage
	return out, n.client.Call(ctx, name, params, &out)
}

func (n namedServer) Commands(ctx context.Context) ([]control.Command, error) {
	list, err := n.client.Commands(ctx)
	if err != nil {
		return nil, err
	}
	out := make([]control.Command, len(list))
	for i, c := range list {
		out[i] = control.Command{Name: c.Name, Summary: c.Summary, Input: c.Input, Output: c.Output, ReadOnly: c.ReadOnly}
	}
	return out, nil
}

func (n namedServer) Close() { n.client.Close() }

// dial returns a session with the process that answers: the server that
// SENTINEL_URL names, else the owner of the store. The error is [control.ErrNoOwner] if there is neither.
// A store that is named on the command line goes before the environment.
func (a *app) dial(ctx context.Context) (*session, error) {
	if a.flags.state == "" {
		// A URL that is none is an error and not nobody: to fall back to the store of
		// this folder would do things in the wrong place.
		c, named, err := client.FromEnv(a.env.Getenv)
		if err != nil {
			return nil, err
		}
		if named {
			a.sayThrough("through the server at " + c.URL())
			return &session{client: namedServer{c}, live: c, info: control.Info{Serves: true}, away: true, state: a.state()}, nil
		}
	}
	// A user who could have put the socket there would get every request.
	if err := a.checkTrust(a.state()); err != nil {
		return nil, err
	}
	c, info, err := control.Dial(ctx, a.state())
	if err != nil {
		return nil, errors.Join(err, control.ErrNoOwner) // also for a socket that answers nonsense
	}
	s := &session{client: c, info: info, state: a.state()}
	if info.Serves {
		s.live = client.Local(a.state()) // beside s.client, for the feed alone
		a.sayThrough("through the server, process " + strconv.Itoa(info.PID))
	} else if a.flags.verbose {
		a.say("process %d has the store and answers", info.PID)
	}
	return s, nil
}

// sayThrough says once who answers: what a verb shows is otherwise a riddle to
// whoever forgot that a server runs.
func (a *app) sayThrough(text string) {
	if a.through || a.flags.quiet || a.flags.output != asTable {
		return
	}
	a.through = true
	a.note("%s\n", a.paint.dim(escaped(text)))
}

var (
	_ remote = namedServer{}
	_ remote = (*control.Client)(nil)
)
