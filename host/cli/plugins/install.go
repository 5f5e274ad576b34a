package plugins

import (
	"strings"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/wire"
)

// installFlags are those of plugin install.
type installFlags struct {
	digest, name, dir           string
	keys                        []string
	unsigned, replace, insecure bool
}

// pluginInstallCommand fetches, checks and keeps a plugin. It needs no server and
// asks none: a user who may write the folder may install into it.
func (a verbs) pluginInstallCommand() *cobra.Command {
	var f installFlags
	c := &cobra.Command{
		Use: "install FILE|URL|oci://REF", Short: "Fetch a plugin, check it, and keep it with its digest",
		Long: "Takes a module or a package from a file, from an https address, or from a registry. Its digest,\n" +
			"its signature and what it says of itself are checked before anything is kept; then the module and\n" +
			"its line in plugins.lock.json are written as one thing. A running server has it live a moment\n" +
			"later, unless it asks for something: then it waits until you allow it. Installing again is no harm.",
		Example: "  sentinel plugin install shout.wasm\n" +
			"  sentinel plugin install https://example.com/shout.wasm --digest sha256:9f86d0...\n" +
			"  sentinel plugin install oci://registry.example.com/plugins/shout:1.2.0 --key team.pub",
		Args: app.ExactArgs("FILE, URL or oci://REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.dir != "" {
				a.ServedDir = app.ProjectDir(a.Path(f.dir))
			}
			keys, err := a.trusted(f.keys)
			if err != nil {
				return err
			}
			source := args[0]
			if !strings.Contains(source, "://") {
				source = a.Path(source)
			}
			p, err := bundle.Open(cmd.Context(), source, bundle.Options{
				Keys: keys, AllowUnsigned: f.unsigned, Digest: f.digest, Registry: a.registry(f.insecure),
			})
			if err != nil {
				return err
			}
			folder := lock.Folder{Dir: a.pluginDir()}
			var change bundle.Change
			err = a.WriteProjectFile(folder.Dir, func() (string, error) {
				change, err = p.Install(cmd.Context(), folder, bundle.InstallOptions{Name: f.name, Replace: f.replace, Now: a.Env.Now})
				return change.File, err
			})
			if err != nil {
				return err
			}
			if a.Flags.Output != output.FormatTable {
				return a.WriteJSON(change)
			}
			return a.showInstalled(p, change, a.Relative(folder.Path(change.File)))
		},
	}
	c.Flags().StringVar(&f.digest, "digest", "", "what the module must have: sha256: and 64 hexadecimal digits")
	c.Flags().StringArrayVar(&f.keys, "key", nil, "public key that must have signed it, or its file, instead of those you trust; repeatable")
	c.Flags().BoolVar(&f.unsigned, "allow-unsigned", false, "take it without a signature, though you trust keys")
	c.Flags().StringVar(&f.name, "name", "", "name of its file (default: the plugin's own name and .wasm)")
	c.Flags().StringVar(&f.dir, "dir", "", "project or folder that is served (default: the nearest .sentinel)")
	c.Flags().BoolVar(&f.replace, "replace", false, "take the place of a file that was dropped there by hand, or of another plugin")
	c.Flags().BoolVar(&f.insecure, "insecure", false, "take plain http, from this machine alone")
	return c
}

// registry returns the options of requests to registries and addresses.
func (a verbs) registry(plain bool) oci.RegistryOptions {
	return oci.RegistryOptions{
		Wire: wire.Options{Plain: plain, Agent: "sentinel/" + a.Env.Version},
		Host: a.Env.Getenv("SENTINEL_REGISTRY"), User: a.Env.Getenv("SENTINEL_REGISTRY_USER"), Password: a.Env.Getenv("SENTINEL_REGISTRY_PASSWORD"), Docker: true,
	}
}

// showInstalled prints what is installed now, and what the operator has to decide.
func (a verbs) showInstalled(p *bundle.Plugin, c bundle.Change, file string) error {
	word, was := a.PaintOut.Good(output.Escape(c.Change)), ""
	if c.Before != nil && c.Change == bundle.Updated && c.Before.Version != c.Now.Version {
		was = c.Before.Version + " -> "
	}
	signer := "not signed"
	switch {
	case p.Signer != nil:
		signer = "signed by " + named(p.Signer.Key)
	case p.Signature != nil:
		signer = "its signature was not checked: you trust no key"
	}
	rows := []output.Row{
		{output.Escape(c.Now.Name), output.Escape(was + c.Now.Version), word},
		{"file", output.Escape(file)}, {"digest", output.Escape(c.Now.Digest)}, {"from", output.Escape(c.Now.Source)}, {"signature", output.Escape(signer)},
		{"step types", output.Escape(strings.Join(c.Now.Steps, " "))},
	}
	for _, permission := range p.Manifest.Permissions {
		rows = append(rows, output.Row{"asks for", output.Escape(asked(permission.Use, permission.Names, permission.Reason))})
	}
	if err := a.Pairs(rows); err != nil {
		return err
	}
	for _, permission := range c.More {
		if c.Before != nil {
			a.Info("new in this version: it asks for %s", strings.Join(append([]string{permission.Use}, permission.Names...), " "))
		}
	}
	switch {
	case c.Change == bundle.Unchanged:
	case len(p.Manifest.Permissions) == 0:
		a.Info("it asks for nothing: a server of this folder has it live now")
	case c.Before != nil && len(c.More) == 0:
		a.Info("it asks for no more than before")
	default:
		a.Info("it waits until you allow what it asks for: sentinel plugin allow %s", c.Now.Name)
	}
	return nil
}

// pluginUninstallCommand takes away what install brought.
func (a verbs) pluginUninstallCommand() *cobra.Command {
	var dir string
	c := &cobra.Command{
		Use: "uninstall NAME|FILE", Short: "Remove a plugin that was installed, and its line in the lock",
		Long:    "A running server unloads its step types; runs that are in one of its steps fail.",
		Example: "  sentinel plugin uninstall shout",
		Args:    app.ExactArgs("NAME"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if dir != "" {
				a.ServedDir = app.ProjectDir(a.Path(dir))
			}
			if err := a.CheckLink(); err != nil {
				return err
			}
			e, err := bundle.Uninstall(cmd.Context(), lock.Folder{Dir: a.pluginDir()}, args[0])
			if err != nil {
				return err
			}
			a.Info("%s %s is removed", e.Name, e.Version)
			return nil
		},
	}
	c.Flags().StringVar(&dir, "dir", "", "project or folder that is served (default: the nearest .sentinel)")
	return c
}
