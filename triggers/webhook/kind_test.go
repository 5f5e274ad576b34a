package webhook_test

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels"
	"github.com/sentinel-runtime/sentinel/triggers"
	"github.com/sentinel-runtime/sentinel/triggers/webhook"
)

const secret = "correct horse battery staple"

var noon = time.Date(2026, 5, 1, 12, 0, 0, 0, time.UTC)

func env(value string) triggers.Env {
	return triggers.Env{
		Sentinel: "a", Now: func() time.Time { return noon },
		Secret: func(name string) (string, bool) { return value, name == "HOOK_SECRET" && value != "unset" },
	}
}

func arm(t testing.TB, options, value string) triggers.Receiver {
	t.Helper()
	a, err := webhook.New(webhook.Options{}).Arm(sentinels.Trigger{Type: "webhook", Options: json.RawMessage(options)}, env(value))
	if err != nil {
		t.Fatal(err)
	}
	return a.(triggers.Receiver)
}

func mac(key, body string) []byte {
	h := hmac.New(sha256.New, []byte(key))
	h.Write([]byte(body))
	return h.Sum(nil)
}

// post returns a request with headers given as "Name: value".
func post(body string, headers ...string) triggers.Request {
	r := triggers.Request{Method: "POST", Header: map[string][]string{}, Body: []byte(body)}
	for _, h := range headers {
		name, value, _ := strings.Cut(h, ": ")
		r.Header[name] = append(r.Header[name], value)
	}
	return r
}

const (
	byHMAC     = `{"secretEnv":"HOOK_SECRET"}`
	byStandard = `{"secretEnv":"HOOK_SECRET","auth":"standard-webhooks"}`
	byToken    = `{"secretEnv":"HOOK_SECRET","auth":"token"}`
	open       = `{"insecure":true}`
)

// TestT8Auth covers clauses T8.2 and T8.8: valid and invalid requests of each
// authentication method but standard-webhooks.
func TestT8Auth(t *testing.T) {
	const body = `{"a":1}`
	hexMAC, b64MAC := hex.EncodeToString(mac(secret, body)), base64.StdEncoding.EncodeToString(mac(secret, body))
	for _, c := range []struct {
		name, options, secret string
		headers               []string
		in                    bool
	}{
		{"hmac", byHMAC, secret, []string{"X-Hub-Signature-256: sha256=" + hexMAC}, true},
		{"bare hex", byHMAC, secret, []string{"X-Hub-Signature-256: " + strings.ToUpper(hexMAC)}, true},
		{"base64", byHMAC, secret, []string{"X-Hub-Signature-256: " + b64MAC}, true},
		{"own header", `{"secretEnv":"HOOK_SECRET","signatureHeader":"x-sig"}`, secret, []string{"X-Sig: " + hexMAC}, true},
		{"other header", `{"secretEnv":"HOOK_SECRET","signatureHeader":"x-sig"}`, secret, []string{"X-Hub-Signature-256: " + hexMAC}, false},
		{"no signature", byHMAC, secret, nil, false},
		{"empty signature", byHMAC, secret, []string{"X-Hub-Signature-256: "}, false},
		{"empty hex", byHMAC, secret, []string{"X-Hub-Signature-256: sha256="}, false},
		{"short", byHMAC, secret, []string{"X-Hub-Signature-256: sha256=" + hexMAC[:32]}, false},
		{"of another secret", byHMAC, secret, []string{"X-Hub-Signature-256: " + hex.EncodeToString(mac("x", body))}, false},
		{"of another body", byHMAC, secret, []string{"X-Hub-Signature-256: " + hex.EncodeToString(mac(secret, body+" "))}, false},
		{"two signatures", byHMAC, secret, []string{"X-Hub-Signature-256: " + hexMAC, "X-Hub-Signature-256: " + hexMAC}, false},
		{"secret is not set", byHMAC, "unset", []string{"X-Hub-Signature-256: " + hexMAC}, false},
		{"secret is empty", byHMAC, "", []string{"X-Hub-Signature-256: " + hex.EncodeToString(mac("", body))}, false},
		{"the secret as a token", byHMAC, secret, []string{"Authorization: Bearer " + secret}, false},

		{"bearer", byToken, secret, []string{"Authorization: Bearer " + secret}, true},
		{"bearer in lower case", byToken, secret, []string{"Authorization: bearer " + secret}, true},
		{"gitlab", byToken, secret, []string{"X-Gitlab-Token: " + secret}, true},
		{"own token header", `{"secretEnv":"HOOK_SECRET","auth":"token","tokenHeader":"X-Key"}`, secret, []string{"X-Key: " + secret}, true},
		{"not its token header", `{"secretEnv":"HOOK_SECRET","auth":"token","tokenHeader":"X-Key"}`, secret, []string{"Authorization: Bearer " + secret}, false},
		{"basic", byToken, secret, []string{"Authorization: Basic " + secret}, false},
		{"wrong token", byToken, secret, []string{"Authorization: Bearer wrong"}, false},
		{"no token", byToken, secret, nil, false},
		{"empty token, empty secret", byToken, "", []string{"Authorization: Bearer "}, false},
		{"no token, no secret", byToken, "unset", nil, false},

		{"open", open, "", nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			fires, err := arm(t, c.options, c.secret).Receive(post(body, c.headers...))
			if c.in {
				if err != nil || len(fires) != 1 || string(fires[0].Event.Data) != body {
					t.Errorf("%+v %v", fires, err)
				}
				return
			}
			if abi.CodeOf(err) != abi.Denied || len(fires) != 0 {
				t.Errorf("%+v %v, want it denied", fires, err)
			}
			if err != nil && c.secret != "" && strings.Contains(err.Error(), c.secret) {
				t.Errorf("the error contains the secret: %v", err)
			}
		})
	}
}

