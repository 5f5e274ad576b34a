package plugins

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/config"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// passwordVar holds the password of a secret key where no person sits.
const passwordVar = "SENTINEL_PLUGIN_KEY_PASSWORD"

// keyFile is where a user's secret key is if they name no other.
func (a verbs) keyFile(named string) string {
	if named != "" {
		return a.Path(named)
	}
	if own := config.Path(a.Env.Getenv); own != "" {
		return filepath.Join(filepath.Dir(own), "plugin.key")
	}
	return a.Path("plugin.key")
}

// publicFile is the other half's, as the minisign tool would call it too.
func publicFile(secret string) string { return strings.TrimSuffix(secret, ".key") + ".pub" }

// pluginKeygenCommand makes a pair of keys.
func (a verbs) pluginKeygenCommand() *cobra.Command {
	var open bool
	c := &cobra.Command{
		Use: "keygen [FILE]", Short: "Make a pair of keys to sign plugins with",
		Long: "Writes a secret key that only you can read, and its public half beside it. Both are minisign\n" +
			"keys. The password comes from the terminal or from " + passwordVar + "; reading a\n" +
			"key under a password takes 1 GiB of memory for a second, to make guessing dear.",
		Example: "  sentinel plugin keygen\n  sentinel plugin keygen team.key --no-password",
		Args:    app.RangeArgs(0, 1),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := a.keyFile(strings.Join(args, ""))
			for _, f := range []string{file, publicFile(file)} {
				if _, err := os.Lstat(f); err == nil {
					return &abi.Error{Code: abi.Conflict, Message: fmt.Sprintf("make key: %s is there already", a.Relative(f)), Hint: "what it has signed could not be signed again; name another file"}
				}
			}
			password := ""
			if !open {
				var err error
				if password, err = a.password(cmd.Context(), "Password for the new key: ", true); err != nil {
					return err
				}
			}
			public, secret, err := sign.Generate()
			if err != nil {
				return err
			}
			text, err := secret.Text(password)
			if err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
				return fmt.Errorf("make key: %w", err)
			}
			if err := atomicfile.Replace(publicFile(file), []byte(public.Text()), 0o644); err != nil {
				return fmt.Errorf("make key: %w", err)
			}
			if err := atomicfile.Replace(file, text, 0o600); err != nil {
				return fmt.Errorf("make key: %w", err)
			}
			a.Info("secret key: %s (keep it; it cannot be made again)", a.Relative(file))
			a.Info("public key: %s", a.Relative(publicFile(file)))
			a.Info("give the public key to those who install your plugins: sentinel plugin trust %s", public)
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]string{"id": public.ID(), "key": public.String(), "file": file})
			}
			err = a.Out.Printf("%s\n", public.String())
			return err
		},
	}
	c.Flags().BoolVar(&open, "no-password", false, "a user who can read the file can sign")
	return c
}

// password asks for one, twice if it is new.
func (a verbs) password(ctx context.Context, prompt string, fresh bool) (string, error) {
	if text := a.Env.Getenv(passwordVar); text != "" {
		return text, nil
	}
	if a.Env.Password == nil || !a.CanAsk() {
		return "", app.NewUsageError("the key needs a password, and there is no terminal to type it", "set "+passwordVar+", or make a key with --no-password")
	}
	ask := func(prompt string) (string, error) {
		a.PrintErr("%s", prompt)
		text, err := a.Env.Password(ctx)
		a.PrintErr("\n")
		if err != nil {
			return "", fmt.Errorf("read password: %w", err)
		}
		return text, nil
	}
	text, err := ask(prompt)
	switch {
	case err != nil || !fresh:
		return text, err
	case text == "":
		return "", app.NewUsageError("the password is empty", "use --no-password for a key without one")
	}
	again, err := ask("The same again: ")
	if err == nil && again != text {
		err = app.NewUsageError("these are two different passwords", "")
	}
	return text, err
}

