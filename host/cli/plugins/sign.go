package plugins

import (
	"fmt"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// pluginSignCommand writes a signature beside a module.
func (a verbs) pluginSignCommand() *cobra.Command {
	var key string
	c := &cobra.Command{
		Use: "sign FILE", Short: "Sign a module: write FILE.minisig beside it",
		Long: "The signature is one of the minisign tool. A signed comment names the plugin,\n" +
			"its version and its digest.",
		Example: "  sentinel plugin sign shout.wasm\n  minisign -Vm shout.wasm -P RW...   # the same, with the other tool",
		Args:    app.ExactArgs("FILE"),
		RunE: func(cmd *cobra.Command, args []string) error {
			file := a.Path(args[0])
			// What is signed is loaded first: a name for bytes that no host would take
			// would be signed for nothing.
			p, err := bundle.Open(cmd.Context(), file, bundle.Options{})
			if err != nil {
				return err
			}
			if p.File == "" {
				return app.NewUsageError(fmt.Sprintf("%s is not a .wasm file", args[0]), "sign the module first and pack it then")
			}
			secret, err := a.secretKey(cmd.Context(), key)
			if err != nil {
				return err
			}
			text := sign.Sign(secret, p.Module, sign.Statement{Name: p.Manifest.Name, Version: p.Manifest.Version, File: p.File, At: a.Env.Now()})
			if err := atomicfile.Replace(file+sign.Suffix, text, 0o644); err != nil {
				return fmt.Errorf("write signature: %w", err)
			}
			id := secret.Public().ID()
			a.Info("%s: signed with key %s: %s %s, %s", a.Relative(file)+sign.Suffix, id, p.Manifest.Name, p.Manifest.Version, p.Digest)
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]string{"file": file + sign.Suffix, "key": id, "name": p.Manifest.Name, "version": p.Manifest.Version, "digest": p.Digest})
			}
			return nil
		},
	}
	c.Flags().StringVar(&key, "key", "", "file of the secret key (default: plugin.key beside your configuration)")
	return c
}

// pluginVerifyCommand checks a signature; it runs nothing of the module.
func (a verbs) pluginVerifyCommand() *cobra.Command {
	var keys []string
	c := &cobra.Command{
		Use: "verify FILE", Short: "Check the signature of a module or a package",
		Long: "FILE is a module with FILE.minisig beside it, one that was installed, whose signature is in the\n" +
			"lock, or a package. The signature counts if a key that you trust made it, or one of --key.",
		Example: "  sentinel plugin verify shout.wasm\n  sentinel plugin verify shout-1.0.tar --key team.pub",
		Args:    app.ExactArgs("FILE"),
		RunE: func(_ *cobra.Command, args []string) error {
			known, err := a.trusted(keys)
			if err != nil {
				return err
			}
			if len(known) == 0 {
				return app.NewUsageError("no key to check with", "name one with --key, or trust one: sentinel plugin trust PUBKEY")
			}
			s, err := a.readSigned(a.Path(args[0]))
			if err != nil {
				return err
			}
			if s.Signature == nil {
				return &abi.Error{Code: abi.Denied, Message: fmt.Sprintf("verify %q: it is not signed", args[0]), Hint: "there is no " + filepath.Base(args[0]) + sign.Suffix}
			}
			signer, err := sign.Verify(args[0], s.Module, s.Signature, known)
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(map[string]any{"file": args[0], "key": signer.Key.ID(), "comment": signer.Key.Comment, "statement": signer.Statement})
			}
			err = a.Out.Printf("%s: good signature of key %s\n", args[0], named(signer.Key))
			a.Info("%s", signer.Statement.Comment)
			return err
		},
	}
	c.Flags().StringArrayVar(&keys, "key", nil, "public key that counts, or its file, instead of those you trust; repeatable")
	return c
}

// readSigned reads a module and its signature: from beside it, else from the lock.
func (a verbs) readSigned(file string) (bundle.Signed, error) {
	s, err := bundle.ReadSigned(file)
	if err != nil || s.Signature != nil {
		return s, err
	}
	folder := lock.Folder{Dir: filepath.Dir(file)}
	l, err := folder.Read()
	if err != nil {
		return s, err
	}
	if e := l.Plugins[filepath.Base(file)]; e.Signature != "" {
		s.Signature = []byte(e.Signature)
	}
	return s, nil
}

// named is a key with the words of who trusts it.
func named(k sign.PublicKey) string {
	if k.Comment == "" {
		return k.ID()
	}
	return k.ID() + " (" + k.Comment + ")"
}

// signature describes who signed a module.
func (a verbs) signature(file string, module []byte) string {
	s, err := a.readSigned(a.Path(file))
	if err != nil || lock.Digest(s.Module) != lock.Digest(module) || s.Signature == nil {
		return "none"
	}
	keys, err := a.trusted(nil)
	if err != nil {
		return "cannot be checked: " + err.Error()
	}
	signer, err := sign.Verify(file, module, s.Signature, keys)
	if err != nil {
		return "not good: " + err.Error()
	}
	return "good, of key " + named(signer.Key)
}
