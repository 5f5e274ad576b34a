package rag_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/sentinel-runtime/sentinel/host/command/rag"
)

func ExampleBuilder_Build() {
	dir, err := os.MkdirTemp("", "rag")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	for name, text := range map[string]string{"README.md": "Sells tea.\n", ".env": "TOKEN=x\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			fmt.Println(err)
			return
		}
	}
	context, err := rag.New(rag.Options{}).Build(context.Background(), rag.Request{Workspace: dir, Sources: []string{"tree", "file:*.md"}})
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Print(context.Text)
	// Output:
	// # tree
	// README.md
	//
	// # file:*.md
	// --- README.md
	// Sells tea.
}
