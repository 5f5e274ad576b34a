package command

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// Options are the properties of a command that its Go types cannot say. The
// zero value but for Effect is a public command that is not idempotent and has no time limit
// of its own. The fields are documented at [Command].
type Options struct {
	Effect     Effect                                                           // required
	Idempotent bool                                                             // default false
	Reads      map[string][]string                                              // default none
	Repeatable func(params json.RawMessage) bool                                // default nil
	AsRun      bool                                                             // default false
	InStore    bool                                                             // default false
	Search     bool                                                             // default false
	Waits      func(params json.RawMessage) bool                                // default nil
	Private    bool                                                             // default false: offered to models
	ByName     bool                                                             // default false: patterns match it if its effect lets them
	Shell      []string                                                         // default none
	Raw        []string                                                         // default none
	Defines    []string                                                         // default none
	Aliases    map[string]string                                                // default none
	KeyParam   string                                                           // default none
	Timeout    time.Duration                                                    // default none
	Version    string                                                           // default empty
	Began      func(ctx context.Context, key string, attempt int) (bool, error) // default nil
	// Recursive are the struct types of the result that contain lists of
	// themselves; its schema has a definition of each. Default none.
	Recursive []reflect.Type
}

// New makes a command of fn. In is a struct; its JSON tags name the parameters,
// omitempty or omitzero makes one optional, and these tags refine its schema:
//
//	jsonschema:"words"   the description
//	enum:"a,b,c"         the allowed strings
//	minimum:"1" maximum:"50"
//
// New panics if In is not a struct or the options have no effect. The first use of a schema panics if a type
// has none. Both are mistakes in the program.
func New[In, Out any](name, summary string, opt Options, fn func(ctx context.Context, call *Call, in In) (Out, error)) Command {
	c := opt.command(name, summary)
	in := reflect.TypeFor[In]()
	if in.Kind() != reflect.Struct {
		panic(fmt.Sprintf("command %q: parameters must be a struct, not %s", name, in))
	}
	c.input, c.parameters = schemaOf(name, in, input), parameterNames(in)
	c.output = schemaOf(name, reflect.TypeFor[Out](), output, opt.Recursive...)
	c.run = func(ctx context.Context, call *Call) (any, error) {
		var in In
		if err := strictjson.DecodeOpen(call.Params, &in, strictjson.Unlimited()); err != nil {
			// Valid under the schema, yet not for Go: a number out of range.
			return nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("call %q: %v", name, err)}
		}
		return fn(ctx, call, in)
	}
	return c
}

// NewDynamic makes a command whose schemas are known only while the program
// runs, such as a tool of an MCP server. A nil schema accepts any object, or
// says nothing of the result.
func NewDynamic(name, summary string, in, out json.RawMessage, opt Options, fn func(ctx context.Context, call *Call) (json.RawMessage, error)) Command {
	c := opt.command(name, summary)
	if len(in) == 0 {
		in = json.RawMessage(`{"type":"object"}`)
	}
	c.input = newLazySchema(func() json.RawMessage { return in })
	c.output = newLazySchema(func() json.RawMessage { return out })
	c.run = func(ctx context.Context, call *Call) (any, error) { return fn(ctx, call) }
	return c
}

// command copies the options into a command without schemas and function.
func (o Options) command(name, summary string) Command {
	if !slices.Contains(effects, o.Effect) {
		panic(fmt.Sprintf("command %s: effect %q: want one of %v", name, o.Effect, effects))
	}
	byName := o.ByName || !o.Effect.Matchable()
	return Command{
		Name: name, Summary: summary,
		Effect: o.Effect, Idempotent: o.Idempotent, Reads: o.Reads, Repeatable: o.Repeatable, AsRun: o.AsRun, InStore: o.InStore,
		Search: o.Search, Waits: o.Waits, Private: o.Private || byName, ByName: byName,
		Shell: o.Shell, Raw: o.Raw, Defines: o.Defines, Aliases: o.Aliases, KeyParam: o.KeyParam, Timeout: o.Timeout, Version: o.Version,
		Began: o.Began,
	}
}
