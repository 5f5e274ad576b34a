package process

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/client"
	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/livefeed"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Call implements [client.Engine].
func (p *Process) Call(ctx context.Context, name string, params, into any) error {
	if params == nil {
		params = struct{}{}
	}
	body, err := json.Marshal(params)
	if err != nil {
		return fmt.Errorf("call %q: %w", name, err)
	}
	call := &command.Call{Command: name, Params: body}
	call.By, call.As = command.CallerOf(principal.From(ctx))
	out, err := p.host.CallAs(ctx, call)
	if err != nil || into == nil {
		return err
	}
	if err := json.Unmarshal(out, into); err != nil {
		return fmt.Errorf("call %q: read the result: %w", name, err)
	}
	return nil
}

// Commands implements [client.Engine].
func (p *Process) Commands(context.Context) ([]client.Command, error) {
	all := p.host.Commands().List()
	list := make([]client.Command, len(all))
	for i, c := range all {
		list[i] = client.Command{Name: c.Name, Summary: c.Summary, Input: c.Input(), Output: c.Output(), Effect: string(c.Effect), ReadOnly: c.ReadOnly(), Idempotent: c.Idempotent}
	}
	return list, nil
}

// Cursor implements [client.Engine].
func (p *Process) Cursor(context.Context) (string, error) { return p.feed.Cursor().String(), nil }

// Watch implements [client.Engine].
func (p *Process) Watch(ctx context.Context, opt client.WatchOptions, fn func(client.Message) error) error {
	sub, err := p.feed.Subscribe(opt.Cursor, opt.Topics)
	if err != nil {
		return err
	}
	defer sub.Close()
	for {
		e, err := sub.Next(ctx)
		switch {
		case errors.Is(err, livefeed.ErrClosed):
			return errClosed
		case err != nil:
			return context.Cause(ctx)
		}
		m := client.Message{Cursor: e.Cursor.String(), Topic: e.Topic, Also: e.Also, Kind: e.Kind, Time: e.Time, Progress: e.Progress()}
		if m.Progress == nil {
			m.Event = e.Body()
		}
		if e.Gap != nil {
			m.Gap = &client.Gap{Lost: e.Gap.Lost, UpTo: e.Gap.UpTo, Cursor: m.Cursor}
		}
		if err := fn(m); err != nil {
			return err
		}
	}
}

// Logs implements [client.Engine]. A line that is still being written is left out.
func (p *Process) Logs(ctx context.Context, id sentinels.RunID, from int) iter.Seq2[json.RawMessage, error] {
	return func(yield func(json.RawMessage, error) bool) {
		f, err := p.host.OpenRunLog(ctx, id)
		if errors.Is(err, fs.ErrNotExist) {
			return
		}
		if err != nil {
			yield(nil, err)
			return
		}
		defer f.Close()
		in := bufio.NewReader(f)
		for n := 0; ; n++ {
			line, err := in.ReadBytes('\n')
			switch {
			case errors.Is(err, io.EOF):
				return
			case err != nil:
				yield(nil, err)
				return
			case n >= from && !yield(line, nil):
				return
			}
		}
	}
}

// Output implements [client.Engine].
func (p *Process) Output(ctx context.Context, opt client.OutputOptions) (io.ReadCloser, error) {
	o, err := p.host.Output(ctx, opt.Execution, host.OutputOptions{Stream: opt.Stream, Tail: opt.Tail, Times: opt.Times, Follow: opt.Follow})
	if err != nil || !opt.Follow {
		return o, err
	}
	return &followed{ctx, o}, nil
}

// A followed output is read until its command is over.
type followed struct {
	ctx context.Context
	api.Output
}

func (f *followed) Read(p []byte) (int, error) {
	for {
		n, err := f.Output.Read(p)
		if n > 0 || !errors.Is(err, io.EOF) {
			return n, err
		}
		if more, err := f.Follow(f.ctx); err != nil || !more {
			return 0, cmp.Or(err, io.EOF)
		}
	}
}
