package sdk_test

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/sdk"
	"github.com/sentinel-runtime/sentinel/sdk/sdktest"
)

// TestBase64 compares with the standard library, through files.
func TestBase64(t *testing.T) {
	for n := range 70 {
		data := bytes.Repeat([]byte{0xff, 0, 0xc0, byte(n)}, n)[:n]
		files := map[string]string{"in": string(data)}
		_, fault := sdktest.Run(t, probe(func(c *sdk.Context) (sdk.Value, error) {
			b, err := c.Folder("data").Read("in")
			if err != nil {
				return sdk.Null(), err
			}
			return sdk.Null(), c.Folder("data").Write("out", b)
		}), "probe", `{}`, sdktest.New(t).Folder("data", files))
		if fault != nil || files["out"] != string(data) {
			t.Fatalf("%d bytes: %q, %v", n, files["out"], fault)
		}
	}
	for _, text := range []string{"A", "AA", "AAA", "====", "A===", "AB==", "AAB=", "AA=A", "AA==AAAA", "A A=", "A-_="} {
		if _, err := base64.StdEncoding.Strict().DecodeString(text); err == nil {
			t.Fatalf("the library accepts %q", text)
		}
		h := sdktest.New(t).OK("sentinel_file", fmt.Sprintf(`{"text":%q,"encoding":"base64","size":1,"truncated":false}`, text))
		_, fault := sdktest.Run(t, probe(func(c *sdk.Context) (sdk.Value, error) {
			_, err := c.Folder("data").Read("x")
			return sdk.Null(), err
		}), "probe", `{}`, h)
		if fault == nil || !strings.Contains(fault.Message, "not base64") {
			t.Errorf("%q: %v", text, fault)
		}
	}
}

func TestReadInPieces(t *testing.T) {
	read := probe(func(c *sdk.Context) (sdk.Value, error) {
		b, err := c.Folder("data").Read("x")
		return sdk.String(string(b)), err
	})
	h := sdktest.New(t).OK("sentinel_file", `{"text":"ab","size":3,"truncated":true}`, `{"text":"c","size":3,"truncated":false}`)
	if out, fault := sdktest.Run(t, read, "probe", `{}`, h); fault != nil || out.String() != `"abc"` {
		t.Errorf("%v, %v", out, fault)
	}
	if got := h.Requests("sentinel_file"); len(got) != 2 || got[1] != `{"folder":"data","offset":2,"op":"read","path":"x"}` {
		t.Errorf("requests %q", got)
	}
	for _, second := range []string{`{"text":"c","size":4,"truncated":false}`, `{"text":"","size":3,"truncated":true}`} {
		h = sdktest.New(t).OK("sentinel_file", `{"text":"ab","size":3,"truncated":true}`, second)
		if _, fault := sdktest.Run(t, read, "probe", `{}`, h); fault == nil || fault.Code != sdk.CodeConflict || fault.Permanent {
			t.Errorf("%s: %v, want a conflict", second, fault)
		}
	}
}

// A step that stores a number in a file.
func ExampleContext_Folder() {
	count := func(c *sdk.Context) (sdk.Value, error) {
		data := c.Folder("data") // {Use: sdk.UseFolder, Names: []string{"data:rw"}, Reason: "Keeps the count."}
		seen, err := data.Read("seen.txt")
		if err != nil && sdk.AsError(err).Code != sdk.CodeNotFound {
			return sdk.Value{}, err
		}
		seen = append(seen, '|')
		return sdk.Int(int64(len(seen))), data.Write("seen.txt", seen)
	}
	t := new(testing.T) // a test has its own
	files := map[string]string{"seen.txt": "||"}
	out, fault := sdktest.Run(t, probe(count), "probe", `{}`, sdktest.New(t).Folder("data", files))
	fmt.Println(out, fault == nil, files["seen.txt"])
	// Output: 3 true |||
}
