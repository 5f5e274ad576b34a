package serve

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// files keep definitions and their files the same when commands edit them: what
// was written into a file meanwhile counts first, and what was edited goes back
// into it.
type files Server

// Sync takes up what changed in the file of a definition.
func (f *files) Sync(ctx context.Context, id sentinels.ID) error {
	if f.folder == nil {
		return nil // the server opens, nothing is watched yet
	}
	return f.folder.Sync(ctx, id)
}

// regrant has plugins asked about again, with the files of plugins and the
// definitions that use them.
func (s *Server) regrant(ctx context.Context) error {
	if s.folder == nil {
		return nil // the server opens, and no plugin is loaded yet
	}
	return s.folder.Regrant(ctx)
}

// WriteBack writes an edited definition to its file.
func (f *files) WriteBack(ctx context.Context, s runtime.Stored) error {
	if f.folder == nil {
		return nil
	}
	return f.folder.WriteBack(ctx, s)
}
