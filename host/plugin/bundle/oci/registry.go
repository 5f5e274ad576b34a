package oci

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	spec "github.com/opencontainers/image-spec/specs-go/v1"
	"oras.land/oras-go/v2/content"
	"oras.land/oras-go/v2/errdef"
	"oras.land/oras-go/v2/registry"
	"oras.land/oras-go/v2/registry/remote"
	"oras.land/oras-go/v2/registry/remote/auth"
	"oras.land/oras-go/v2/registry/remote/credentials"
	"oras.land/oras-go/v2/registry/remote/errcode"
	"oras.land/oras-go/v2/registry/remote/retry"

	"github.com/sentinel-runtime/sentinel/host/plugin/bundle/wire"
	"github.com/sentinel-runtime/sentinel/internal/textcut"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// Scheme begins the address of an artifact in a registry.
const Scheme = "oci://"

// RegistryOptions configure requests to a registry. The zero value is anonymous.
type RegistryOptions struct {
	Wire wire.Options // Wire.Plain speaks http, to a registry on this machine
	// User and Password are for the registry Host, with its port if it has one, and are sent to no other. They
	// need it. Any other registry gets what the Docker configuration of the user has for it, if Docker is set.
	Host, User, Password string
	Docker               bool
}

// Reference reads what names an artifact in a registry, HOST/NAME:TAG or
// HOST/NAME@DIGEST, with or without oci:// before it, and returns it without. A
// host is always needed: there is no registry that would be meant otherwise.
func Reference(s string) (string, error) {
	ref, err := registry.ParseReference(strings.TrimPrefix(s, Scheme))
	if err != nil || ref.Reference == "" {
		return "", &abi.Error{Code: abi.BadFields, Message: fmt.Sprintf("read reference %q: want HOST/NAME:TAG or HOST/NAME@sha256:DIGEST", s),
			Hint: "such as registry.example.com/plugins/slack_message:1.2.0"}
	}
	return ref.String(), nil
}

// open opens a repository. The caller calls done at the end.
func open(ref string, opt RegistryOptions) (repo *remote.Repository, done func(), err error) {
	ref, err = Reference(ref)
	if err != nil {
		return nil, nil, err
	}
	if repo, err = remote.NewRepository(ref); err != nil {
		return nil, nil, fmt.Errorf("open repository: %w", err)
	}
	// Every request passes the rules of wire, those to token servers and to storage
	// that a registry leads to as well. Credentials stay with the host they are for:
	// that is the auth client's part.
	client := wire.Client(opt.Wire)
	repo.PlainHTTP = opt.Wire.Plain
	repo.MaxMetadataBytes = maxManifest
	// An index is asked for too, so that its answer differs from an empty one.
	repo.ManifestMediaTypes = []string{spec.MediaTypeImageManifest, spec.MediaTypeImageIndex}
	// Only what may be repeated is: a failed answer of the server, not a refusal
	// of ours, which is an error before anything is sent.
	repeat := retry.NewTransport(client.Transport)
	repeat.Policy = func() retry.Policy {
		return &retry.GenericPolicy{Retryable: retry.DefaultPredicate, Backoff: retry.DefaultBackoff, MinWait: 200 * time.Millisecond, MaxWait: 3 * time.Second, MaxRetry: 2}
	}
	access := &auth.Client{
		Client: &http.Client{Transport: repeat, CheckRedirect: client.CheckRedirect}, Cache: auth.NewCache(),
		Header: http.Header{"User-Agent": {"sentinel"}},
	}
	switch {
	case opt.Host == "" && opt.User+opt.Password != "":
		return nil, nil, &abi.Error{Code: abi.BadFields, Message: "user and password of a registry are given, but not of which one", Hint: "set SENTINEL_REGISTRY to its host, such as registry.example.com"}
	case opt.Host == repo.Reference.Registry && opt.User+opt.Password != "":
		access.Credential = auth.StaticCredential(repo.Reference.Registry, auth.Credential{Username: opt.User, Password: opt.Password})
	case opt.Docker:
		store, err := credentials.NewStoreFromDocker(credentials.StoreOptions{})
		if err != nil {
			return nil, nil, abi.New(abi.BadFields, "read credentials of Docker: "+err.Error())
		}
		access.Credential = credentials.Credential(store)
	}
	repo.Client = access
	return repo, client.CloseIdleConnections, nil
}

