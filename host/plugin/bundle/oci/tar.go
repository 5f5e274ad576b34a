package oci

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	spec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/strictjson"
)

// MaxTar bounds a tar file in bytes: the parts and what tar adds to them.
const MaxTar = maxModule + 2<<20

// maxTarEntries is many times what a plugin needs: two files, two folders, a
// manifest and three parts.
const maxTarEntries = 32

// blobsDir is where a layout has its parts, by their digests in hex. Other
// algorithms have folders of their own there, and are not taken.
const blobsDir = "blobs/sha256/"

// IsTar reports whether content may be a tar file.
func IsTar(content []byte) bool {
	return len(content) > 262 && string(content[257:262]) == "ustar"
}

// IsCompressed reports whether content is a compressed file, which is refused
// without a look inside.
func IsCompressed(content []byte) bool {
	for _, magic := range []string{"\x1f\x8b", "PK\x03\x04", "BZh", "\xfd7zXZ", "\x28\xb5\x2f\xfd"} {
		if bytes.HasPrefix(content, []byte(magic)) {
			return true
		}
	}
	return false
}

// WriteTar writes the artifact as an image layout in a tar file. It has no times,
// owners or anything else in it that is not the plugin's: the same artifact is
// always the same bytes.
func (a *Artifact) WriteTar(w io.Writer) error {
	// The version stands as the tag, so that other tools show one.
	d := a.descriptor()
	d.Annotations = map[string]string{}
	if v := a.Annotations[spec.AnnotationVersion]; v != "" {
		d.Annotations[spec.AnnotationRefName] = v
	}
	index, err := json.Marshal(spec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: spec.MediaTypeImageIndex, Manifests: []spec.Descriptor{d}})
	if err != nil {
		return fmt.Errorf("write index: %w", err)
	}
	layout, err := json.Marshal(spec.ImageLayout{Version: spec.ImageLayoutVersion})
	if err != nil {
		return fmt.Errorf("write layout: %w", err)
	}
	// Sorted, and each once: module and signature could be the same bytes.
	parts := append(a.blobs(), part{a.descriptor(), a.manifest})
	slices.SortFunc(parts, func(a, b part) int { return strings.Compare(string(a.Digest), string(b.Digest)) })
	// The first error stays in err and ends the writing; put does nothing after it.
	out := tar.NewWriter(w)
	put := func(name string, content []byte) {
		if err == nil {
			err = out.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Size: int64(len(content)), Mode: 0o644, ModTime: time.Unix(0, 0), Format: tar.FormatUSTAR})
		}
		if err == nil {
			_, err = out.Write(content)
		}
	}
	put(spec.ImageLayoutFile, layout)
	put(spec.ImageIndexFile, index)
	for i, p := range parts {
		if i == 0 || parts[i-1].Digest != p.Digest {
			put(blobsDir+p.Digest.Encoded(), p.content)
		}
	}
	if err == nil {
		err = out.Close()
	}
	return err
}

// ReadTar reads the output of WriteTar, from an untrusted source.
func ReadTar(r io.Reader) (*Artifact, error) {
	files, err := readEntries(r)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	manifest, err := findManifest(files)
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	a, err := assemble(manifest, func(d spec.Descriptor) ([]byte, error) { return blob(files, d) })
	if err != nil {
		return nil, fmt.Errorf("read package: %w", err)
	}
	return a, nil
}

