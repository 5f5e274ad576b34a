package api

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// inCommand is what path values are called in the parameters of commands.
var inCommand = map[string]string{"id": "sentinelId", "run": "run", "address": "address", "revision": "revision", "ticket": "id", "rule": "rule"}

// forward answers a request with what the route's command returns.
func (a *API) forward(w http.ResponseWriter, r *http.Request, route *Route) error {
	result, err := a.forwarded(r, route)
	switch {
	case err != nil:
		return err
	case route.answer != nil:
		return route.answer(a, w, r, route, result)
	}
	return writeJSON(w, route.Status, result)
}

// forwarded calls the route's command with the parameters of a request.
func (a *API) forwarded(r *http.Request, route *Route) (json.RawMessage, error) {
	// The body stays in memory until the command has answered: its bytes are
	// those of the parameters.
	body, release, err := a.readJSON(r, route)
	if err != nil {
		return nil, err
	}
	defer release()
	params, err := a.params(r, route, body)
	if err != nil {
		return nil, err
	}
	on, err := a.precondition(r, route, params)
	if err != nil {
		return nil, err
	}
	result, err := a.call(r, route.Command, params)
	if err != nil {
		return nil, route.place(body, a.stale(r, params, on, err))
	}
	return result, nil
}

// params joins body, path, query and what the route fixes. The path counts: a
// body that names another object is refused rather than overruled.
func (a *API) params(r *http.Request, route *Route, body json.RawMessage) (map[string]json.RawMessage, error) {
	params, err := bodyParams(route, body)
	// In this order, so that what the table fixes has the last word.
	if err == nil {
		err = route.place(body, pathParams(r, route, params))
	}
	if err == nil {
		err = queryParams(r.URL, route, params)
	}
	for name, v := range route.fixed {
		if err == nil {
			params[name], err = json.Marshal(v)
		}
	}
	return params, err
}

// bodyParams makes parameters of a body. A route that takes none refuses one:
// its sender expects an effect.
func bodyParams(route *Route, body json.RawMessage) (map[string]json.RawMessage, error) {
	switch {
	case route.body == "*":
		return members(body)
	case route.body == "" && len(body) > 0:
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: "this takes no body"}
	case route.body == "":
		return map[string]json.RawMessage{}, nil
	}
	// The command's schema says what the object has to hold. That it is an object
	// is checked here, where the error can name the body.
	if len(body) == 0 {
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("the body is empty: want the JSON object of a %s", route.body)}
	}
	if _, err := members(body); err != nil {
		return nil, err
	}
	return map[string]json.RawMessage{route.body: body}, nil
}

// pathParams adds the values of the path under the names that commands have
// for them.
func pathParams(r *http.Request, route *Route, params map[string]json.RawMessage) error {
	for _, name := range route.placeholders() {
		value, err := json.Marshal(r.PathValue(name))
		if err != nil {
			return err
		}
		if name == "revision" {
			value = []byte(r.PathValue(name)) // digits, as the guard saw
		}
		param := inCommand[name]
		// Programs that fill in every field send it too; only another one is wrong.
		if given, ok := params[param]; ok && !bytes.Equal(bytes.TrimSpace(given), value) {
			return &abi.Error{Code: abi.BadFields, Permanent: true, Field: param, Message: fmt.Sprintf("body: %s is not the one of the path", param)}
		}
		params[param] = value
	}
	return nil
}

// queryParams takes only what the table names: a filter that is misspelt must
// not pass for no filter.
func queryParams(u *url.URL, route *Route, params map[string]json.RawMessage) error {
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return &abi.Error{Code: abi.BadFields, Permanent: true, Message: "query: is not encoded as a query is"}
	}
	given := map[string]string{} // what gave each parameter
	for _, name := range slices.Sorted(maps.Keys(query)) {
		values := query[name]
		i := slices.IndexFunc(route.Query, func(p Param) bool { return p.Name == name })
		if i < 0 {
			return unknownQuery(name, route)
		}
		if len(values) > 1 {
			return &abi.Error{Code: abi.BadFields, Permanent: true, Field: name, Message: fmt.Sprintf("query: %q is given twice", name)}
		}
		p := route.Query[i]
		value, err := p.value(values[0])
		if err != nil {
			return err
		}
		// Query names are short ones for people; commands have their own.
		as := p.As
		if as == "" {
			as = p.Name
		}
		if other, ok := given[as]; ok {
			return &abi.Error{Code: abi.BadFields, Permanent: true, Field: name, Message: fmt.Sprintf("query: %q and %q are the same parameter", other, name)}
		}
		if as != "-" {
			params[as], given[as] = value, name
		}
	}
	return nil
}

// unknownQuery is the error of a parameter that the table does not have.
func unknownQuery(name string, route *Route) error {
	var known []string
	for _, p := range route.Query {
		known = append(known, p.Name)
	}
	e := &abi.Error{Code: abi.BadFields, Permanent: true, Field: name, Message: fmt.Sprintf("query: unknown parameter %.80q", name)}
	switch near := sentinels.Suggest(name, known); {
	case len(near) > 0:
		e.Hint = fmt.Sprintf("did you mean %q?", near[0])
	case len(known) > 0:
		e.Hint = "known: " + strings.Join(known, ", ")
	default:
		e.Hint = "the route takes no query parameters"
	}
	return e
}

