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
	"syscall"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Call runs the command that call names and returns its result as JSON. Every
// error is or wraps an *abi.Error. The call itself is not changed; the command sees a
// copy with its final parameters. ctx cancels it, and so does call.Deadline.
func (r *Registry) Call(ctx context.Context, call *Call) (json.RawMessage, error) {
	e, own, key, err := r.admit(call)
	if err != nil {
		return nil, err
	}
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
	done, err := r.takeKey(ctx, e, own, key)
	if err != nil {
		return nil, crossing(e.Name, err)
	}
	out, err := e.guarded(ctx, own)
	if err != nil {
		err = e.failed(err)
	}
	if done(err); err != nil {
		return nil, err
	}
	text, err := json.Marshal(out)
	if err != nil {
		return nil, abi.New(abi.Internal, fmt.Sprintf("call %q: result: %v", e.Name, err))
	}
	return text, nil
}

// admit returns the command that a call names, the call as the command sees it and the
// idempotency key that the caller chose, or the error of a call that its caller may not make
// or whose parameters are invalid.
func (r *Registry) admit(call *Call) (*entry, *Call, string, error) {
	e := r.find(call.Command)
	if e == nil {
		return nil, nil, "", r.unknown(call)
	}
	// A command step of a definition with a bound has that as its tools; see the next error.
	bound := call.Within != nil && slices.Equal(call.Tools, call.Within)
	if call.By == ByModel && !bound && !Allowed(call.Tools, e.Command) {
		return nil, nil, "", &abi.Error{
			Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("call %q: not among the tools of this step", e.Name),
			Hint:    r.offered(call.Tools, e.Command),
		}
	}
	if call.Within != nil && !Allowed(call.Within, e.Command) {
		return nil, nil, "", &abi.Error{
			Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("call %q: the definition of this run comes from a model or an agent that may not call it", e.Name),
			Hint: "if the definition is stored, `sentinel inbox` shows it to a person, who may accept it with `sentinel accept`; " +
				"if it was the value of a variable, name the command in a step, or in the tools of a step, of the definition that starts the run",
		}
	}
	if e.Effect == Decides && call.By != ByUser {
		return nil, nil, "", &abi.Error{
			Code: abi.Denied, Permanent: true,
			Message: fmt.Sprintf("call %q: only a person decides this, and the call is by %s", e.Name, call.caller()),
			Hint:    PersonHint(e.Name) + "; sentinel inbox lists what waits for one",
		}
	}
	params, key, err := e.prepare(call)
	if err != nil {
		return nil, nil, "", err
	}
	own := *call
	own.Params, own.registry = params, r
	if r.placed != nil && own.Bounded() {
		if own.base, err = r.placed(&own); err != nil {
			return nil, nil, "", err
		}
	}
	own.MayExecute = call.By == ByModel && r.mayExecute(call.Tools) && (call.Within == nil || r.mayExecute(call.Within))
	return e, &own, key, nil
}

// PersonHint says how a person calls a command that only they may call.
func PersonHint(name string) string { return "a person calls it: sentinel exec " + name }

// Bound returns the names of the commands that the caller may call, where it is a model, an
// agent or a run that has a bound itself: what it defines, stores and starts may call no
// others. It is nil for callers without a bound. The bound of a run passes on the entries for
// step types in it, see TypeEntry of package runtime/external; models and agents have none.
func (c *Call) Bound() []string { return c.BoundBy() }

// BoundBy is Bound for a definition that has bounds already, nil for none: they stay, also
// where a person stores it.
func (c *Call) BoundBy(bounds ...[]string) []string {
	bounds = slices.DeleteFunc(append(bounds, c.Within), func(within []string) bool { return within == nil })
	if !c.Held() && len(bounds) == 0 {
		return nil
	}
	names := []string{}
	for _, other := range c.registry.List() {
		outside := func(within []string) bool { return !Allowed(within, other) }
		if c.mayCall(other) && !slices.ContainsFunc(bounds, outside) {
			names = append(names, other.Name)
		}
	}
	if c.Held() { // the tools of a run with a bound are that bound
		bounds = append(bounds, c.Tools)
	}
	for _, entry := range bounds[len(bounds)-1] {
		missing := func(within []string) bool { return !slices.Contains(within, entry) }
		if strings.Contains(entry, ":") && !slices.ContainsFunc(bounds, missing) {
			names = append(names, entry)
		}
	}
	return names
}

// mayCall reports whether the caller itself may call a command.
func (c *Call) mayCall(other Command) bool {
	switch c.By {
	case ByModel:
		return Allowed(c.Tools, other)
	case ByAgent:
		return other.Effect != Decides
	}
	return true
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
// the parameters the command decodes, and the idempotency key that the caller chose.
func (e *entry) prepare(call *Call) (text json.RawMessage, key string, err error) {
	model := call.By == ByModel
	params, err := decodeObject(call.Params, model)
	if err != nil {
		bad := &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("call %q: parameters: %v", e.Name, err)}
		if place := (*strictjson.Error)(nil); errors.As(err, &place) {
			bad.Field = place.Path
		}
		return nil, "", bad
	}
	for alias, name := range e.Aliases {
		v, given := params[alias]
		if !given {
			continue
		}
		if _, both := params[name]; both {
			return nil, "", &abi.Error{
				Code: abi.BadFields, Permanent: true, Field: alias,
				Message: fmt.Sprintf("call %q: field %q: is another name for %q, which is there too", e.Name, alias, name),
			}
		}
		delete(params, alias)
		params[name] = v
	}
	shape := e.schema().shape
	c := coercer{root: shape, lenient: model}
	final := c.coerce(shape, params, 0)
	if call.By == ByUser || call.By == ByAgent {
		key = call.Key
	}
	if e.KeyParam != "" {
		if given, _ := params[e.KeyParam].(string); given != "" {
			key = given
		} else if key != "" {
			params[e.KeyParam] = key
		}
	}
	if err := e.validate(final, len(call.Params)); err != nil {
		return nil, "", err
	}
	text, err = json.Marshal(final)
	if err != nil {
		return nil, "", abi.New(abi.Internal, fmt.Sprintf("call %q: parameters: %v", e.Name, err))
	}
	return text, key, nil
}

