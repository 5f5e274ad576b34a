package rag

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/sentinel-runtime/sentinel/sdk/abi"
	"github.com/sentinel-runtime/sentinel/sentinels/glob"
)

// recipes are the built-in recipes.
var recipes = map[string][]string{
	"coding": {"tree", "git", "files", "failures"},
	"review": {"git", "files", "failures"},
	"chat":   {"chat", "activity"},
}

// defaultRecipe is used if a request has neither a recipe nor sources.
const defaultRecipe = "coding"

// maxSources limits the sources of one context.
const maxSources = 32

// sources returns the sources of a request, each once: first those of the recipe,
// then the others.
func (b *Builder) sources(ctx context.Context, req Request) (names []string, err error) {
	if req.Recipe == "" && len(req.Sources) == 0 {
		req.Recipe = defaultRecipe
		if req.MaxMessages > 0 { // as recipes of the specification ask for their conversation
			req.Recipe = "chat"
		}
	}
	if req.Recipe != "" {
		if names, err = b.recipe(ctx, req.Recipe); err != nil {
			return nil, err
		}
	}
	more := req.Sources
	if req.Participants {
		more = append(slices.Clip(more), "participants")
	}
	if req.Strategy {
		more = append(slices.Clip(more), "strategy")
	}
	var all []string
	for _, name := range slices.Concat(names, more) {
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
			Message: fmt.Sprintf("build context: %d sources: want at most %d", len(all), maxSources),
		}
	}
	return all, nil
}

// recipe returns the sources of a recipe. A recipe of the operator replaces a
// built-in one of the same name.
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
		Message: fmt.Sprintf("build context: recipe %.80q not found", name),
		Hint:    "built in are " + strings.Join(slices.Sorted(maps.Keys(recipes)), ", ") + "; the operator can add others to the folder recipes",
	}
}

// checkSource returns an error for an unknown source. A known source without a text
// is valid.
func (b *Builder) checkSource(name string) error {
	kind, argument, has := strings.Cut(name, ":")
	var err error
	switch {
	case kind == "file" && has:
		_, err = glob.Parse(argument)
	case kind == "chat" && has && argument != "":
	case !has && slices.Contains([]string{"tree", "git", "files", "chat", "participants", "strategy", "failures", "activity"}, name):
	default:
		err = errors.New("unknown source")
	}
	if err == nil {
		return nil
	}
	return &abi.Error{
		Code: abi.BadFields, Permanent: true, Field: "sources",
		Message: fmt.Sprintf("build context: source %.80q: %v", name, err),
		Hint:    "sources are tree, git, files, chat, chat:ROOM, participants, strategy, failures, activity and file:GLOB; `sentinel help globs` has the syntax",
	}
}
