package host_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/sentinel-runtime/sentinel/host"
	"github.com/sentinel-runtime/sentinel/runtime"
	"github.com/sentinel-runtime/sentinel/sdk/role"
	"github.com/sentinel-runtime/sentinel/sentinels"
)

// notifyKit returns a plugin whose notifier sends messages to a server.
func notifyKit(host string) string {
	return `const text = {type: "string"};
	sentinel.plugin({name: "kit", version: "1", permissions: [{use: "provide", names: ["notifier"], reason: "r"}, {use: "http", names: ["` + host + `"], reason: "r"}],
		steps: {kit_pager: {summary: "Pages people.", fields: {type: "object", properties: {title: text, text, severity: {enum: ["info", "warning", "error"]}, key: text, event: text, ticket: text,
			run: text, url: text}, required: ["title", "severity"], additionalProperties: false}, provides: {as: "notifier"}, run: (step, ctx) => {
			const r = ctx.http({method: "POST", url: "http://` + host + `/page", body: JSON.stringify(step.fields)});
			if (r.status >= 400) throw new sentinel.Error("denied", "the pager said " + r.status, {permanent: true});
		}}}});`
}

// TestPluginNotifier: a message of a run goes to the notifier of a plugin, over HTTP, and a
// message of a person too. A notifier that refuses is the error of the message.
func TestPluginNotifier(t *testing.T) {
	var mu sync.Mutex
	var got []role.Notice
	status := http.StatusOK
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		var n role.Notice
		mu.Lock()
		defer mu.Unlock()
		if err := json.Unmarshal(body, &n); err != nil {
			t.Errorf("%s: %v", body, err)
		}
		got = append(got, n)
		w.WriteHeader(status)
	}))
	t.Cleanup(server.Close)
	r := openRoles(t, notifyKit(strings.TrimPrefix(server.URL, "http://")), host.Options{})
	var out struct {
		Sent []struct {
			To string
			OK bool
		}
	}
	must(t, r.Host, "notify/send", `{"title":"none","text":"a"}`, &out)
	if len(out.Sent) != 0 {
		t.Errorf("before it is allowed: %+v", out)
	}
	must(t, r.Host, "plugin/allow", `{"name":"kit","private":true}`, nil)
	res := r.do(`{"name":"n","steps":[{"command":"notify/send","params":{"title":"Build $run.sentinel failed","text":"a","severity":"error","url":"https://example.com/1"},"outputTo":"out"}]}`)
	if res.Status != sentinels.StatusCompleted || !strings.Contains(string(res.Variables["out"]), `"to":"kit_pager","ok":true`) {
		t.Fatalf("%s: %s %v", res.Status, res.Variables["out"], res.Error)
	}
	if len(got) != 1 || got[0].Title != "Build n failed" || got[0].Severity != "error" || got[0].URL != "https://example.com/1" || got[0].Key == "" {
		t.Errorf("got %+v", got)
	}
	children, err := r.Runtime().Runs(runtime.RunFilter{Parent: res.Run})
	if err != nil || len(children) != 1 || children[0].Sentinel != "n@kit_pager" {
		t.Errorf("children %+v, %v", children, err)
	}
	must(t, r.Host, "notify/send", `{"title":"By hand","text":"a"}`, &out)
	if len(out.Sent) != 1 || !out.Sent[0].OK || len(got) != 2 {
		t.Errorf("by hand: %+v, %+v", out, got)
	}
	status = http.StatusForbidden
	if err := call(t, r.Host, "notify/send", `{"title":"Refused","text":"a"}`, nil); err == nil || !strings.Contains(err.Error(), "the pager said 403") {
		t.Errorf("refused: %v", err)
	}
}
