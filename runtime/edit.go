package runtime

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// Edit makes a new revision of a definition out of its newest one: fn gets that
// and returns another, which is checked whole, as if it came from a file, and
// saved. Problems are placed in the text that [sentinels.Encode] gives. An edit
// that is refused changes nothing.
//
// With opt.Expect greater than 0 a stale edit is the error conflict; otherwise
// it is made again on what an edit at the same time has left, so that fn may be
// called more than once. fn must not change what it is given.
func (rt *Runtime) Edit(ctx context.Context, id sentinels.ID, opt SaveOptions, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (Stored, error) {
	patient := opt.Expect <= 0
	for {
		head, err := rt.Definition(id)
		if err != nil {
			return Stored{}, err
		}
		if !patient {
			if err := expects("edit", head, opt.Expect); err != nil {
				return Stored{}, err
			}
		}
		def, err := rt.Decoded(head)
		if err != nil {
			return Stored{}, err
		}
		next, err := rt.apply(def, fn)
		if err != nil {
			return Stored{}, err
		}
		opt.Expect = head.Revision
		s, err := rt.SaveWith(ctx, next, opt)
		// Between the two looks at the head another edit is as likely as in the
		// commit itself, so every conflict is a reason to look again.
		if !patient || abi.CodeOf(err) != abi.Conflict || ctx.Err() != nil {
			return s, err
		}
	}
}

// apply has fn make another definition of def and checks the result whole.
func (rt *Runtime) apply(def *sentinels.Definition, fn func(*sentinels.Definition) (*sentinels.Definition, error)) (*sentinels.Definition, error) {
	next, err := fn(def)
	if err != nil {
		return nil, err
	}
	if next.ID != def.ID {
		return nil, &abi.Error{Code: abi.BadFields, Field: "id", Message: fmt.Sprintf("edit definition %q: the edit gives it the id %q", def.ID, next.ID),
			Hint: "an id stays; save a new definition under the other one"}
	}
	checked, problems := rt.Decode(sentinels.Encode(next), string(def.ID))
	if err := problemsError(problems); err != nil {
		return nil, err
	}
	return checked, nil
}