// secretKey reads a secret key, and asks for its password if it has one.
func (a verbs) secretKey(ctx context.Context, named string) (sign.SecretKey, error) {
	file := a.keyFile(named)
	text, err := app.ReadFile(file, app.MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return sign.SecretKey{}, app.NotFound("make one with `sentinel plugin keygen`, or name yours with --key", "there is no secret key %s", a.Relative(file))
	}
	if err != nil {
		return sign.SecretKey{}, fmt.Errorf("read secret key: %w", err)
	}
	if info, err := os.Stat(file); err == nil && info.Mode().Perm()&0o077 != 0 {
		a.Warn(fmt.Sprintf("others can read the secret key: chmod 600 %s", output.Quote(a.Relative(file))))
	}
	password := ""
	if sign.Protected(text) {
		if password, err = a.password(ctx, "Password of "+a.Relative(file)+": ", false); err != nil {
			return sign.SecretKey{}, err
		}
	}
	return sign.ParseSecret(text, password)
}

// publicKey reads a public key: a file, or the key itself.
func (a verbs) publicKey(arg string) (sign.PublicKey, error) {
	k, err := sign.ParsePublic(arg)
	if err == nil {
		return k, nil
	}
	text, readErr := app.ReadFile(a.Path(arg), app.MaxFile)
	if readErr != nil {
		return k, fmt.Errorf("%q is neither a file nor a key: %w", arg, err)
	}
	if k, err = sign.ParsePublic(string(text)); err != nil {
		return k, fmt.Errorf("%q: %w", arg, err)
	}
	return k, nil
}

// trusted are the keys that count: those that were named, else the user's.
func (a verbs) trusted(named []string) ([]sign.PublicKey, error) {
	var keys []sign.PublicKey
	for _, n := range named {
		k, err := a.publicKey(n)
		if err != nil {
			return nil, err
		}
		keys = append(keys, k)
	}
	if len(named) > 0 {
		return keys, nil
	}
	l, err := a.Settings()
	if err != nil {
		return nil, err
	}
	for i, listed := range l.Plugins.Keys {
		k, err := sign.ParsePublic(listed.Key)
		if err == nil && listed.ID != "" && listed.ID != k.ID() {
			err = fmt.Errorf("it is key %s, not %s", k.ID(), listed.ID)
		}
		if err != nil {
			// A key that is not understood must not turn into no key at all.
			return nil, &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("setting plugins.keys[%d]: %v", i, err), Hint: "correct it in " + l.File}
		}
		k.Comment = listed.Comment
		keys = append(keys, k)
	}
	return keys, nil
}

// pluginTrustCommand adds a public key to the user's configuration.
func (a verbs) pluginTrustCommand() *cobra.Command {
	var comment string
	c := &cobra.Command{
		Use: "trust PUBKEY", Short: "Trust a public key: plugins that it signed may be installed",
		Long: "PUBKEY is a minisign public key, the line that begins with RW, or a file with one. It goes into\n" +
			"your own configuration. From the first key on, only signed plugins are installed; each install\n" +
			"can make an exception. To trust a key no longer, take it out of plugins.keys there.",
		Example: "  sentinel plugin trust RWQf6LRCGA9i53mlYecO4IzT51TGPpvWucNSCh1CBM0QTaLn73Y7GFO3 --comment 'the team'\n  sentinel plugin trust team.pub",
		Args:    app.ExactArgs("PUBKEY"),
		RunE: func(_ *cobra.Command, args []string) error {
			k, err := a.publicKey(args[0])
			if err != nil {
				return err
			}
			known, err := a.trusted(nil)
			if err != nil {
				return err
			}
			for _, other := range known {
				if other.String() == k.String() {
					a.Info("key %s is trusted already", k.ID())
					return nil
				}
			}
			file := config.Path(a.Env.Getenv)
			if file == "" {
				return app.NotFound("set HOME or XDG_CONFIG_HOME", "there is no folder for your configuration")
			}
			if err := config.Add(file, "plugins.keys", config.PluginKey{ID: k.ID(), Key: k.String(), Comment: comment}); err != nil {
				return err
			}
			a.Info("key %s is trusted, in %s", k.ID(), file)
			if len(known) == 0 {
				a.Info("from now on only signed plugins are installed")
			}
			return nil
		},
	}
	c.Flags().StringVar(&comment, "comment", "", "whose key it is")
	return c
}
