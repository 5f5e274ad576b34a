package wasm

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"time"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The schemas of a manifest are compiled by the user of the module, with a library
// that takes no deadline and whose memory has no bound. So those of a module that
// is not trusted are first held to limits, which compiles nothing, and then
// compiled in a child, to see that they end. The cache remembers that they did.

// schemaKind is the kind of child that compiles schemas.
const schemaKind = "schemas"

// What compiling the schemas of one manifest may take, ABI clause A8.4. The worst
// that the limits of package sentinels let pass takes about that time.
const (
	schemaTime   = 2 * time.Second // of processor
	schemaMemory = 256 << 20       // bytes
)

// types is what a manifest says of step types, in the words of package sentinels.
func (m Manifest) types() []sentinels.TypeSpec {
	specs := make([]sentinels.TypeSpec, 0, len(m.Steps))
	for _, s := range m.Steps {
		specs = append(specs, sentinels.TypeSpec{
			Type: sentinels.StepType(s.Type), Summary: s.Summary, Fields: s.Fields, Infer: s.Infer, Aliases: s.Aliases, Plugin: m.Name,
		})
	}
	return specs
}

// trySchemas refuses a module whose schemas cannot be compiled in bounds.
func (h *Host) trySchemas(ctx context.Context, m *Module) error {
	if err := sentinels.CheckTypes(m.manifest.types()); err != nil {
		return abi.New(abi.Plugin, "describe: "+err.Error())
	}
	if m.trusted {
		return nil
	}
	text, err := json.Marshal(m.manifest)
	if err != nil {
		return abi.New(abi.Internal, "describe: "+err.Error())
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(h.ctx, func() { cancel(errClosed) })()
	cache, err := h.childCache()
	if err != nil {
		return err
	}
	if cache.tried(m.digest, text) {
		return nil
	}
	bounds := refusal{Time: h.schemaTime, Memory: h.schemaMemory}
	name := "refused-" + schemaNote(text) + ".json"
	if why := cache.checkRefusal(m.digest, name, bounds); why != nil {
		return why
	}
	select {
	case h.children <- struct{}{}:
		defer func() { <-h.children }()
	case <-ctx.Done():
		return abi.New(abi.Cancelled, "load plugin: "+context.Cause(ctx).Error())
	}
	task := childTask{kind: schemaKind, op: "compile schemas", hint: "smaller schemas compile faster", request: childRequest{Memory: h.schemaMemory, CPU: h.schemaTime}}
	if err := h.runChild(ctx, task, text); err != nil {
		cache.recordRefusal(m.digest, name, bounds, err)
		return err
	}
	return cache.noteTried(m.digest, text)
}

// compileSchemas is the child's side of trySchemas.
func compileSchemas(_ childRequest, text []byte) error {
	var m Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	if _, err := sentinels.NewTypeSet(m.types()); err != nil {
		return abi.New(abi.Plugin, "describe: "+err.Error())
	}
	return nil
}

// schemaNote names the schemas of one manifest in the module's folder. It depends on
// the manifest, since a guest may write another one.
func schemaNote(manifest []byte) string {
	sum := sha256.Sum256(manifest)
	return "schemas-" + hex.EncodeToString(sum[:16])
}

// tried reports whether the schemas of a manifest have been compiled before.
func (c *cache) tried(digest string, manifest []byte) bool {
	_, err := os.Stat(filepath.Join(c.dir(digest), schemaNote(manifest)))
	return err == nil
}

func (c *cache) noteTried(digest string, manifest []byte) error {
	err := os.MkdirAll(c.dir(digest), 0o700)
	if err == nil {
		err = os.WriteFile(filepath.Join(c.dir(digest), schemaNote(manifest)), nil, 0o600)
	}
	if err != nil {
		return abi.New(abi.Unavailable, "keep compiled code: "+err.Error())
	}
	return nil
}
