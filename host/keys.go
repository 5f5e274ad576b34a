package host

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/sentinel-runtime/sentinel/host/command"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// keyAge is how long a key is bound to its request. Behind it, the key may be used again.
const keyAge = 30 * 24 * time.Hour

// usedKeys is the collection of keys that callers used. The dot keeps data/* out of it.
const usedKeys = "command.keys"

// usedKey is a document of the collection. Its id is a digest of principal, command and key.
type usedKey struct {
	Params map[string]string `json:"params"` // digests
}

// byUse has the keys in the order of their first use.
var byUse = &runtime.DocumentIndex{Collection: usedKeys, Name: "use", Version: 1, Values: func(d sentinels.Document) [][]any {
	return [][]any{{d.CreatedAt}}
}}

// keyring is the store as the memory of keys.
type keyring Host

var _ command.Keyring = (*keyring)(nil)

// Use implements [command.Keyring]. For a command that writes in the store it writes in the
// transaction of the command; for others it is durable before they begin.
func (k *keyring) Use(ctx context.Context, call *command.Call, key string, params map[string]string) (func(error), error) {
	sum := sha256.Sum256([]byte(string(call.By) + "\x00" + call.As + "\x00" + call.Command + "\x00" + key))
	id := hex.EncodeToString(sum[:])
	if own, ok := call.Records.(records); ok {
		_, err := useKey(ctx, own.DocumentTx, time.Now(), id, call.Command, key, params)
		return func(error) {}, err
	}
	fresh := false
	err := k.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) (err error) {
		fresh, err = useKey(ctx, tx, time.Now(), id, call.Command, key, params)
		return err
	})
	return func(err error) {
		if fresh && refused(err) {
			(*Host)(k).forgetKey(context.WithoutCancel(ctx), id)
		}
	}, err
}

// refused reports whether a call with this error certainly did nothing that its repetition
// would have to find.
func refused(err error) bool {
	switch abi.CodeOf(err) {
	case abi.BadFields, abi.Denied, abi.NotFound, abi.Conflict, abi.Limit:
		return true
	}
	return false
}

func (h *Host) forgetKey(ctx context.Context, id string) {
	err := h.rt.Documents().Update(ctx, func(tx *runtime.DocumentTx) error { return tx.Delete(ctx, usedKeys, id, sentinels.AnyRevision) })
	if err != nil && abi.CodeOf(err) != abi.NotFound {
		h.opt.Logger.Warn("the idempotency key of a refused request stays bound to it", "error", err)
	}
}

// useKey binds a key to its parameters, or compares them with those it is bound to. Each new
// key removes up to two that are too old, so that their number stays in proportion.
func useKey(ctx context.Context, tx *runtime.DocumentTx, now time.Time, id, name, key string, params map[string]string) (fresh bool, err error) {
	doc, err := tx.Get(ctx, usedKeys, id)
	switch {
	case err == nil && now.Sub(doc.CreatedAt) <= keyAge:
		var before usedKey
		if err := json.Unmarshal(doc.Data, &before); err != nil {
			return false, fmt.Errorf("read the use of an idempotency key: %w", err)
		}
		return false, before.compare(name, key, params, doc.CreatedAt)
	case err == nil:
		err = tx.Delete(ctx, usedKeys, id, sentinels.AnyRevision)
	case abi.CodeOf(err) == abi.NotFound:
		err = nil
	}
	if err != nil {
		return false, err
	}
	var old []string
	err = tx.ScanIndex(ctx, byUse, runtime.DocumentRange{To: []any{now.Add(-keyAge)}, Limit: 2}, func(_ string, d sentinels.Document) bool {
		old = append(old, d.ID)
		return true
	})
	for _, id := range old {
		if err == nil {
			err = tx.Delete(ctx, usedKeys, id, sentinels.AnyRevision)
		}
	}
	if err != nil {
		return false, err
	}
	text, err := json.Marshal(usedKey{params})
	if err != nil {
		return false, err
	}
	_, err = tx.Put(ctx, usedKeys, id, text, 0)
	return true, err
}

// compare returns the error of a key that was used for another request.
func (u usedKey) compare(name, key string, params map[string]string, at time.Time) error {
	all := maps.Clone(u.Params)
	maps.Copy(all, params)
	var differ []string
	for _, p := range slices.Sorted(maps.Keys(all)) {
		if u.Params[p] != params[p] {
			differ = append(differ, p)
		}
	}
	if len(differ) == 0 {
		return nil
	}
	return &abi.Error{
		Code: abi.Conflict, Permanent: true,
		Message: fmt.Sprintf("call %q: idempotency key %q was used on %s for a %s with another value of %s",
			name, key, at.UTC().Format(time.RFC3339), name, strings.Join(differ, ", ")),
		Hint: "choose another key for another request, or repeat the first request unchanged to get its result",
	}
}
