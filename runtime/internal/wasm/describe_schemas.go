package wasm

import (
	"context"
	"encoding/json"
	"time"

	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/compilecache"
	"github.com/sentinel-runtime/sentinel/runtime/internal/wasm/manifest"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// The caller of Load compiles the schemas of a manifest, with a library that takes no
// deadline and whose memory is not bounded. The schemas of an untrusted module are
// therefore first checked against limits, which compiles nothing, and then compiled
// in a child process with limits. A marker in the cache records that this succeeded.

// schemaKind is the kind of child that compiles schemas.
const schemaKind = "schemas"

// Limits on compiling the schemas of one manifest, ABI clause A8.4. The worst
// schemas within the limits of package sentinels take about that time.
const (
	schemaTime   = 2 * time.Second // processor time
	schemaMemory = 256 << 20       // bytes
)

// checkSchemas rejects a module whose schemas cannot be compiled within the limits.
func (h *Host) checkSchemas(ctx context.Context, m *Module) error {
	if err := sentinels.CheckTypes(m.manifest.Types()); err != nil {
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
	if cache.SchemasCompiled(m.digest, text) {
		return nil
	}
	limits := compilecache.Refusal{Time: h.schemaTime, Memory: h.schemaMemory}
	name := compilecache.SchemaRefusal(text)
	if err := cache.CheckRefusal(m.digest, name, limits); err != nil {
		return err
	}
	done, err := acquire(ctx, h.children)
	if err != nil {
		return err
	}
	defer done()
	task := childTask{kind: schemaKind, op: "compile schemas", hint: "smaller schemas compile faster", request: childRequest{Memory: h.schemaMemory, CPU: h.schemaTime}}
	if err := h.runChild(ctx, task, text); err != nil {
		cache.RecordRefusal(m.digest, name, limits, err)
		return err
	}
	return cache.MarkSchemas(m.digest, text)
}

// compileSchemas is the child's side of checkSchemas.
func compileSchemas(_ childRequest, text []byte) error {
	var m manifest.Manifest
	if err := json.Unmarshal(text, &m); err != nil {
		return err
	}
	if _, err := sentinels.NewTypeSet(m.Types()); err != nil {
		return abi.New(abi.Plugin, "describe: "+err.Error())
	}
	return nil
}
