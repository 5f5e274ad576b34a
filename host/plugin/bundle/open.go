package bundle

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/runtime/guest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Options configure how plugins are fetched and checked. The zero value works.
type Options struct {
	// Keys are the public keys whose signatures count. If there are any, a plugin
	// without a signature is refused, unless AllowUnsigned. Default none: anything
	// is taken, and a signature that cannot be checked is ignored.
	Keys          []sign.PublicKey
	AllowUnsigned bool
	// Digest is what the module must have, in any form that [lock.ParseDigest]
	// reads. Default: any.
	Digest string
	// Registry configures requests to registries, and Registry.Wire those to addresses
	// of files. Default: anonymous, by https.
	Registry oci.RegistryOptions
	// Describe runs a module's describe. Default: [Describe].
	Describe func(ctx context.Context, module []byte) (guest.Manifest, error)
	// Timeout bounds the fetch. Default 10 minutes.
	Timeout time.Duration
}

// A Plugin is a module that was checked, with what is known of it.
type Plugin struct {
	Module    []byte
	Manifest  guest.Manifest
	Digest    string // of the module, "sha256:…"
	Source    string // where it is from, without credentials; absolute for a file
	File      string // what its file was called there, "" where it has no such name
	Signature []byte // nil for none
	// Signer is who signed it; nil if it is not signed, or not by a trusted key and no
	// key is.
	Signer *sign.Signer

	artifact *oci.Artifact // the package that it came in, nil without one
}

// Open fetches and checks a plugin. source is a file, an address that begins with
// https:// or, if Registry.Wire.Plain, http://, or a reference that begins with
// oci://. A file or what an address has is a module or a package of one.
func Open(ctx context.Context, source string, opt Options) (*Plugin, error) {
	if opt.Timeout <= 0 {
		opt.Timeout = 10 * time.Minute
	}
	if opt.Describe == nil {
		opt.Describe = Describe
	}
	want := ""
	if opt.Digest != "" {
		var err error
		if want, err = lock.ParseDigest(opt.Digest); err != nil {
			return nil, abi.New(abi.BadFields, err.Error())
		}
	}
	fetching, cancel := context.WithTimeout(ctx, opt.Timeout)
	defer cancel()
	got, err := fetch(fetching, source, opt)
	if err != nil {
		return nil, fmt.Errorf("open plugin: %w", err)
	}
	p := &Plugin{Module: got.module, Digest: lock.Digest(got.module), Source: got.source, File: got.file, Signature: got.signature, artifact: got.artifact}
	// The order is that of what is known to whom: the digest was typed here, the
	// signature was made by a key that is trusted here, and only then is a word of
	// the plugin's own listened to.
	if want != "" && want != p.Digest {
		return nil, &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("open plugin %q: it is %s, not %s", got.source, p.Digest, want),
			Hint: "the file there differs from the one that the digest is of; ask its source"}
	}
	if err := p.verify(opt); err != nil {
		return nil, err
	}
	if p.Manifest, err = opt.Describe(ctx, p.Module); err != nil {
		return nil, fmt.Errorf("open plugin %q: %w", got.source, err)
	}
	if got.config != nil {
		if err := p.agrees(got.config); err != nil {
			return nil, err
		}
	}
	return p, p.stated()
}

// verify checks the signature by the keys that count.
func (p *Plugin) verify(opt Options) error {
	if p.Signature == nil {
		if len(opt.Keys) > 0 && !opt.AllowUnsigned {
			return &abi.Error{Code: abi.Denied, Permanent: true, Message: fmt.Sprintf("open plugin %q: it is not signed", p.Source),
				Hint: "you trust keys, so only what they signed is installed; --allow-unsigned makes an exception"}
		}
		return nil
	}
	if len(opt.Keys) == 0 {
		return nil // no registry to ask
	}
	signer, err := sign.Verify(p.shown(), p.Module, p.Signature, opt.Keys)
	if err != nil {
		return err
	}
	p.Signer = &signer
	return nil
}

// stated refuses a signature whose comment is of another plugin: the key's owner
// signed these bytes and meant something else.
func (p *Plugin) stated() error {
	if p.Signer == nil {
		return nil
	}
	s := p.Signer.Statement
	if s.Name != "" && s.Name != p.Manifest.Name || s.Version != "" && s.Version != sign.Word(p.Manifest.Version) {
		return &abi.Error{Code: abi.Denied, Permanent: true, Hint: "tell the owner of the key",
			Message: fmt.Sprintf("open plugin %q: key %s signed it as %s %s, and it says that it is %s %s", p.Source, p.Signer.Key.ID(), s.Name, s.Version, p.Manifest.Name, p.Manifest.Version)}
	}
	return nil
}

// shown is the plugin's file in messages, as the signer may have called it.
func (p *Plugin) shown() string {
	if p.File != "" {
		return p.File
	}
	return p.Source
}

// FileName is what the plugin's file is called where it is installed.
func (p *Plugin) FileName() string { return p.Manifest.Name + ".wasm" }

// Steps are the step types that the plugin provides.
func (p *Plugin) Steps() []string {
	var list []string
	for _, s := range p.Manifest.Steps {
		list = append(list, s.Type)
	}
	return list
}

// Permissions is what the plugin asks for, without reasons.
func (p *Plugin) Permissions() []lock.Permission {
	var list []lock.Permission
	for _, a := range p.Manifest.Permissions {
		list = append(list, lock.Permission{Use: a.Use, Names: slices.Clone(a.Names)})
	}
	return list
}

// entry is the plugin's line in a lock.
func (p *Plugin) entry(at time.Time) lock.Entry {
	e := lock.Entry{
		Name: p.Manifest.Name, Version: p.Manifest.Version, Digest: p.Digest, Size: int64(len(p.Module)), Source: p.Source,
		Signature: string(p.Signature), Steps: p.Steps(), Permissions: p.Permissions(), At: at.UTC().Truncate(time.Second),
	}
	if p.Signer != nil {
		e.Signer = p.Signer.Key.ID()
	}
	return e
}

// isAddress reports whether a source is an address and not a file.
func isAddress(source string) bool {
	scheme, _, ok := strings.Cut(source, "://")
	return ok && scheme != "" && !strings.ContainsAny(scheme, `/\`)
}

// base is the name of a module in a source; "" where it has none.
func base(name string) string {
	if name = filepath.Base(name); strings.HasSuffix(name, ".wasm") {
		return name
	}
	return ""
}
