package command

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Call runs the command that call names and returns its result as JSON. Every
// error is an *abi.Error. The call itself is not changed; the command sees a
// copy with its final parameters. ctx cancels it, and so does call.Deadline.
func (r *Registry) Call(ctx context.Context, call *Call) (json.RawMessage, error) {
	e := r.find(call.Command)
	if e == nil {
		return nil, r.unknown(call)
	}
	if call.By == ByModel && !Allowed(call.Tools, e.Command) {
		return nil, &abi.Error{
			Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("call %q: not among the tools of this step", e.Name),
			Hint:    r.offered(call.Tools),
		}
	}
	params, err := e.prepare(call)
	if err != nil {
		return nil, err
	}
	own := *call
	own.Params = params
	switch {
	case !call.Deadline.IsZero():
		var cancel context.CancelFunc
		ctx, cancel = context.WithDeadline(ctx, call.Deadline)
		defer cancel()
	case e.Timeout > 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, e.Timeout)
		defer cancel()
	}
	if err := ctx.Err(); err != nil {
		return nil, crossing(e.Name, err)
	}
	out, err := e.guarded(ctx, &own)
	if err != nil {
		return nil, crossing(e.Name, err)
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, abi.New(abi.Internal, fmt.Sprintf("call %q: result: %v", e.Name, err))
	}
	return text, nil
}

// guarded turns a panic of the command into an error, with its stack: a fault
// of one command must not take the host down.
func (e *entry) guarded(ctx context.Context, call *Call) (out any, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = abi.New(abi.Internal, fmt.Sprintf("call %q: panic: %v\n%s", e.Name, p, debug.Stack()))
		}
	}()
	return e.run(ctx, call)
}

// prepare renames aliases, coerces what a model gave, validates, and returns
// the parameters the command decodes.
func (e *entry) prepare(call *Call) (json.RawMessage, error) {
	value, err := decodeParams(call.Params)
	if err != nil {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("call %q: parameters: %v", e.Name, err)}
	}
	model := call.By == ByModel
	if text, ok := value.(string); ok && model {
		if inner, err := decodeParams(json.RawMessage(text)); err == nil {
			value = inner
		}
	}
	params, ok := value.(map[string]any)
	if !ok {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("call %q: parameters: must be an object", e.Name)}
	}
	for alias, name := range e.Aliases {
		v, given := params[alias]
		if !given {
			continue
		}
		if _, both := params[name]; both {
			return nil, &abi.Error{
				Code: abi.BadFields, Permanent: true, Field: alias,
				Message: fmt.Sprintf("call %q: field %q: is another name for %q, which is there too", e.Name, alias, name),
			}
		}
		delete(params, alias)
		params[name] = v
	}
	c := coercer{root: e.shape, lenient: model}
	final := c.coerce(e.shape, params, 0)
	if err := e.validate(final); err != nil {
		return nil, err
	}
	text, err := json.Marshal(final)
	if err != nil {
		return nil, abi.New(abi.Internal, fmt.Sprintf("call %q: parameters: %v", e.Name, err))
	}
	return text, nil
}

// crossing gives an error the code it is reported with. Errors of the standard
// library that have an obvious code get it; all else is a fault of the host.
func crossing(name string, err error) error {
	if known := abi.As(err); known != nil {
		return known
	}
	code := abi.Internal
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		code = abi.Timeout
	case errors.Is(err, context.Canceled):
		code = abi.Cancelled
	case errors.Is(err, fs.ErrNotExist):
		code = abi.NotFound
	case errors.Is(err, fs.ErrPermission):
		code = abi.Denied
	}
	return abi.New(code, fmt.Sprintf("call %q: %v", name, err))
}

// unknown is the error for a name that is not here. A model is told only of
// commands it may call.
func (r *Registry) unknown(call *Call) error {
	list := r.List()
	if call.By == ByModel {
		list = r.Offer(call.Tools)
	}
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	err := &abi.Error{Code: abi.NotFound, Permanent: true, Field: "command", Message: fmt.Sprintf("call %q: no such command", call.Command)}
	if near := nearestCommand(call.Command, names); near != "" {
		err.Hint = fmt.Sprintf("did you mean %q?", near)
	}
	return err
}

// nearestCommand also finds a command by its verb alone: "read" is code/read.
func nearestCommand(want string, names []string) string {
	i := slices.IndexFunc(names, func(n string) bool { return strings.HasSuffix(n, "/"+want) })
	if i >= 0 && want != "" {
		return names[i]
	}
	return nearest(want, names)
}

// nearest returns the candidate that want was most likely meant to be, or "".
func nearest(want string, candidates []string) string {
	if near := sentinels.Suggest(want, candidates); want != "" && len(near) > 0 {
		return near[0]
	}
	return ""
}

// offered lists the allowed commands for a hint, at most twenty.
func (r *Registry) offered(tools []string) string {
	list := r.Offer(tools)
	if len(list) == 0 {
		return "this step has no tools"
	}
	var names []string
	for _, c := range list[:min(len(list), 20)] {
		names = append(names, c.Name)
	}
	return "its tools are " + strings.Join(names, ", ")
}
