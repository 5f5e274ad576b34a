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
			// A step type is gone: its steps can still be edited, as they are written.
			if def = sentinels.Lenient(head.Definition, s.opt.DecodeOptions(string(id))); def == nil {
				return revision.Stored{}, err
			}
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
	edited, problems, _ := s.admit(sentinels.Encode(next), string(def.ID), func() []byte { return sentinels.Encode(def) })
	return edited, problems.Err()
}

// DecodeEdit decodes a definition that takes the place of the stored one with its id. It
// is refused for the errors that the stored one does not have; older are those that it
// has too.
func (s *Store) DecodeEdit(src []byte, file string) (def *sentinels.Definition, problems, older sentinels.Problems) {
	return s.admit(src, file, nil)
}

// InspectEdit returns all problems of DecodeEdit. Errors that the stored definition has too
// are warnings.
func (s *Store) InspectEdit(ctx context.Context, src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	def, problems, older := s.inspectEdit(ctx, src, file, nil)
	return def, problems.Merge(older)
}

// admit decodes the text of an edit, and refuses it for the errors that it adds.
func (s *Store) admit(src []byte, file string, before func() []byte) (def *sentinels.Definition, problems, older sentinels.Problems) {
	def, problems, older = s.inspectEdit(s.opt.Context, src, file, before)
	if errs := problems.Errors(); len(errs) > 0 {
		return nil, errs, older
	}
	return def, nil, older
}

// inspect adds the references that can never have a value to the problems of a text. They
// are no error of a definition that is started: the start may set variables.
func (s *Store) inspect(ctx context.Context, src []byte, file string) (*sentinels.Definition, sentinels.Problems) {
	def, problems := s.opt.Inspect(ctx, src, file)
	if def == nil || len(problems.Errors()) > 0 {
		return def, problems
	}
	types := s.opt.DecodeOptions(file).Types
	references := sentinels.Check(ctx, def, types).Errors()
	if len(references) == 0 {
		return def, problems
	}
	return def, problems.Merge(references.Locate(file, src, types))
}

// inspectEdit finds the problems of an edit, and as warnings those that the text before it
// has too. before returns that text, and is called only if there are errors; nil is the
// stored definition.
func (s *Store) inspectEdit(ctx context.Context, src []byte, file string, before func() []byte) (def *sentinels.Definition, problems, older sentinels.Problems) {
	def, problems = s.inspect(ctx, src, file)
	errs := problems.Errors()
	if len(errs) == 0 || def == nil {
		return def, problems, nil
	}
	var old []byte
	if before != nil {
		old = before()
	} else if head, err := s.Get(def.ID); err == nil {
		old = head.Definition
	}
	if old == nil {
		return def, problems, nil
	}
	_, known := s.inspect(ctx, old, file)
	added, older := errs.Added(known.Errors())
	for i := range older {
		older[i].Kind, older[i].Message = sentinels.KindWarning, older[i].Message+" (not by this edit: the definition before has it too)"
	}
	if len(added) == 0 {
		// What the format does not know any more is stored as it is written.
		def = sentinels.Lenient(src, s.opt.DecodeOptions(file))
	}
	return def, problems.Warnings().Merge(added), older
}
