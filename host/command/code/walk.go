package code

import (
	"context"
	"io/fs"

	"github.com/sentinel-runtime/sentinel/host/internal/filewalk"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// walk visits the entries below a folder. A model does not see the state folder of
// the host.
func (w *workspace) walk(ctx context.Context, opt filewalk.Options, fn filewalk.Func) (complete bool, err error) {
	if w.model {
		opt.Skip = func(name string, _ bool) bool { return w.rules.Closed(name) }
	}
	complete, err = filewalk.Walk(ctx, w.Root(), opt, fn)
	if err != nil && ctx.Err() == nil {
		err = w.Explain(opt.Start, err)
	}
	return complete, err
}

// folder resolves the path at which a list or search starts.
func (w *workspace) folder(name string) (string, fs.FileInfo, error) {
	p, err := w.Resolve(name, false)
	if err != nil {
		return "", nil, err
	}
	defer p.Close()
	if p.Info == nil {
		return "", nil, w.notFound(name)
	}
	// A folder is listed whatever its name is; the walk checks its files one by one.
	if w.rules.Closed(p.Path) || !p.Info.IsDir() {
		if err := w.mayRead(p.Path); err != nil {
			return "", nil, err
		}
	}
	return p.Path, p.Info, nil
}

// badPattern is the error for a pattern that does not compile.
func badPattern(field string, err error, hint string) error {
	return &abi.Error{Code: abi.BadFields, Field: field, Permanent: true, Message: "search: field \"" + field + "\": " + err.Error(), Hint: hint}
}
