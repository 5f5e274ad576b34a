package serve

import (
	"context"

	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// files synchronizes definitions with their files when commands edit them: a
// change of the file is read before the edit, and the edit is written to it
// afterwards.
type files Server

// Sync reads the file of a definition if it has changed.
func (f *files) Sync(ctx context.Context, id sentinels.ID) error {
	if f.folder == nil {
		return nil // the server opens, nothing is watched yet
	}
	return f.folder.Sync(ctx, id)
}

// regrant applies changed grants to the plugins, and to the definitions that use
// them.
func (s *Server) regrant(ctx context.Context) error {
	if s.folder == nil {
		return nil // the server opens, and no plugin is loaded yet
	}
	return s.folder.Regrant(ctx)
}

// Problems returns what is wrong with files of definitions.
func (f *files) Problems() sentinels.Problems {
	if f.folder == nil {
		return nil
	}
	return f.folder.Problems()
}

// WriteBack writes an edited definition to its file.
func (f *files) WriteBack(ctx context.Context, s runtime.Stored) error {
	if f.folder == nil {
		return nil
	}
	return f.folder.WriteBack(ctx, s)
}
