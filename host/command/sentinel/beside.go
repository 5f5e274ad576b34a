package sentinel

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/host/command/code"
	"github.com/sentinel-runtime/sentinel/host/internal/reffile"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// besideIn are the definitions that {"$ref": id} means, before the stored ones. Those of a
// file are in the files beside it.
type besideIn struct {
	Definitions map[string]json.RawMessage `json:"definitions,omitempty" jsonschema:"definitions that {\"$ref\": id} means, by id, before the stored ones; for a file, files id.json beside it and those that it names are found"`
}

// A named definition and the text that it was read from.
type named struct {
	*sentinels.Definition
	givenText
}

// What one call decodes beside a definition at most.
const (
	maxBeside      = 500
	maxBesideBytes = 16 << 20
)

// besideBound counts what a call decodes beside a definition.
type besideBound struct {
	ctx   context.Context
	count int
	bytes int
}

// add counts a definition with so many bytes.
func (b *besideBound) add(bytes int) error {
	if err := b.ctx.Err(); err != nil {
		return context.Cause(b.ctx)
	}
	if b.count, b.bytes = b.count+1, b.bytes+bytes; b.count > maxBeside || b.bytes > maxBesideBytes {
		return &abi.Error{Code: abi.Limit, Permanent: true, Field: "definitions", Hint: "store them with sentinel load, and refer to stored sentinels",
			Message: fmt.Sprintf("the definition refers to more than %d others that are given or in files beside it, or they have more than %d MB together", maxBeside, maxBesideBytes>>20)}
	}
	return nil
}

// reader returns what reads the files of a caller.
func (f family) reader(call *command.Call) func(path string, limit int64) ([]byte, error) {
	if call.Held() {
		return func(path string, limit int64) ([]byte, error) { return code.ReadFile(call, f.opt.Rules, path, limit) }
	}
	return f.opt.Trust.Read
}

// beside is neighbours for a definition that is going to be used: a "$ref" to a file that is refused is an error.
func (f family) beside(
	ctx context.Context, call *command.Call, in besideIn, src []byte, file string, read func(path string, limit int64) ([]byte, error),
) (map[sentinels.ID]named, error) {
	all, bad, err := f.neighbours(ctx, call, in, src, file, read)
	if err == nil && len(bad) > 0 {
		for i := range bad {
			bad[i].File = file
		}
		err = refused(bad)
	}
	return all, err
}

// checking returns a context for the checks of several definitions. Those that others than a person give have together
// the time for one: a request has place for hundreds.
func checking(ctx context.Context, call *command.Call) context.Context {
	if call.Held() {
		return runtime.ShareCheckTime(ctx)
	}
	return ctx
}

// neighbours decodes the definitions that a definition refers to: the given ones and those in
// files beside its own, which is "" for one that has none. read reads these, see reader. bad are the problems of
// paths that lead to files which [reffile.Finder] does not let it have.
func (f family) neighbours(
	ctx context.Context, call *command.Call, in besideIn, src []byte, file string, read func(path string, limit int64) ([]byte, error),
) (all map[sentinels.ID]named, bad sentinels.Problems, err error) {
	ctx = checking(ctx, call)
	bound := besideBound{ctx: ctx}
	texts := map[sentinels.ID]givenText{}
	if file != "" {
		dir := filepath.Dir(file)
		finder := reffile.Finder{Base: dir, Host: f.projectDir(call)}
		found, err := sentinels.Beside(src, func(from string, _ sentinels.ID, files []string, named bool) (n sentinels.Neighbour, err error) {
			path, err := finder.Find(from, files, named)
			if err == nil {
				n.File, err = filepath.Rel(dir, path)
			}
			if err != nil {
				return n, err
			}
			n.Text, err = read(path, sentinels.MaxBytes)
			return n, cmp.Or(err, bound.add(len(n.Text)), call.Count(int64(len(n.Text))))
		})
		refs := (*sentinels.RefError)(nil)
		if err != nil && !errors.As(err, &refs) {
			return nil, nil, err
		}
		if refs != nil {
			bad = append(bad, refs.Problems...)
		}
		for id, n := range found {
			texts[id] = givenText{n.Text, filepath.Join(dir, n.File)}
		}
	}
	for id, raw := range in.Definitions {
		if err := bound.add(len(raw)); err != nil {
			return nil, nil, err
		}
		texts[sentinels.ID(id)] = givenText{definitionText(raw), "definitions." + id}
	}
	out := map[sentinels.ID]named{}
	for id, text := range texts {
		if ctx.Err() != nil {
			return nil, nil, context.Cause(ctx)
		}
		def, problems := f.rt.Inspect(ctx, text.src, text.file)
		if errs := problems.Errors(); len(errs) > 0 {
			return nil, nil, refused(errs)
		}
		if def.ID != id {
			return nil, nil, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%s: it defines the sentinel %q, want %q", text.file, def.ID, id),
				Hint: fmt.Sprintf(`write "id": %q in it`, id)}
		}
		out[id] = named{def, text}
	}
	return out, bad, nil
}

// storedBeside is a sentinel that was stored with one that refers to it.
type storedBeside struct {
	SentinelID sentinels.ID `json:"sentinelId"`
	Revision   int          `json:"revision"`
}

// saveBeside stores the definitions that another one refers to. It does not replace stored
// ones unless replace is set; the warning names those that differ.
func (f family) saveBeside(ctx context.Context, call *command.Call, all map[sentinels.ID]named, replace bool) (stored []storedBeside, warning string, err error) {
	for _, id := range slices.Sorted(maps.Keys(all)) {
		expect := 0
		head, err := f.rt.Definition(id)
		switch {
		case err == nil && head.Hash == all[id].Hash() && !hidden(call, head.Definition):
			continue
		case err == nil && !replace:
			warning = joinLines(warning, fmt.Sprintf("%s: another definition of %q is stored, at revision %d, and is used; with replace (--replace) this one is stored", all[id].file, id, head.Revision))
			continue
		case err == nil:
			expect = runtime.AnyRevision
		case abi.CodeOf(err) != abi.NotFound:
			return stored, warning, err
		}
		if err := f.sync(ctx, id); err != nil {
			return stored, warning, err
		}
		s, err := f.save(ctx, call, all[id].Definition, expect, given(call))
		if err != nil {
			return stored, warning, err
		}
		stored = append(stored, storedBeside{s.SentinelID, s.Revision})
	}
	return stored, warning, nil
}

// joinLines joins two texts that may be empty.
func joinLines(x, y string) string {
	if x == "" || y == "" {
		return x + y
	}
	return x + "\n" + y
}
