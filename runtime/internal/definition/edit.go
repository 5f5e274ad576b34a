package definition

import (
	"context"
	"fmt"

	"github.com/sentinel-runtime/sentinel/runtime/revision"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// An EditFunc makes another definition of one, which it must not change.
type EditFunc = func(*sentinels.Definition) (*sentinels.Definition, error)

// Edit makes a new revision of a definition from its newest one, by fn. The result is
// checked whole, as if it came from a file, and saved. Problems are located in the text
// that [sentinels.Encode] returns. An edit that is refused changes nothing.
//
// With opt.Expect greater than 0 a stale edit is the error conflict; otherwise it is
// repeated on the result of a concurrent edit, so that fn may be called more than once.
func (s *Store) Edit(ctx context.Context, id sentinels.ID, opt revision.SaveOptions, fn EditFunc) (revision.Stored, error) {
	repeat := opt.Expect <= 0
	for {
		head, err := s.Get(id)
		if err != nil {
			return revision.Stored{}, err
		}
		if !repeat {
			if err := expect("edit", head, opt.Expect); err != nil {
				return revision.Stored{}, err
			}
		}
		def, err := s.Decoded(head)
		if err != nil {
			return revision.Stored{}, err
		}
		next, err := s.Apply(def, fn)
		if err != nil {
			return revision.Stored{}, err
		}
		opt.Expect = head.Revision
		r, err := s.Save(ctx, next, opt)
		// Save reads the head again, and a concurrent edit is as likely before that
		// as in the commit itself, so every conflict is a reason to repeat.
		if !repeat || abi.CodeOf(err) != abi.Conflict || ctx.Err() != nil {
			return r, err
		}
	}
}

// Apply returns the definition that fn makes of def, checked whole.
func (s *Store) Apply(def *sentinels.Definition, fn EditFunc) (*sentinels.Definition, error) {
	next, err := fn(def)
	if err != nil {
		return nil, err
	}
	if next.ID != def.ID {
		return nil, &abi.Error{Code: abi.BadFields, Field: "id", Message: fmt.Sprintf("edit definition %q: the edit gives it the id %q", def.ID, next.ID),
			Hint: "an id stays; save a new definition under the other one"}
	}
	checked, problems := s.opt.Decode(sentinels.Encode(next), string(def.ID))
	if len(problems) > 0 {
		return nil, problems
	}
	return checked, nil
}
