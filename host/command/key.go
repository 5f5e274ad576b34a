package command

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Keyring remembers which request each idempotency key of a caller was used for.
//
// # Concurrency
//
// Safe for concurrent use.
type Keyring interface {
	// Use records that a call used a key, or returns the error conflict if the principal
	// used it for the same command with other parameters. The caller passes the outcome of
	// the call to done, which forgets a key whose request was refused.
	Use(ctx context.Context, call *Call, key string, params map[string]string) (done func(error), err error)
}

// Remember sets the keyring. It is called once, before the registry is used; a registry
// without one compares no parameters.
func (r *Registry) Remember(k Keyring) { r.keyring = k }

// madeKey is the beginning of keys that are made here. No caller gives one like it, so a
// caller cannot use the key of another.
const madeKey = "by/"

// takeKey sets the key by which a command recognizes a repetition. The key of a caller from
// outside counts per principal, command and parameters: one that another principal chose, or
// that was chosen for another request, never finds the result of this one. The key of a
// model counts in the same way. A step's own key counts in all runs for the same principal, whatever
// their parameters.
func (r *Registry) takeKey(ctx context.Context, e *entry, call *Call, given string) (done func(error), err error) {
	done = func(error) {}
	switch outside := call.By == ByUser || call.By == ByAgent; {
	case given == "" || e.Effect == Reads:
	case outside:
		if r.keyring != nil {
			digests, err := paramDigests(call.Params)
			if err != nil {
				return nil, err
			}
			if done, err = r.keyring.Use(ctx, call, given, digests); err != nil {
				return nil, err
			}
		}
		call.Key = madeKey + digest(string(call.By), call.As, e.Name, given, string(call.Params))
	case strings.HasPrefix(given, madeKey):
		return nil, &abi.Error{
			Code: abi.BadFields, Permanent: true, Field: e.KeyParam,
			Message: fmt.Sprintf("call %q: key %.80q begins with %q, which is reserved for keys of requests", e.Name, given, madeKey), Hint: "choose another key",
		}
	case call.By == ByModel: // it chooses keys as callers from outside do
		call.Key = madeKey + digest(string(call.By), call.As, e.Name, given, string(call.Params))
	case call.As != "":
		call.Key = madeKey + digest(call.As, given)
	default:
		call.Key = given
	}
	return done, nil
}

// paramDigests returns a digest of each parameter, so that a conflict can name those that
// differ without storing their values.
func paramDigests(params json.RawMessage) (map[string]string, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return nil, err
	}
	digests := make(map[string]string, len(members))
	for name, value := range members {
		digests[name] = digest(string(value))[:32]
	}
	return digests, nil
}

// digest hashes the parts, each with its length before it.
func digest(parts ...string) string {
	h := sha256.New()
	for _, p := range parts {
		fmt.Fprintf(h, "%d:%s", len(p), p)
	}
	return hex.EncodeToString(h.Sum(nil))
}
