package definitions

import (
	"errors"
	"os"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// give puts a definition into the parameters of a command: as a file where
// the engine can read it, because problems then name its lines. undo removes
// a file that was only for that call.
func (a verbs) give(s *app.Session, src *app.Source, params map[string]any) (undo func(), err error) {
	undo = func() {}
	switch {
	case s.ByURL:
		// JSON with comments would not get through the request, so it goes as what
		// it means. Its step types and triggers are for the server to judge, which
		// may have others than we do.
		plain, problems := sentinels.Standardize(src.File, src.Text)
		params["definition"] = plain
		return undo, problems.Err()
	case src.Path != "":
		params["file"] = src.Path
		return undo, nil
	}
	// A file of mode 0600, so that only processes of the same user can read it, and no
	// else can; comments in it survive, which they would not in a request.
	f, err := os.CreateTemp("", "sentinel-*.json") // another process cannot read our standard input
	if err != nil {
		return undo, err
	}
	params["file"] = f.Name()
	undo = func() { _ = os.Remove(f.Name()) }
	_, err = f.Write(src.Text)
	return undo, errors.Join(err, f.Close())
}
