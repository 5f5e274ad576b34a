package plugins

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/sentinel-runtime/sentinel/host/cli/app"
	"github.com/sentinel-runtime/sentinel/host/cli/output"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/sdk/toolchain"
)

// packFlags are those of plugin pack and plugin push.
type packFlags struct {
	file  string
	about bundle.About
	plain bool
}

func (f *packFlags) add(c *cobra.Command) {
	c.Flags().StringVar(&f.about.Licenses, "licenses", "", "licences of the plugin, an SPDX expression")
	c.Flags().StringVar(&f.about.Source, "source", "", "address of its source")
}

// pluginPackCommand puts module, manifest and signature into one file.
func (a verbs) pluginPackCommand() *cobra.Command {
	var f packFlags
	c := &cobra.Command{
		Use: "pack FILE|DIR", Short: "Pack a module, with its signature, into one file",
		Long: "The package is an OCI image layout in a tar file; sentinel plugin install takes it, and so do the\n" +
			"tools of container registries. FILE.minisig beside the module goes with it. The same plugin packs\n" +
			"to the same bytes. DIR is a project that was built.",
		Example: "  sentinel plugin sign shout.wasm\n  sentinel plugin pack shout.wasm --licenses MIT",
		Args:    app.ExactArgs("FILE or DIR"),
		RunE: func(cmd *cobra.Command, args []string) error {
			p, pkg, err := a.pack(cmd.Context(), args[0], f.about)
			if err != nil {
				return err
			}
			file := f.file
			if file == "" {
				file = p.Manifest.Name + "-" + fileWord(p.Manifest.Version) + ".tar"
			}
			if err := pkg.Write(a.Path(file)); err != nil {
				return err
			}
			return a.showPacked(p, file, pkg.Digest)
		},
	}
	c.Flags().StringVarP(&f.file, "file", "f", "", "where the package goes (default: NAME-VERSION.tar)")
	f.add(c)
	return c
}

// pluginPushCommand stores a plugin in a registry.
func (a verbs) pluginPushCommand() *cobra.Command {
	var f packFlags
	c := &cobra.Command{
		Use: "push FILE|DIR REF", Short: "Store a plugin in a container registry",
		Long: "FILE is a module or a package; what is pushed is what pack would write. REF is HOST/NAME:TAG.\n" +
			"Credentials are those of `docker login`, or SENTINEL_REGISTRY_USER and\n" +
			"SENTINEL_REGISTRY_PASSWORD for the host in SENTINEL_REGISTRY.",
		Example: "  sentinel plugin push shout.wasm registry.example.com/plugins/shout:1.2.0",
		Args:    app.ExactArgs("FILE", "REF"),
		RunE: func(cmd *cobra.Command, args []string) error {
			ref, err := oci.Reference(args[1])
			if err != nil {
				return err
			}
			p, pkg, err := a.pack(cmd.Context(), args[0], f.about)
			if err != nil {
				return err
			}
			if _, err := pkg.Artifact.Push(cmd.Context(), ref, a.registry(f.plain)); err != nil {
				return err
			}
			return a.showPacked(p, oci.Scheme+ref, pkg.Digest)
		},
	}
	c.Flags().BoolVar(&f.plain, "plain-http", false, "speak plain http, to a registry on this machine alone")
	f.add(c)
	return c
}

// pack reads a module, a package, or what a project was built to.
func (a verbs) pack(ctx context.Context, arg string, about bundle.About) (*bundle.Plugin, *bundle.Package, error) {
	file := a.Path(arg)
	if app.IsDir(file) {
		project, err := toolchain.Open(file)
		if err != nil {
			return nil, nil, err
		}
		file = project.Module()
		if _, err := os.Stat(file); err != nil {
			return nil, nil, app.NotFound("build it first: sentinel plugin build "+output.Quote(arg), "there is no %s", a.Relative(file))
		}
	}
	p, err := bundle.Open(ctx, file, bundle.Options{})
	if err != nil {
		return nil, nil, err
	}
	pkg, err := p.Pack(about)
	return p, pkg, err
}

func (a verbs) showPacked(p *bundle.Plugin, where, digest string) error {
	if a.Flags.Output != output.FormatTable {
		return a.WriteJSON(map[string]any{"name": p.Manifest.Name, "version": p.Manifest.Version, "to": where, "digest": digest, "module": p.Digest, "signed": p.Signature != nil})
	}
	if p.Signature == nil {
		a.Info("it is not signed; sentinel plugin sign does that, before")
	}
	return a.Out.Printf("%s  %s\n", where, digest)
}

// fileWord is a version as part of a file's name.
func fileWord(version string) string {
	out := []rune(sign.Word(version))
	for i, r := range out {
		if r == '/' || r == '\\' || r == ':' || i == 0 && r == '.' {
			out[i] = '_'
		}
	}
	if len(out) == 0 {
		return "0"
	}
	return string(out[:min(len(out), 64)])
}