// decodeObject reads parameters. A model may write its arguments as a string that
// holds the object. Arguments that could not be read as JSON arrive as a string
// too, and the error then says where they are wrong, so that the model can repeat
// the call.
func decodeObject(text json.RawMessage, model bool) (map[string]any, error) {
	value, err := decodeParams(text)
	for range 2 { // a string of a string is the most that models write
		inner, ok := value.(string)
		if !ok || !model || err != nil {
			break
		}
		value, err = decodeParams(json.RawMessage(inner))
	}
	if err != nil {
		return nil, err
	}
	params, ok := value.(map[string]any)
	if !ok {
		return nil, errors.New("must be an object")
	}
	return params, nil
}

// failed is the error of a call that ran. Where the command did nothing because no
// file could be opened, syscall.EMFILE or ENFILE stays in the chain, and the
// engine makes the call again. A command says so by wrapping both an *abi.Error
// and the errno; of one that may be repeated anyway the errno alone is enough.
func (e *entry) failed(err error) error {
	for _, errno := range []syscall.Errno{syscall.EMFILE, syscall.ENFILE} {
		if !errors.Is(err, errno) {
			continue
		}
		coded := abi.As(err)
		if coded == nil && !e.ReadOnly() && !e.Idempotent {
			break
		}
		if coded == nil {
			coded = &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("call %q: %v", e.Name, err), Hint: "raise the limit of open files: ulimit -n"}
		}
		return fmt.Errorf("%w: %w", coded, errno)
	}
	return crossing(e.Name, err)
}

// crossing gives an error the code it is reported with. Errors of the standard
// library that have an obvious code get it; all else is a fault of the host.
func crossing(name string, err error) error {
	if known := abi.As(err); known != nil {
		return known
	}
	if bad := badPath(name, err); bad != nil {
		return bad
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

// badPath is the error of a path that the file system cannot have, nil for every
// other error: the caller named it, so it is not a fault of the host.
func badPath(name string, err error) error {
	path := (*fs.PathError)(nil)
	code := abi.BadFields
	switch {
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EISDIR):
	case errors.Is(err, syscall.EINVAL) && errors.As(err, &path): // a zero byte in it
	case errors.Is(err, syscall.ENOTDIR):
		code = abi.NotFound // a file where the path has a folder
	default:
		return nil
	}
	const most = 200 // bytes; the path is in the middle, its cause at the end
	text := err.Error()
	if len(text) > most {
		text = strings.ToValidUTF8(text[:most/2]+"..."+text[len(text)-most/2:], "")
	}
	return &abi.Error{Code: code, Permanent: true, Message: fmt.Sprintf("call %q: %s", name, text)}
}

// unknown is the error for an unknown command. For a model it names only a command that the model may
// call.
func (r *Registry) unknown(call *Call) error {
	if e := r.absent(call.Command); e != nil {
		return &abi.Error{Code: e.Code, Permanent: e.Permanent, Field: "command", Message: fmt.Sprintf("call %q: %s", call.Command, e.Message), Hint: e.Hint}
	}
	err := &abi.Error{Code: abi.NotFound, Permanent: true, Field: "command", Message: fmt.Sprintf("call %q: no such command", call.Command)}
	switch {
	case call.Command == "":
	case call.By != ByModel:
		err.Hint = UnknownHint(call.Command, r.Names(), ProgramHint)
	default:
		if near := Nearest(call.Command, namesOf(r.Offer(call.Tools))); near != "" {
			err.Hint = fmt.Sprintf("did you mean %q?", near)
		}
	}
	return err
}

// mayExecute reports whether tools names a command that executes code.
func (r *Registry) mayExecute(tools []string) bool {
	return slices.ContainsFunc(tools, func(name string) bool {
		e := r.find(name)
		return e != nil && e.Effect == Executes
	})
}

// offered returns the hint for a call of c that tools does not allow: how to
// allow it, or at most twenty commands that are allowed.
func (r *Registry) offered(tools []string, c Command) string {
	if c.ByName && matchedByPattern(tools, c.Name) {
		return fmt.Sprintf("no pattern matches this command: name %q itself in the step's tools", c.Name)
	}
	list := r.Offer(tools)
	if len(list) == 0 {
		return "this step has no tools"
	}
	var names []string
	for i, c := range list {
		if i == 20 {
			names = append(names, fmt.Sprintf("and %d more", len(list)-i))
			break
		}
		names = append(names, c.Name)
	}
	return "its tools are " + strings.Join(names, ", ")
}