// Sign makes headers that the project's own library verifies.
func TestSign(t *testing.T) {
	key := "whsec_" + base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	body := []byte(`{"type":"ticket:update"}`)
	wh, err := standardwebhooks.NewWebhook(key)
	if err != nil {
		t.Fatal(err)
	}
	signed, err := webhook.Sign(key, "msg_1", time.Now(), body)
	if err != nil {
		t.Fatal(err)
	}
	h := http.Header{}
	for name, value := range signed {
		h.Set(name, value)
	}
	if err := wh.Verify(body, h); err != nil {
		t.Error(err)
	}
	if err := wh.Verify([]byte(`{}`), h); err == nil {
		t.Error("the body is not signed")
	}
	if open, err := webhook.Sign("", "msg_1", time.Now(), body); err != nil || open["webhook-signature"] != "" || open["webhook-id"] != "msg_1" {
		t.Errorf("without a secret: %v, %v", open, err)
	}
	for _, c := range []struct{ secret, id string }{{key, ""}, {key, "msg.1"}, {"whsec_" + "no base64", "msg_1"}, {"whsec_", "msg_1"}} {
		if h, err := webhook.Sign(c.secret, c.id, time.Now(), body); err == nil || strings.Contains(err.Error(), "no base64") {
			t.Errorf("Sign(%q, %q): %v, %v", c.secret, c.id, h, err)
		}
	}
}

// TestT8StandardWebhooks tests with signatures of the project's own library.
func TestT8StandardWebhooks(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("0123456789abcdef01234567"))
	const body = `{"type":"user.created"}`
	sign := func(id string, at time.Time) string {
		wh, err := standardwebhooks.NewWebhook("whsec_" + key)
		if err != nil {
			t.Fatal(err)
		}
		s, err := wh.Sign(id, at, []byte(body))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	request := func(id string, at time.Time, signature string) triggers.Request {
		return post(body, "Webhook-Id: "+id, fmt.Sprint("Webhook-Timestamp: ", at.Unix()), "Webhook-Signature: "+signature, "Idempotency-Key: unsigned")
	}
	for _, c := range []struct {
		name, options, secret string
		r                     triggers.Request
		in                    bool
	}{
		{"good", byStandard, "whsec_" + key, request("msg_1", noon, sign("msg_1", noon)), true},
		{"secret without prefix", byStandard, key, request("msg_1", noon, sign("msg_1", noon)), true},
		{"a whsec_ secret decides", byHMAC, "whsec_" + key, request("msg_1", noon, sign("msg_1", noon)), true},
		{"old secret first", byStandard, key, request("msg_1", noon, "v1a,x v1,AAAA "+sign("msg_1", noon)), true},
		{"almost too old", byStandard, key, request("msg_1", noon.Add(-5*time.Minute), sign("msg_1", noon.Add(-5*time.Minute))), true},
		{"too old", byStandard, key, request("msg_1", noon.Add(-301*time.Second), sign("msg_1", noon.Add(-301*time.Second))), false},
		{"too new", byStandard, key, request("msg_1", noon.Add(301*time.Second), sign("msg_1", noon.Add(301*time.Second))), false},
		{"another time", byStandard, key, request("msg_1", noon.Add(time.Second), sign("msg_1", noon)), false},
		{"another id", byStandard, key, request("msg_2", noon, sign("msg_1", noon)), false},
		{"a dot in the id", byStandard, key, request("msg.1", noon, sign("msg.1", noon)), false},
		{"no time", byStandard, key, post(body, "Webhook-Id: msg_1", "Webhook-Signature: "+sign("msg_1", noon)), false},
		{"another version", byStandard, key, request("msg_1", noon, strings.Replace(sign("msg_1", noon), "v1,", "v2,", 1)), false},
		{"not base64", byStandard, "not base64!", request("msg_1", noon, sign("msg_1", noon)), false},
		{"hmac with a whsec_ secret", byHMAC, "whsec_" + key, post(body, "X-Hub-Signature-256: "+hex.EncodeToString(mac("whsec_"+key, body))), false},
		{"standard with auth hmac", byHMAC, key, request("msg_1", noon, sign("msg_1", noon)), false},
	} {
		t.Run(c.name, func(t *testing.T) {
			fires, err := arm(t, c.options, c.secret).Receive(c.r)
			if !c.in {
				if abi.CodeOf(err) != abi.Denied {
					t.Errorf("%v, want it denied", err)
				}
				return
			}
			if err != nil || len(fires) != 1 {
				t.Fatalf("%+v %v", fires, err)
			}
			// A replayed request can have another header, but not another id.
			if fires[0].Key != "webhook-id:msg_1" {
				t.Errorf("key %q", fires[0].Key)
			}
		})
	}
}

