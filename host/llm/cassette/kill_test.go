package cassette_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/sentinel-runtime/sentinel/host/llm/cassette"
)

// TestMain records without end when it is the child of TestKill.
func TestMain(m *testing.M) {
	file := os.Getenv("CASSETTE_TEST_RECORD")
	if file == "" {
		os.Exit(m.Run())
	}
	r, err := cassette.Record(file, echo{}, cassette.RecordOptions{Append: true})
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	for i := 1; ; i++ {
		if _, err := r.Turn(context.Background(), ask(fmt.Sprint("turn ", i)), nil); err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		fmt.Println("done") // only now may anybody know of the turn
	}
}

// TestKill kills a recording process at once, several times over one file, and
// finds every turn it had answered.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	file := filepath.Join(t.TempDir(), "run.jsonl")
	answered := 0
	for round := range 3 {
		cmd := exec.Command(os.Args[0])
		cmd.Env = append(os.Environ(), "CASSETTE_TEST_RECORD="+file)
		output, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(output)
		for range 10 + 7*round {
			if !lines.Scan() || lines.Text() != "done" {
				t.Fatalf("the child says %q", lines.Text())
			}
			answered++
		}
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		for lines.Scan() {
			if lines.Text() == "done" {
				answered++
			}
		}
		_ = cmd.Wait()
		p := play(t, file, cassette.PlayOptions{})
		if p.Len() < answered {
			t.Fatalf("%d turns were answered and %d are recorded", answered, p.Len())
		}
		answered = p.Len() // one more may have been written and not said
	}
}
