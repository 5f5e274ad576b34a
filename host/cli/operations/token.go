package operations

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/api"
	"github.com/sentinel-runtime/sentinel/host/audit"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/peer"
	"github.com/sentinel-runtime/sentinel/host/principal"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// tokenCommand prints the key to the API, and nothing else, so that it fits into
// $(sentinel token).
func (a verbs) tokenCommand() *cobra.Command {
	var rotate bool
	c := &cobra.Command{
		Use: "token [DIR]", Short: "Print the token that the API asks for, or make a new one",
		Long: "A client with the token may do all that you may here, shell lines included. A server accepts a\n" +
			"new token within a second and refuses the old one; clients need the new one. `sentinel token new`\n" +
			"makes further tokens, for agents and viewers.",
		Example: "  curl -H \"Authorization: Bearer $(sentinel token)\" http://127.0.0.1:8080/v1/sentinels\n  sentinel token --rotate",
		Args:    app.RangeArgs(0, 1, "DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) > 0 {
				a.ServedDir = app.ProjectDir(a.Path(args[0]))
			}
			// It makes one if there is none, so that a script may ask before the first
			// server starts.
			policy, err := a.Policy()
			if err != nil {
				return err
			}
			if err := a.OnlyPerson(cmd.Context(), "token"); err != nil {
				return err
			}
			store := api.TokenStore{State: a.State(), Trust: policy}
			get := store.Token
			if rotate {
				get = store.Rotate
			}
			token, err := get()
			if rotate {
				a.recordToken("token/rotate", nil, err)
			}
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
	c.AddCommand(a.newToken(), a.listTokens(), a.revokeToken())
	return c
}

// tokens returns the store of tokens of the state folder, for a person.
func (a verbs) tokens(ctx context.Context, what string) (api.TokenStore, error) {
	if err := a.OnlyPerson(ctx, what); err != nil {
		return api.TokenStore{}, err
	}
	policy, err := a.Policy() // that of the server, which does not obey tokens that no record says this program wrote
	if err != nil {
		return api.TokenStore{}, err
	}
	if _, err := os.Stat(a.State()); errors.Is(err, fs.ErrNotExist) {
		return api.TokenStore{}, app.NotFound("start a server with `sentinel serve` first", "there is no state in %s", a.State())
	}
	return api.TokenStore{State: a.State(), Trust: policy}, nil
}

// recordToken puts a change of tokens or secrets into the audit log, without the value. A failure of
// the log is shown by `sentinel doctor` and the server; here it has no place.
func (a verbs) recordToken(event string, details map[string]any, err error) {
	self := peer.Self()
	e := audit.Entry{Level: "info", Category: audit.Security, Event: event, Actor: "user", Outcome: "ok", PID: self.PID, Program: self.Program}
	if a.Flags.As != "" {
		e.Actor = a.Flags.As
	}
	if details != nil {
		e.Details, _ = json.Marshal(details)
	}
	if err != nil {
		e.Level, e.Outcome, e.Error = "warn", string(abi.CodeOf(err)), err.Error()
	}
	if _, err := os.Stat(a.State()); err != nil {
		return // it would be made, before a server or a run checks it
	}
	log := audit.New(a.State(), audit.Options{Logger: a.Logger()})
	log.Write(e)
	_ = log.Close()
}

func (a verbs) newToken() *cobra.Command {
	var as, name, expires string
	c := &cobra.Command{
		Use: "new", Short: "Make a token for a person, an agent or a viewer",
		Long: "A viewer reads. An agent does what a step can: it decides no approval, grants nothing to plugins and\n" +
			"makes no tokens, and what it creates names it. The token is printed once; the server keeps its digest.",
		Example: "  sentinel token new --as agent --name ci --expires 30d\n  sentinel token new --as viewer --name wall", Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if as == "" || name == "" {
				return app.NewUsageError("token new: --as and --name are required", "sentinel token new --as agent --name ci")
			}
			store, err := a.tokens(cmd.Context(), "token new")
			if err != nil {
				return err
			}
			var valid config.Duration
			if expires != "" {
				if err := valid.UnmarshalText([]byte(expires)); err != nil || valid == 0 {
					return app.NewUsageError(fmt.Sprintf("invalid --expires %q: want a duration above 0", expires), "such as 12h or 30d")
				}
			}
			token, err := store.New(principal.Kind(as), name, valid.Std(), a.Env.Now())
			a.recordToken("token/new", map[string]any{"name": name, "as": as, "expires": expires}, err)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]string{"name": name, "as": as, "token": token})
			}
			a.Info("the token of %s; it is not shown again", as+" "+name)
			return a.Out.Printf("%s\n", token)
		},
	}
	f := c.Flags()
	f.StringVar(&as, "as", "", "person, agent or viewer")
	f.StringVar(&name, "name", "", "what the token is called in lists and records")
	f.StringVar(&expires, "expires", "", "how long it is valid, such as 12h or 30d (default: until it is revoked)")
	return c
}

func (a verbs) listTokens() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the tokens that were made with `token new`",
		Example: "  sentinel token list",
		Args:    app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			store, err := a.tokens(cmd.Context(), "token list")
			if err != nil {
				return err
			}
			list, err := store.List()
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]any{"tokens": list})
			}
			if len(list) == 0 {
				a.Info("no tokens besides the one that `sentinel token` prints")
				return nil
			}
			rows := []output.Row{output.Head(a.PaintOut, "NAME", "AS", "CREATED", "EXPIRES")}
			for _, t := range list {
				until := "never"
				switch {
				case t.ExpiresAt != nil && !a.Env.Now().Before(*t.ExpiresAt):
					until = "expired"
				case t.ExpiresAt != nil:
					until = t.ExpiresAt.Local().Format("2006-01-02 15:04")
				}
				rows = append(rows, output.Row{output.Escape(t.Name), output.Escape(string(t.As)), output.Ago(a.Env.Now(), t.CreatedAt), output.Escape(until)})
			}
			return a.Table(rows)
		},
	}
}

func (a verbs) revokeToken() *cobra.Command {
	return &cobra.Command{
		Use: "revoke NAME", Short: "End a token and its requests; its runs and triggers go on: sentinel stop",
		Example: "  sentinel token revoke ci",
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			store, err := a.tokens(cmd.Context(), "token revoke")
			if err != nil {
				return err
			}
			err = store.Revoke(args[0])
			a.recordToken("token/revoke", map[string]any{"name": args[0]}, err)
			if err == nil {
				a.Info("revoked %s", args[0])
			}
			return err
		},
	}
}
