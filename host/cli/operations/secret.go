package operations

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/redact"
	"github.com/sentinel-runtime/sentinel/host/secret"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// secretCommand stores values of secrets, and says which sentinels may use them.
func (a verbs) secretCommand() *cobra.Command {
	c := &cobra.Command{
		Use: "secret", Short: "Store secrets, and allow sentinels to use them",
		Long: "A step uses a secret by its name: \"env\": {\"GH_TOKEN\": {\"secret\": \"GH_TOKEN\"}}. Values are looked\n" +
			"for in the setting secrets, in SENTINEL_SECRET_NAME, in credentials of systemd, and in the file\n" +
			"that `secret set` encrypts. A sentinel gets those that it was allowed; see sentinel help environment.",
		Example: "  sentinel secret set GH_TOKEN < token.txt\n  sentinel secret allow GH_TOKEN deploy",
		Args:    app.ExactArgs(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(a.setSecret(), a.listSecrets(), a.removeSecret(), a.allowSecret())
	return c
}

// secrets are what the verbs of secrets work on.
type secrets struct {
	vault   *secret.Vault
	allowed *secret.Allowed
	source  *secret.Source
}

// secrets opens the secrets of the user, for a person.
func (a verbs) secrets(ctx context.Context, what string) (secrets, error) {
	if err := a.OnlyPerson(ctx, what); err != nil {
		return secrets{}, err
	}
	l, err := a.Settings()
	if err != nil {
		return secrets{}, err
	}
	file := config.Path(a.Env.Getenv)
	s := secrets{vault: secret.NewVault(file, l.Policy), allowed: secret.NewAllowed(file, a.Dir(), l.Policy)}
	s.source = secret.New(secret.Options{Places: l.Secrets, Vault: s.vault, Environ: os.Environ, Getenv: a.Env.Getenv, Redactor: new(redact.Redactor), Trust: l.Policy})
	return s, nil
}

func (a verbs) setSecret() *cobra.Command {
	return &cobra.Command{
		Use: "set NAME", Short: "Store the value of a secret, from standard input or a terminal",
		Long: "The value is read from standard input, or from the terminal without showing it, and never from the\n" +
			"command line, which other users can see. A line end at its end is not part of it. The file and the\n" +
			"age identity that decrypts it are beside the configuration file: back up both, apart from each other.",
		Example: "  sentinel secret set GH_TOKEN\n  gh auth token | sentinel secret set GH_TOKEN", Args: app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.secrets(cmd.Context(), "secret set")
			if err != nil {
				return err
			}
			value, err := a.readSecret(cmd.Context(), args[0])
			if err != nil {
				return err
			}
			err = s.vault.Set(cmd.Context(), args[0], value)
			a.recordToken("secret/set", map[string]any{"name": args[0]}, err)
			if err != nil {
				return err
			}
			if from, err := s.source.All(); err == nil && from[args[0]] != secret.FromVault {
				a.Info("stored %s, but its value is taken from: %s", args[0], from[args[0]])
				return nil
			}
			if may, err := s.allowed.Sentinels(args[0]); err == nil && len(may) > 0 {
				a.Info("stored %s; these sentinels may use it: %s", args[0], strings.Join(may, ", "))
				return nil
			}
			a.Info("stored %s; allow it with `sentinel secret allow %s SENTINEL`", args[0], args[0])
			return nil
		},
	}
}

// maxSecretInput is how many bytes of standard input are read, more than a value may have.
const maxSecretInput = 64 << 10

// readSecret reads a value from the terminal or from standard input.
func (a verbs) readSecret(ctx context.Context, name string) (string, error) {
	if a.Env.StdinTerminal && a.Env.Password != nil {
		if err := a.Err.Printf("value of %s: ", output.Escape(name)); err != nil {
			return "", err
		}
		value, err := a.Env.Password(ctx)
		return value, errors.Join(err, a.Err.Printf("\n"))
	}
	text, err := io.ReadAll(io.LimitReader(a.Env.Stdin, maxSecretInput))
	if err != nil {
		return "", fmt.Errorf("read the value of %s: %w", name, err)
	}
	value := strings.TrimRight(string(text), "\r\n")
	if value == "" {
		return "", app.NewUsageError("secret set: no value on standard input", "printf %s \"$VALUE\" | sentinel secret set "+name)
	}
	return value, nil
}

func (a verbs) listSecrets() *cobra.Command {
	return &cobra.Command{
		Use: "list", Short: "List the secrets, where their values are, and the sentinels of this folder that may use them", Example: "  sentinel secret list", Args: app.ExactArgs(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := a.secrets(cmd.Context(), "secret list")
			if err != nil {
				return err
			}
			type item struct {
				Name      string      `json:"name"`
				From      secret.From `json:"from"`
				Problem   string      `json:"problem,omitempty"`
				Sentinels []string    `json:"sentinels"`
			}
			found, broken := s.source.All()
			list := []item{}
			for _, name := range slices.Sorted(maps.Keys(found)) {
				allowed, err := s.allowed.Sentinels(name)
				if err != nil {
					return err
				}
				one := item{Name: name, From: found[name], Sentinels: append([]string{}, allowed...)}
				if _, err := s.source.Value(name); err != nil {
					one.Problem = err.Error()
				}
				list = append(list, one)
			}
			if a.Flags.Output != output.FormatTable {
				if err := a.WriteJSON(map[string]any{"secrets": list}); err != nil {
					return err
				}
				return broken
			}
			if len(list) == 0 && broken == nil {
				a.Info("no secrets; `sentinel secret set NAME` stores one")
				return nil
			}
			rows := []output.Row{output.Head(a.PaintOut, "NAME", "FROM", "SENTINELS", "PROBLEM")}
			for _, i := range list {
				rows = append(rows, output.Row{output.Escape(i.Name), output.Escape(string(i.From)), output.Escape(strings.Join(i.Sentinels, ", ")), output.Escape(i.Problem)})
			}
			if err := a.Table(rows); err != nil {
				return err
			}
			return broken
		},
	}
}

func (a verbs) removeSecret() *cobra.Command {
	return &cobra.Command{
		Use: "remove NAME", Short: "Delete the stored value of a secret, and what may use it",
		Long: "The sentinels of all folders that were allowed to use the secret may use it no longer, also if a\n" +
			"value of this name is stored again or comes from elsewhere: allow them again then.",
		Example: "  sentinel secret remove GITHUB_TOKEN",
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.secrets(cmd.Context(), "secret remove")
			if err != nil {
				return err
			}
			err = s.vault.Remove(cmd.Context(), args[0])
			a.recordToken("secret/remove", map[string]any{"name": args[0]}, err)
			if err != nil {
				return err
			}
			n, err := s.allowed.Forget(cmd.Context(), args[0])
			if err != nil {
				return fmt.Errorf("removed the value of %s, but sentinels may still use a new one: %w", args[0], err)
			}
			a.Info("removed %s; permissions to use it that ended: %d", args[0], n)
			return nil
		},
	}
}