// Push stores the artifact in a registry under a reference with a tag, and returns
// the digest that names it there.
func (a *Artifact) Push(ctx context.Context, ref string, opt RegistryOptions) (string, error) {
	repo, done, err := open(ref, opt)
	if err != nil {
		return "", err
	}
	defer done()
	fail := func(err error) (string, error) { return "", fmt.Errorf("push %s: %w", repo.Reference, explain(err)) }
	// The parts first: a registry takes no manifest whose parts it has not.
	for _, p := range a.blobs() {
		// Asked first, since most versions share their config with none but a push
		// that is repeated shares all.
		there, err := repo.Blobs().Exists(ctx, p.Descriptor)
		if err == nil && !there {
			err = repo.Blobs().Push(ctx, p.Descriptor, bytes.NewReader(p.content))
		}
		if err != nil {
			return fail(err)
		}
	}
	if err := repo.Manifests().PushReference(ctx, a.descriptor(), bytes.NewReader(a.manifest), repo.Reference.Reference); err != nil {
		return fail(err)
	}
	return a.Digest(), nil
}

// Pull reads an artifact from a registry. With a digest in the reference it is
// that artifact or none.
func Pull(ctx context.Context, ref string, opt RegistryOptions) (*Artifact, error) {
	repo, done, err := open(ref, opt)
	if err != nil {
		return nil, err
	}
	defer done()
	fail := func(err error) (*Artifact, error) {
		return nil, fmt.Errorf("pull %s: %w", repo.Reference, explain(err))
	}
	// The registry returns the digest of a tag; the manifest that follows is
	// held to it, and all else to the manifest.
	d, body, err := repo.Manifests().FetchReference(ctx, repo.Reference.Reference)
	if err != nil {
		return fail(err)
	}
	manifest, err := readAll(body, d, maxManifest)
	if err != nil {
		return fail(err)
	}
	a, err := assemble(manifest, func(d spec.Descriptor) ([]byte, error) {
		body, err := repo.Blobs().Fetch(ctx, d)
		if err != nil {
			return nil, explain(err)
		}
		b, err := readAll(body, d, d.Size)
		return b, explain(err)
	})
	if err != nil {
		return nil, fmt.Errorf("pull %s: %w", repo.Reference, err)
	}
	return a, nil
}

// readAll reads content of exactly the size and digest of d, at most so many
// bytes, and closes body. Content that is shorter, longer or other than that is
// denied: the content differs from the digest that was named.
func readAll(body io.ReadCloser, d spec.Descriptor, most int64) ([]byte, error) {
	defer body.Close()
	if d.Size > most {
		return nil, abi.New(abi.Limit, fmt.Sprintf("%s has %d bytes, at most %d are allowed", d.Digest, d.Size, most))
	}
	b, err := content.ReadAll(body, d)
	switch {
	case errors.Is(err, content.ErrMismatchedDigest), errors.Is(err, content.ErrTrailingData), errors.Is(err, io.ErrUnexpectedEOF):
		return nil, abi.New(abi.Denied, fmt.Sprintf("what the registry sends is not %s of %d bytes: %v", d.Digest, d.Size, err))
	}
	return b, err
}

// explain gives errors of the registry's client a code, and removes addresses,
// which may hold what grants access for an hour.
func explain(err error) error {
	if err == nil {
		return nil
	}
	if e := abi.As(err); e != nil {
		return e
	}
	const login = "give credentials by `docker login`, or in SENTINEL_REGISTRY (the host), SENTINEL_REGISTRY_USER and SENTINEL_REGISTRY_PASSWORD"
	var answer *errcode.ErrorResponse
	switch {
	case errors.Is(err, auth.ErrBasicCredentialNotFound):
		return &abi.Error{Code: abi.Denied, Message: "the registry wants to know who asks", Hint: login}
	case errors.Is(err, errdef.ErrNotFound):
		return abi.New(abi.NotFound, "the registry has no such thing")
	case errors.Is(err, errdef.ErrSizeExceedsLimit):
		return abi.New(abi.Limit, "the manifest is larger than a plugin's may be")
	case errors.As(err, &answer):
		// The message of a registry is shown, shortened: it is untrusted text.
		said := answer.Errors.Error()
		if len(answer.Errors) == 0 {
			said = http.StatusText(answer.StatusCode)
		}
		said = fmt.Sprintf("the registry answers %d: %s", answer.StatusCode, textcut.Mark(strings.ToValidUTF8(said, ""), 300))
		switch answer.StatusCode {
		case http.StatusUnauthorized, http.StatusForbidden:
			return &abi.Error{Code: abi.Denied, Message: said, Hint: login}
		case http.StatusNotFound:
			return abi.New(abi.NotFound, said)
		case http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return abi.New(abi.Unavailable, said)
		}
		return abi.New(abi.BadFields, said)
	}
	return wire.Explain(err)
}
