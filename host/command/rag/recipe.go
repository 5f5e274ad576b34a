package rag

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// recipes are those every host has.
var recipes = map[string][]string{
	"coding": {"tree", "git", "files", "failures"},
	"review": {"git", "files", "failures"},
	"chat":   {"chat", "activity"},
}

// defaultRecipe is used when neither recipe nor sources are named.
const defaultRecipe = "coding"

// maxSources bounds how many sources one context has.
const maxSources = 32

// sources lists what to build: the recipe's sources, then those named beside
// it, each once.
func (b *Builder) sources(ctx context.Context, req Request) (names []string, err error) {
	if req.Recipe == "" && len(req.Sources) == 0 {
		req.Recipe = defaultRecipe
	}
	if req.Recipe != "" {
		if names, err = b.recipe(ctx, req.Recipe); err != nil {
			return nil, err
		}
	}
	var all []string
	for _, name := range slices.Concat(names, req.Sources) {
		if err := b.checkSource(name); err != nil {
			return nil, err
		}
		if !slices.Contains(all, name) {
			all = append(all, name)
		}
	}
	if len(all) > maxSources {
		return nil, &abi.Error{
			Code: abi.Limit, Permanent: true, Field: "sources",
			Message: fmt.Sprintf("build context: %d sources, the limit is %d", len(all), maxSources),
		}
	}
	return all, nil
}

// recipe looks a name up. An operator's recipe wins over a built-in one.
func (b *Builder) recipe(ctx context.Context, name string) ([]string, error) {
	if b.opt.Recipes != nil {
		found, err := b.opt.Recipes.RecipeSources(ctx, name)
		if err == nil || abi.CodeOf(err) != abi.NotFound {
			return found, err
		}
	}
	if found, ok := recipes[name]; ok {
		return found, nil
	}
	return nil, &abi.Error{
		Code: abi.NotFound, Permanent: true, Field: "recipe",
		Message: fmt.Sprintf("build context: no such recipe %.80q", name),
		Hint:    "built in are " + strings.Join(slices.Sorted(maps.Keys(recipes)), ", ") + "; more can be put into the folder recipes",
	}
}

// checkSource refuses a name that is no source. A source that is known but has
// nothing to say is no error.
func (b *Builder) checkSource(name string) error {
	kind, argument, has := strings.Cut(name, ":")
	var err error
	switch {
	case kind == "file" && has:
		_, err = parseGlob(argument)
	case kind == "chat" && has && argument != "":
	case !has && slices.Contains([]string{"tree", "git", "files", "chat", "failures", "activity"}, name):
	default:
		err = fmt.Errorf("no such source")
	}
	if err == nil {
		return nil
	}
	return &abi.Error{
		Code: abi.BadFields, Permanent: true, Field: "sources",
		Message: fmt.Sprintf("build context: source %.80q: %v", name, err),
		Hint:    "sources are tree, git, files, chat, chat:ROOM, failures, activity and file:GLOB; FORMAT.md F9 has the syntax of globs",
	}
}
