package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/sentinel-runtime/sentinel/host/internal/atomicfile"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
)

// The keys of annotations, of the OCI image format.
const (
	annotationTitle    = "org.opencontainers.image.title"
	annotationVersion  = "org.opencontainers.image.version"
	annotationLicenses = "org.opencontainers.image.licenses"
	annotationSource   = "org.opencontainers.image.source"
	annotationSummary  = "org.opencontainers.image.description"
)

// About is the description that the author of a package gives. All fields are optional.
type About struct {
	Licenses string // an SPDX expression
	Source   string // where the source is, an address
}

// A Package is a plugin that is packed.
type Package struct {
	Artifact *oci.Artifact
	Digest   string // that names it in a registry
}

// Pack packs the plugin, with its signature if it has one. The same plugin packs
// to the same bytes, and one that came in a package stays as it came, if about has
// nothing to add.
func (p *Plugin) Pack(about About) (*Package, error) {
	if p.artifact != nil && about == (About{}) {
		return &Package{p.artifact, p.artifact.Digest()}, nil
	}
	config, err := json.Marshal(p.Manifest)
	if err != nil {
		return nil, fmt.Errorf("pack plugin %q: %w", p.Manifest.Name, err)
	}
	annotations := map[string]string{annotationTitle: p.Manifest.Name}
	set := func(key, value string) {
		if value != "" {
			annotations[key] = value
		}
	}
	set(annotationVersion, p.Manifest.Version)
	set(annotationLicenses, about.Licenses)
	set(annotationSource, about.Source)
	if len(p.Manifest.Steps) == 1 {
		set(annotationSummary, p.Manifest.Steps[0].Summary)
	}
	a, err := oci.New(p.FileName(), p.Module, config, p.Signature, annotations)
	if err != nil {
		return nil, err
	}
	return &Package{a, a.Digest()}, nil
}

// Write writes the package as a file, whole or not at all.
func (p *Package) Write(file string) error {
	// In memory first: it is bounded, and a file is then written whole or not at all.
	var b bytes.Buffer
	if err := p.Artifact.WriteTar(&b); err != nil {
		return fmt.Errorf("write package %q: %w", file, err)
	}
	if err := atomicfile.Replace(file, b.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write package %q: %w", file, err)
	}
	return nil
}
