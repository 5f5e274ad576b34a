package cli_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/cli"
	"github.com/sentinel-runtime/sentinel/host/cli/app"
)

// The measurements come from outside: a program may be built without them.
func TestBench(t *testing.T) {
	var out, talk bytes.Buffer
	env := app.Env{Args: []string{"bench", "-o", "json"}, Dir: t.TempDir(), Stdin: strings.NewReader(""), Stdout: &out, Stderr: &talk}
	if code := cli.Run(t.Context(), env); code != app.ExitFailed || !strings.Contains(talk.String(), "without its measurements") {
		t.Errorf("code %d: %s", code, talk.String())
	}
	env.Bench = func(_ context.Context, w io.Writer, format string) error {
		_, err := fmt.Fprintln(w, "as", format)
		return err
	}
	if code := cli.Run(t.Context(), env); code != app.ExitOK || out.String() != "as json\n" {
		t.Errorf("code %d: %q", code, out.String())
	}
}