// value reads the text of a query parameter as its type.
func (p Param) value(text string) (json.RawMessage, error) {
	switch p.Type {
	case "integer":
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: p.Name, Message: fmt.Sprintf("query: %s %.40q is no whole number", p.Name, text)}
		}
		return strconv.AppendInt(nil, n, 10), nil
	case "boolean":
		if text != "true" && text != "false" {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: p.Name, Message: fmt.Sprintf("query: %s %.40q is neither true nor false", p.Name, text)}
		}
		return json.RawMessage(text), nil
	case "list":
		return json.Marshal(strings.Split(text, ","))
	case typeDuration:
		ms, err := milliseconds(text)
		if err != nil {
			return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: p.Name, Message: fmt.Sprintf("query: %s %.40q is not a duration", p.Name, text),
				Hint: "write a number with its unit, such as 30s or 5m"}
		}
		return strconv.AppendInt(nil, ms, 10), nil
	}
	return json.Marshal(text)
}

// call calls a command for the person behind a request.
func (a *API) call(r *http.Request, name string, params any) (json.RawMessage, error) {
	c, ok := a.opt.Commands.Lookup(name)
	key, err := idempotencyKey(r)
	if err != nil {
		return nil, err
	}
	switch {
	case key == "" || !ok || c.ReadOnly():
		key = "" // a read may be repeated anyway
	case !c.Idempotent:
		return nil, &abi.Error{Code: abi.BadFields, Permanent: true, Field: keyHeader,
			Message: fmt.Sprintf("command %q cannot promise to act once for a key", name), Hint: "leave out the header " + keyHeader}
	}
	text, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	at := placeOf(r.Context())
	if c.MayWait(text) {
		at.giveBack()
	} else if err := at.take(r.Context()); err != nil {
		return nil, err
	}
	// By whom the token or the socket proved. The request's context ends when the caller
	// goes away.
	ctx, end := a.limitWait(r.Context(), name)
	defer end()
	if c.Search {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
		defer context.AfterFunc(a.searching, func() { cancel(context.Cause(a.searching)) })()
	}
	answer := a.openAnswer(r)
	result, err := a.opt.Commands.Call(ctx, callBy(r, &command.Call{Command: name, Params: text, Attempt: 1, Key: key, Charge: answer.charging(), Busy: at.busy}))
	if err != nil {
		return result, stillActive(ctx, err)
	}
	return result, answer.end(len(result))
}

// An answer counts the bytes of a result for its caller, from when they are read for it until the request has
// ended: a client that does not read answers, or asks for many at once, takes memory from no other caller.
type answer struct {
	*body
	made int64 // bytes that were counted before the result was there
}

// openAnswer returns the answer to a request, nil for a person's: theirs are not counted.
func (a *API) openAnswer(r *http.Request) *answer {
	o := callerOf(r)
	if !o.limited() {
		return nil
	}
	b := a.answers.open(o, func() {})
	context.AfterFunc(r.Context(), b.release) // it ends with the request
	return &answer{body: b}
}

// charging returns the function that a command calls while it makes the answer, nil for none.
func (x *answer) charging() func(bytes int64) error {
	if x == nil {
		return nil
	}
	return func(bytes int64) error {
		x.made += bytes
		return x.count(bytes)
	}
}

// end counts the result, of which some bytes may have been counted before.
func (x *answer) end(size int) error {
	if x == nil {
		return nil
	}
	return x.count(max(int64(size)-x.made, 0))
}

func (x *answer) count(bytes int64) error {
	if err := x.charge(bytes, true); err != nil {
		return &abi.Error{Code: abi.Unavailable, Message: fmt.Sprintf("answers to %s that are not sent yet have too many bytes with this one", x.owner.key), RetryAfterMs: 1000,
			Hint: "read the answers to the other requests first, or ask for less in one request"}
	}
	return nil
}

// keyHeader is the header by which a caller repeats a request safely.
const keyHeader = "Idempotency-Key"

// idempotencyKey returns the key of a request, "" if it has none. The quotes
// that a structured header has around it may be left out.
func idempotencyKey(r *http.Request) (string, error) {
	given := r.Header.Values(keyHeader)
	if len(given) == 0 || r.Method == http.MethodGet || r.Method == http.MethodHead {
		return "", nil
	}
	key := strings.TrimSpace(given[0])
	if n := len(key); n > 2 && key[0] == '"' && key[n-1] == '"' {
		key = key[1 : n-1]
	}
	if len(given) > 1 || key == "" || len(key) > 200 || strings.ContainsFunc(key, func(c rune) bool { return c <= ' ' || c > '~' }) {
		return "", &abi.Error{Code: abi.BadFields, Permanent: true, Field: keyHeader, Message: keyHeader + " is not one word of up to 200 printable characters"}
	}
	return key, nil
}