// TestT8Check covers clause T8.1: only "insecure" turns authentication off.
func TestT8Check(t *testing.T) {
	k := webhook.New(webhook.Options{})
	for _, options := range []string{
		byHMAC, byStandard, byToken, open, `{"insecure":true,"auth":"none","methods":["GET","PUT"]}`,
		`{"secretEnv":"S","event":"github:push","eventHeader":"X-GitHub-Event","idempotencyHeader":"X-Id"}`,
	} {
		if err := k.Check(sentinels.Trigger{Type: "webhook", Options: json.RawMessage(options)}); err != nil {
			t.Errorf("%s: %v", options, err)
		}
	}
	for options, want := range map[string]string{
		``:                                  "missing secretEnv",
		`{}`:                                "missing secretEnv",
		`{"auth":"none"}`:                   `set "insecure": true`,
		`{"auth":"token"}`:                  `missing secretEnv: auth "token" needs`,
		`{"auth":"basic"}`:                  `invalid auth "basic": want hmac-sha256`,
		`{"secret":"x"}`:                    `did you mean "secretEnv"`,
		`{"secretEnv":"hunter2-hunter"}`:    "want the name of an environment variable",
		`{"secretEnv":"S","insecure":true}`: "contradict",
		`{"secretEnv":"S","auth":"none","insecure":true}`:         "does not use secretEnv",
		`{"secretEnv":"S","methods":["DELETE"]}`:                  "want GET, POST or PUT",
		`{"secretEnv":"S","methods":["GET"]}`:                     "no body to sign",
		`{"secretEnv":"S","auth":"token","signatureHeader":"X"}`:  "requires auth hmac-sha256",
		`{"secretEnv":"S","tokenHeader":"X"}`:                     "requires auth token",
		`{"secretEnv":"S","signatureHeader":"X Y"}`:               "want the name of a header",
		`{"secretEnv":"S","event":"git:*"}`:                       `invalid event "git:*"`,
		`{"secretEnv":5}`:                                         "is a number, want a string",
		`{"secretEnv":"S","auth":"hmac-sha256","eventHeader":""}`: "",
	} {
		err := k.Check(sentinels.Trigger{Type: "webhook", Options: json.RawMessage(options)})
		if want == "" {
			if err != nil {
				t.Errorf("%s: %v", options, err)
			}
			continue
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", options, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "hunter") {
			t.Errorf("%s: the error quotes what may be a secret: %v", options, err)
		}
	}
}

// TestT8MissingSecret checks that Run reports a missing secret.
func TestT8MissingSecret(t *testing.T) {
	a := arm(t, byHMAC, "unset").(triggers.Armed)
	if err := a.Run(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "the secret HOOK_SECRET is not set on this host") {
		t.Errorf("Run: %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		if err := arm(t, byHMAC, secret).(triggers.Armed).Run(ctx, nil); err != nil || ctx.Err() == nil {
			t.Errorf("Run: %v", err)
		}
	})
}

// TestPing: the request that GitHub sends when a webhook is set up starts nothing, and proves the
// secret as every other one does.
func TestPing(t *testing.T) {
	const body = `{"zen":"Design for failure.","hook_id":1}`
	signed := "X-Hub-Signature-256: sha256=" + hex.EncodeToString(mac(secret, body))
	a := arm(t, byHMAC, secret)
	if list, err := a.Receive(post(body, "X-Github-Event: ping", signed)); err != nil || len(list) != 0 {
		t.Errorf("a ping: %+v, %v", list, err)
	}
	if list, err := a.Receive(post(body, "X-Github-Event: push", signed)); err != nil || len(list) != 1 {
		t.Errorf("a push: %+v, %v", list, err)
	}
	for _, r := range []triggers.Request{post(body, "X-Github-Event: ping"), post(body+" ", "X-Github-Event: ping", signed)} {
		if list, err := a.Receive(r); abi.CodeOf(err) != abi.Denied {
			t.Errorf("a ping without a valid signature: %+v, %v", list, err)
		}
	}
	if list, err := arm(t, byHMAC, "").Receive(post(body, "X-Github-Event: ping", signed)); abi.CodeOf(err) != abi.Denied {
		t.Errorf("a ping without the secret on this host: %+v, %v", list, err)
	}
}
