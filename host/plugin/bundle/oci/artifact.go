package oci

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	spec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// The types of an artifact and of its parts.
const (
	ArtifactType  = "application/vnd.sentinel.plugin.v1+wasm"
	ConfigType    = "application/vnd.sentinel.plugin.manifest.v1+json"
	ModuleType    = "application/wasm"
	SignatureType = "application/vnd.sentinel.plugin.signature.v1+minisign"
)

// The bounds of the parts in bytes, of what may be in a manifest, and of the
// annotations.
const (
	maxModule      = 32 << 20
	maxConfig      = 256 << 10
	maxSignature   = 8 << 10
	maxManifest    = 64 << 10
	maxAnnotations = 64
)

// An Artifact is a packed plugin. Its slices must not be changed: the manifest
// names them by their digests.
//
// One that was made by [New] and one that was read are the same: what is read is
// held to the same bounds, and its manifest is kept byte by byte, so that a
// package that passes through here keeps its digest.
type Artifact struct {
	Module    []byte
	Config    []byte // the plugin's manifest, JSON
	Signature []byte // nil for none
	// Annotations have the author and the like, by the keys of the image format.
	Annotations map[string]string

	manifest []byte // as it is stored; its digest is the artifact's
}

// New packs the parts. The annotations are those of the whole; file is the name
// that the module has where it is unpacked.
func New(file string, module, config, signature []byte, annotations map[string]string) (*Artifact, error) {
	a := &Artifact{Module: module, Config: config, Signature: signature, Annotations: annotations}
	switch {
	case len(module) == 0 || len(module) > maxModule:
		return nil, abi.New(abi.Limit, fmt.Sprintf("pack %q: %d bytes, 1 to %d are allowed", file, len(module), maxModule))
	case len(config) > maxConfig:
		return nil, abi.New(abi.Limit, fmt.Sprintf("pack %q: a manifest of %d bytes, at most %d are allowed", file, len(config), maxConfig))
	case len(signature) > maxSignature:
		return nil, abi.New(abi.Limit, fmt.Sprintf("pack %q: a signature of %d bytes, at most %d are allowed", file, len(signature), maxSignature))
	}
	// Titles are what other tools call the files when they unpack a package.
	title := func(name string) map[string]string { return map[string]string{spec.AnnotationTitle: name} }
	// No time of making is noted: it would make each package another.
	m := spec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: spec.MediaTypeImageManifest, ArtifactType: ArtifactType,
		Config:      describe(ConfigType, config, nil),
		Layers:      []spec.Descriptor{describe(ModuleType, module, title(file))},
		Annotations: annotations,
	}
	if signature != nil {
		m.Layers = append(m.Layers, describe(SignatureType, signature, title(file+".minisig")))
	}
	var err error
	if a.manifest, err = json.Marshal(m); err != nil {
		return nil, fmt.Errorf("pack %q: %w", file, err)
	}
	if len(a.manifest) > maxManifest {
		return nil, abi.New(abi.Limit, fmt.Sprintf("pack %q: its annotations make it too large", file))
	}
	return a, nil
}

// Digest names the artifact with all that is in it.
func (a *Artifact) Digest() string { return digest.FromBytes(a.manifest).String() }

// descriptor is how an index or a registry refers to the artifact.
func (a *Artifact) descriptor() spec.Descriptor {
	d := describe(spec.MediaTypeImageManifest, a.manifest, nil)
	d.ArtifactType = ArtifactType
	return d
}

// blobs are the parts, each with its descriptor, without the manifest. They are
// described without titles: here it counts what they are and not what they are
// called.
func (a *Artifact) blobs() []part {
	list := []part{{describe(ConfigType, a.Config, nil), a.Config}, {describe(ModuleType, a.Module, nil), a.Module}}
	if a.Signature != nil {
		list = append(list, part{describe(SignatureType, a.Signature, nil), a.Signature})
	}
	return list
}

// A part is content with the descriptor that names it.
type part struct {
	spec.Descriptor
	content []byte
}

