package bundle

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"path/filepath"
	"strings"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/lock"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/oci"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/sign"
	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/wire"
	"github.com/sentinel-runtime/sentinel/internal/regularfile"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A parcel is what a source had, nothing of it believed yet.
type parcel struct {
	module, signature []byte
	config            []byte // description in the package, nil without one
	source, file      string
	artifact          *oci.Artifact // the package as it was, nil without one
}

// fetch gets the bytes from wherever they are.
func fetch(ctx context.Context, source string, opt Options) (parcel, error) {
	switch {
	case strings.HasPrefix(source, oci.Scheme):
		return pull(ctx, source, opt)
	case isAddress(source):
		return download(ctx, source, opt)
	}
	return readFile(source)
}

// pull gets a package from a registry.
func pull(ctx context.Context, source string, opt Options) (parcel, error) {
	ref, err := oci.Reference(source)
	if err != nil {
		return parcel{}, err
	}
	a, err := oci.Pull(ctx, ref, opt.Registry)
	if err != nil {
		return parcel{}, err
	}
	// With its digest, so that the lock has what the tag meant at that time.
	if !strings.Contains(ref, "@") {
		ref += "@" + a.Digest()
	}
	return unpacked(a, oci.Scheme+ref), nil
}

// download gets what an address has and, for a module, the signature beside it.
// Credentials in the address are sent, to that host alone, and noted nowhere.
func download(ctx context.Context, source string, opt Options) (parcel, error) {
	at, err := url.Parse(source)
	if err != nil || at.Host == "" {
		return parcel{}, abi.New(abi.BadFields, "the address cannot be read") // it may hold a password
	}
	client := wire.Client(opt.Registry.Wire)
	defer client.CloseIdleConnections()
	content, err := wire.Get(ctx, client, at, oci.MaxTar)
	if err != nil {
		return parcel{}, err
	}
	p, err := unpack(wire.Shown(at), content)
	if err != nil || p.config != nil {
		return p, err
	}
	p.file = base(path.Base(at.Path))
	beside := *at
	beside.Path, beside.RawPath = at.Path+sign.Suffix, ""
	// Only a plain no means that there is none: a server that fails must not make a
	// signed plugin an unsigned one.
	p.signature, err = wire.Get(ctx, client, &beside, sign.MaxSignature)
	if abi.CodeOf(err) == abi.NotFound {
		return p, nil
	}
	return p, err
}

// readFile is download for a file. Its path is noted as it is on this machine.
func readFile(source string) (parcel, error) {
	abs, err := filepath.Abs(source)
	if err != nil {
		return parcel{}, fmt.Errorf("find %q: %w", source, err)
	}
	content, err := readBounded(abs, oci.MaxTar)
	if err != nil {
		return parcel{}, err
	}
	p, err := unpack(abs, content)
	if err != nil || p.config != nil {
		return p, err
	}
	p.file = base(abs)
	p.signature, err = SignatureBeside(abs)
	return p, err
}

// SignatureBeside reads the signature that belongs to a file, nil if there is
// none.
func SignatureBeside(file string) ([]byte, error) {
	text, err := readBounded(file+sign.Suffix, sign.MaxSignature)
	if abi.CodeOf(err) == abi.NotFound {
		return nil, nil
	}
	return text, err
}

// unpack distinguishes a module from a package and unpacks the latter.
func unpack(source string, content []byte) (parcel, error) {
	switch {
	case oci.IsTar(content):
		a, err := oci.ReadTar(strings.NewReader(string(content)))
		if err != nil {
			return parcel{}, fmt.Errorf("%q: %w", source, err)
		}
		return unpacked(a, source), nil
	case oci.IsCompressed(content):
		return parcel{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%q: it is compressed", source), Hint: "name the .wasm file in it, or a package that sentinel plugin pack made"}
	case !strings.HasPrefix(string(content[:min(len(content), 4)]), "\x00asm"):
		return parcel{}, &abi.Error{Code: abi.BadFields, Permanent: true, Message: fmt.Sprintf("%q: it is neither a WebAssembly module nor a package of one", source)}
	case len(content) > lock.MaxModule:
		return parcel{}, abi.New(abi.Limit, fmt.Sprintf("%q: %d bytes, at most %d are allowed", source, len(content), lock.MaxModule))
	}
	return parcel{module: content, source: source}, nil
}

// unpacked is a package as a parcel.
func unpacked(a *oci.Artifact, source string) parcel {
	return parcel{module: a.Module, signature: a.Signature, config: a.Config, source: source, artifact: a}
}

// readBounded reads a regular file.
func readBounded(name string, most int64) ([]byte, error) {
	b, err := regularfile.Read(name, most)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, abi.New(abi.NotFound, fmt.Sprintf("no file %q", name))
	case errors.Is(err, regularfile.ErrKind):
		return nil, abi.New(abi.BadFields, fmt.Sprintf("%q is not a regular file", name))
	case errors.Is(err, regularfile.ErrSize):
		return nil, abi.New(abi.Limit, fmt.Sprintf("%q has more than %d bytes", name, most))
	}
	return b, err
}

// Signed is a module with its signature, nothing of it believed yet.
type Signed struct {
	Module    []byte
	Signature []byte // nil for none
}

// ReadSigned reads a module or a package and its signature, without running any of
// it.
func ReadSigned(file string) (Signed, error) {
	p, err := readFile(file)
	if err != nil {
		return Signed{}, fmt.Errorf("read plugin: %w", err)
	}
	return Signed{p.module, p.signature}, nil
}