// readEntries reads the files of a layout and nothing else: a name that is not one
// of theirs, a link or a device is refused, so that no path is ever made of one.
func readEntries(r io.Reader) (map[string][]byte, error) {
	limited := &io.LimitedReader{R: r, N: MaxTar + 1}
	in := tar.NewReader(limited)
	files := map[string][]byte{}
	var total int64
	for n := 0; ; n++ {
		h, err := in.Next()
		switch {
		// First, since a reader that was cut short gives all kinds of errors.
		case limited.N <= 0, n > maxTarEntries:
			return nil, abi.New(abi.Limit, fmt.Sprintf("more than %d bytes or %d entries", MaxTar, maxTarEntries))
		case errors.Is(err, io.EOF):
			return files, nil
		case err != nil:
			return nil, abi.New(abi.BadFields, "incomplete tar file: "+err.Error())
		}
		// Other tools write entries for folders too, which are not needed.
		if h.Typeflag == tar.TypeDir && (h.Name == "blobs/" || h.Name == blobsDir) {
			continue
		}
		most, err := bound(h)
		if err != nil {
			return nil, err
		}
		if _, twice := files[h.Name]; twice {
			return nil, abi.New(abi.BadFields, fmt.Sprintf("entry %q is there twice", h.Name))
		}
		// The header's size is that of the content as it would be read, zeros of sparse
		// files included, so it is checked before any of it is.
		if total += h.Size; h.Size < 0 || h.Size > most || total > MaxTar {
			return nil, abi.New(abi.Limit, fmt.Sprintf("entry %q has %d bytes, at most %d are allowed", h.Name, h.Size, most))
		}
		content, err := io.ReadAll(in) // bounded by the header, which was just checked
		if err != nil {
			return nil, abi.New(abi.BadFields, "incomplete tar file: "+err.Error())
		}
		files[h.Name] = content
	}
}

// bound is how large an entry may be, in bytes; an entry that no layout has is an
// error. Names are compared and never made into paths, so there is nothing to
// clean of them.
func bound(h *tar.Header) (int64, error) {
	if h.Typeflag != tar.TypeReg {
		return 0, abi.New(abi.Denied, fmt.Sprintf("entry %q is not a file: links and devices are refused", h.Name))
	}
	switch h.Name {
	case spec.ImageLayoutFile, spec.ImageIndexFile:
		return maxManifest, nil
	}
	// What a part is is known when the manifest is read; until then it may be the
	// largest of them.
	hex, ok := strings.CutPrefix(h.Name, blobsDir)
	if !ok || digest.NewDigestFromEncoded(digest.SHA256, hex).Validate() != nil {
		return 0, abi.New(abi.Denied, fmt.Sprintf("entry %q does not belong to a package", h.Name))
	}
	return maxModule, nil
}

// findManifest returns the manifest of the one thing in a layout. A layout may
// contain several, and the caller cannot select one.
func findManifest(files map[string][]byte) ([]byte, error) {
	var layout spec.ImageLayout
	if err := strictjson.DecodeOpen(files[spec.ImageLayoutFile], &layout, strictjson.Limits{}); err != nil || layout.Version != spec.ImageLayoutVersion {
		return nil, &abi.Error{Code: abi.BadFields, Message: "not an image layout of version " + spec.ImageLayoutVersion, Hint: "make one with: sentinel plugin pack FILE"}
	}
	var index spec.Index
	if err := strictjson.DecodeOpen(files[spec.ImageIndexFile], &index, strictjson.Limits{}); err != nil {
		return nil, abi.New(abi.BadFields, "read index: "+err.Error())
	}
	if len(index.Manifests) != 1 {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("it holds %d things, a plugin is one", len(index.Manifests)))
	}
	d := index.Manifests[0]
	if d.MediaType != spec.MediaTypeImageManifest || d.Size < 1 || d.Size > maxManifest {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("its index names a %q of %d bytes, no plugin's manifest", d.MediaType, d.Size))
	}
	return blob(files, d)
}

// blob returns what a descriptor names. The name of an entry is only a claim: the
// digest is computed from the content, and the size compared.
func blob(files map[string][]byte, d spec.Descriptor) ([]byte, error) {
	if err := d.Digest.Validate(); err != nil || d.Digest.Algorithm() != digest.SHA256 {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("%q is not a sha256 digest", d.Digest))
	}
	content, ok := files[blobsDir+d.Digest.Encoded()]
	if !ok {
		return nil, abi.New(abi.BadFields, fmt.Sprintf("%s is missing", d.Digest))
	}
	if got := digest.FromBytes(content); got != d.Digest || int64(len(content)) != d.Size {
		return nil, abi.New(abi.Denied, fmt.Sprintf("%s of %d bytes is in truth %s of %d bytes", d.Digest, d.Size, got, len(content)))
	}
	return content, nil
}