func (a verbs) allowSecret() *cobra.Command {
	var revoke bool
	c := &cobra.Command{
		Use: "allow NAME SENTINEL...", Short: "Allow sentinels of this folder to use a secret",
		Long: "The programs of the sentinel's steps get the value where the definition names the secret. It counts\n" +
			"for this folder on this machine. Definitions and edits of models and agents get no secrets.",
		Example: "  sentinel secret allow GH_TOKEN deploy release\n  sentinel secret allow GH_TOKEN deploy --revoke", Args: app.RangeArgs(2, 100, "NAME", "SENTINEL"),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := a.secrets(cmd.Context(), "secret allow")
			if err != nil {
				return err
			}
			for _, id := range args[1:] {
				if !sentinels.ID(id).Valid() {
					return app.NewUsageError(fmt.Sprintf("secret allow: invalid sentinel %q", id), "its id, as `sentinel list` shows it")
				}
			}
			err = s.allowed.Set(cmd.Context(), args[0], args[1:], !revoke)
			a.recordToken("secret/allow", map[string]any{"name": args[0], "sentinels": args[1:], "revoke": revoke}, err)
			if err != nil {
				return err
			}
			if _, err := s.source.Value(args[0]); err != nil && !revoke {
				a.Info("allowed, and %s", err)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&revoke, "revoke", false, "they may use it no longer")
	return c
}
