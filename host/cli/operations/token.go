package operations

import (
	"errors"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
)

// tokenCommand prints the key to the API, and nothing else, so that it fits into
// $(sentinel token).
func (a verbs) tokenCommand() *cobra.Command {
	var rotate bool
	c := &cobra.Command{
		Use: "token [DIR]", Short: "Print the token that the API asks for, or make a new one",
		Long: "A client with the token may do all that you may here, shell lines included. A server accepts a\n" +
			"new token within a second and refuses the old one; clients need the new one.",
		Example: "  curl -H \"Authorization: Bearer $(sentinel token)\" http://127.0.0.1:8080/v1/sentinels\n  sentinel token --rotate",
		Args:    app.RangeArgs(0, 1, "DIR"),
		RunE: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.ServedDir = app.ProjectDir(a.Path(args[0]))
			}
			// It makes one if there is none, so that a script may ask before the first
			// server starts.
			settled, err := a.Settings()
			if err != nil {
				return err
			}
			store := api.TokenStore{State: a.State(), Trust: settled.Policy}
			get := store.Token
			if rotate {
				get = store.Rotate
			}
			token, err := get()
			// A token in a folder that no server uses would open nothing.
			if errors.Is(err, fs.ErrNotExist) {
				return app.NotFound("start a server with `sentinel serve`, or name its folder: sentinel token DIR", "there is no state in %s", a.State())
			}
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]string{"token": token})
			}
			err = a.Out.Printf("%s\n", token)
			return err
		},
	}
	c.Flags().BoolVar(&rotate, "rotate", false, "put a new one in its place; the old one is good no longer")
	return c
}