// describe names content by type, digest and size.
func describe(mediaType string, content []byte, annotations map[string]string) spec.Descriptor {
	return spec.Descriptor{MediaType: mediaType, Digest: digest.FromBytes(content), Size: int64(len(content)), Annotations: annotations}
}

// assemble reads a manifest and fetches what it names. fetch returns content of
// exactly the size and digest of a descriptor, or an error.
func assemble(manifest []byte, fetch func(d spec.Descriptor) ([]byte, error)) (*Artifact, error) {
	m, err := readManifest(manifest)
	if err != nil {
		return nil, err
	}
	a := &Artifact{manifest: manifest, Annotations: maps.Clone(m.Annotations)}
	if a.Config, err = fetch(m.Config); err != nil {
		return nil, fmt.Errorf("read its config: %w", err)
	}
	if a.Module, err = fetch(m.Layers[0]); err != nil {
		return nil, fmt.Errorf("read its module: %w", err)
	}
	// That there is a second layer and that it is a signature was checked.
	if len(m.Layers) > 1 {
		if a.Signature, err = fetch(m.Layers[1]); err != nil {
			return nil, fmt.Errorf("read its signature: %w", err)
		}
	}
	return a, nil
}

// readManifest checks all that can be known before anything else is read.
func readManifest(text []byte) (spec.Manifest, error) {
	var m spec.Manifest
	if len(text) > maxManifest {
		return m, abi.New(abi.Limit, fmt.Sprintf("read manifest: %d bytes, at most %d are allowed", len(text), maxManifest))
	}
	// Unknown keys are how the format grows, so they are ignored.
	if err := strictjson.DecodeOpen(text, &m, strictjson.Limits{Bytes: maxManifest}); err != nil {
		return m, wrong("%v", err)
	}
	switch {
	case m.SchemaVersion != 2:
		return m, wrong("schema version %d is not known", m.SchemaVersion)
	case m.MediaType != "" && m.MediaType != spec.MediaTypeImageManifest:
		return m, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("read manifest: it is of type %q, not of one plugin", m.MediaType),
			Hint: "an index of several things has to be named by the digest of one of them"}
	case m.ArtifactType != ArtifactType:
		return m, wrong("it is of type %q and no plugin, which is %q", kindOf(m), ArtifactType)
	case m.Config.MediaType != ConfigType:
		return m, wrong("its config is of type %q, not %q", m.Config.MediaType, ConfigType)
	case len(m.Layers) == 0 || m.Layers[0].MediaType != ModuleType:
		return m, wrong("its first layer is not a %q", ModuleType)
	case len(m.Layers) > 2, len(m.Layers) == 2 && m.Layers[1].MediaType != SignatureType:
		return m, wrong("behind the module there is more than a signature")
	case len(m.Annotations) > maxAnnotations:
		return m, abi.New(abi.Limit, fmt.Sprintf("read manifest: %d annotations, at most %d are allowed", len(m.Annotations), maxAnnotations))
	}
	// Sizes are those that the manifest claims; the fetching code compares the content with
	// them, so a bound on the claim is one on what is read.
	bounds := []int64{maxConfig, maxModule, maxSignature}
	for i, d := range append([]spec.Descriptor{m.Config}, m.Layers...) {
		if d.Digest.Validate() != nil || d.Digest.Algorithm() != digest.SHA256 {
			return m, wrong("%q is not a sha256 digest", d.Digest)
		}
		if d.Size < 1 || d.Size > bounds[i] {
			return m, abi.New(abi.Limit, fmt.Sprintf("read manifest: the %s has %d bytes, 1 to %d are allowed", d.MediaType, d.Size, bounds[i]))
		}
	}
	return m, nil
}

// kindOf is the kind of a foreign manifest: older ones have it as the type of
// their config alone.
func kindOf(m spec.Manifest) string {
	if m.ArtifactType != "" {
		return m.ArtifactType
	}
	return m.Config.MediaType
}

// wrong is a permanent error about a manifest.
func wrong(format string, args ...any) error {
	return &abi.Error{Code: abi.BadFields, Permanent: true, Message: "read manifest: " + fmt.Sprintf(format, args...)}
}
