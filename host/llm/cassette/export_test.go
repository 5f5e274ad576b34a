package cassette

import "github.com/sentinel-runtime/sentinel/sentinels"

// Doors for tests of the rules in the package's documentation.

func Key(turn sentinels.Turn) string        { return key(turn) }
func Hide(workspace, text string) string    { return newPaths(workspace).hide(text) }
func Show(workspace, text string) string    { return newPaths(workspace).show(text) }
func (r *Recorder) CloseFileForTest() error { return r.file.Close() }
