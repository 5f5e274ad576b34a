package webhook_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/webhook"
)

// TestT8Replay covers clause T8.9: a repetition of a signed request is detected
// whatever its unsigned parts are.
func TestT8Replay(t *testing.T) {
	const body = `{"a":1}`
	hexMAC, b64MAC := hex.EncodeToString(mac(secret, body)), base64.StdEncoding.EncodeToString(mac(secret, body))
	a := arm(t, `{"secretEnv":"HOOK_SECRET","methods":["POST","PUT"],"eventHeader":"X-Event"}`, secret)
	receive := func(r triggers.Request) triggers.Firing {
		t.Helper()
		fires, err := a.Receive(r)
		if err != nil || len(fires) != 1 {
			t.Fatal(fires, err)
		}
		return fires[0]
	}
	first := receive(post(body, "X-Hub-Signature-256: sha256="+hexMAC))
	if first.Replay == "" || first.ReplayFor != 5*time.Minute || strings.Contains(first.Replay, hexMAC) {
		t.Fatalf("replay %q for %s", first.Replay, first.ReplayFor)
	}
	put := post(body, "X-Hub-Signature-256: "+hexMAC)
	put.Method = "PUT"
	for name, r := range map[string]triggers.Request{
		"unchanged":    post(body, "X-Hub-Signature-256: sha256="+hexMAC),
		"bare":         post(body, "X-Hub-Signature-256: "+hexMAC),
		"upper case":   post(body, "X-Hub-Signature-256: "+strings.ToUpper(hexMAC)),
		"base64":       post(body, "X-Hub-Signature-256: "+b64MAC),
		"another key":  post(body, "X-Hub-Signature-256: "+hexMAC, "Idempotency-Key: other"),
		"another name": post(body, "X-Hub-Signature-256: "+hexMAC, "X-Event: other"),
		"an event":     post(body, "X-Hub-Signature-256: "+hexMAC, "Ce-Specversion: 1.0", "Ce-Id: 7", "Ce-Source: /s", "Ce-Type: t"),
		"PUT":          put,
	} {
		if got := receive(r); got.Replay != first.Replay {
			t.Errorf("%s: replay %q, want %q", name, got.Replay, first.Replay)
		}
	}
	const other = `{"a":1} `
	if got := receive(post(other, "X-Hub-Signature-256: "+hex.EncodeToString(mac(secret, other)))); got.Replay == first.Replay {
		t.Error("another body has the same replay value")
	}
}

// TestT8ReplayOfBatch checks that equal events of one batch are no repetitions.
func TestT8ReplayOfBatch(t *testing.T) {
	const event = `{"specversion":"1.0","id":"1","source":"/s","type":"t"}`
	const body = "[" + event + "," + event + "]"
	fires, err := arm(t, byHMAC, secret).Receive(post(body, "Content-Type: application/cloudevents-batch+json",
		"X-Hub-Signature-256: "+hex.EncodeToString(mac(secret, body))))
	if err != nil || len(fires) != 2 || fires[0].Replay == "" || fires[0].Replay == fires[1].Replay {
		t.Errorf("%+v %v", fires, err)
	}
}

// TestT8ReplayWindow covers option replayWindowMs, which only hmac-sha256 has.
func TestT8ReplayWindow(t *testing.T) {
	const body = "{}"
	signed := post(body, "X-Hub-Signature-256: "+hex.EncodeToString(mac(secret, body)), "Authorization: Bearer "+secret)
	for options, want := range map[string]time.Duration{
		`{"secretEnv":"HOOK_SECRET","replayWindowMs":60000}`: time.Minute,
		`{"secretEnv":"HOOK_SECRET","replayWindowMs":0}`:     0,
		byToken: 0,
		open:    0,
	} {
		fires, err := arm(t, options, secret).Receive(signed)
		if err != nil || len(fires) != 1 || fires[0].ReplayFor != want || (fires[0].Replay != "") != (want > 0) {
			t.Errorf("%s: %+v %v, want %s", options, fires, err, want)
		}
	}
	for options, want := range map[string]string{
		`{"secretEnv":"S","replayWindowMs":-1}`:                                "want 0 to 86400000",
		`{"secretEnv":"S","replayWindowMs":86400001}`:                          "want 0 to 86400000",
		`{"secretEnv":"S","auth":"token","replayWindowMs":1}`:                  "requires auth hmac-sha256",
		`{"secretEnv":"S","auth":"standard-webhooks","replayWindowMs":300000}`: "requires auth hmac-sha256",
		`{"insecure":true,"replayWindowMs":0}`:                                 "requires auth hmac-sha256",
	} {
		err := webhook.New(webhook.Options{}).Check(sentinels.Trigger{Type: "webhook", Options: json.RawMessage(options)})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
	}
}
