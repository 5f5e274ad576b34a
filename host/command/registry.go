package command

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/sentinel-runtime/sentinel/internal/lazyregexp"
	"github.com/sentinel-runtime/sentinel/sdk/abi"
)

// A Registry holds commands by name.
//
// # Concurrency
//
// Every method is safe for concurrent use. A call that has begun goes on with
// the command it found, also when that is removed meanwhile.
type Registry struct {
	mu       sync.RWMutex
	commands map[string]*entry
	source   Source            // nil for none
	compiled map[string]*entry // by name, of commands that source has offered
	keyring  Keyring           // nil for none
	placed   Placed            // nil for none
	edits    int               // how often commands were added or removed
}

// A Source offers commands that come and go while the registry is in use, such as those of
// plugins.
//
// # Concurrency
//
// Safe for concurrent use. It is asked at every lookup of a name that was not added, so it
// must be fast; it must not call the registry.
type Source interface {
	// Commands returns what there is now. Two commands with the same name and the same
	// Version are the same.
	Commands() []Command
	// Absent returns why a command is not offered although it is known, nil if it is not.
	Absent(name string) error
}

// entry is a command with what is computed once when it is added.
type entry struct {
	Command
	properties []string // sorted
}

// schema returns the compiled schema of the parameters. It panics if that of a type cannot be
// compiled, a mistake in the program; the others were compiled when the command was added.
func (e *entry) schema() *schema {
	s, err := e.input.compiled()
	if err != nil {
		panic(fmt.Sprintf("command %q: input schema: %v", e.Name, err))
	}
	return s
}

// validName allows what MCP servers call their tools, beside our own names.
var validName = lazyregexp.New(`^[A-Za-z][A-Za-z0-9_.-]{0,127}(/[A-Za-z0-9][A-Za-z0-9_.-]{0,127}){0,4}$`)

// NewRegistry returns a registry of cmds. The error joins every problem found.
func NewRegistry(cmds ...Command) (*Registry, error) {
	r := &Registry{commands: map[string]*entry{}}
	if err := r.Add(cmds...); err != nil {
		return nil, err
	}
	return r, nil
}

// Add adds all of cmds or none. A name that is taken is an error.
func (r *Registry) Add(cmds ...Command) error {
	fresh := make(map[string]*entry, len(cmds))
	var problems []error
	for _, c := range cmds {
		e, err := compile(c)
		if err == nil && fresh[c.Name] != nil {
			err = errors.New("given twice")
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("add command %q: %w", c.Name, err))
			continue
		}
		fresh[c.Name] = e
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for name := range fresh {
		if r.commands[name] != nil {
			problems = append(problems, fmt.Errorf("add command %q: name is taken", name))
		}
	}
	if len(problems) > 0 {
		return errors.Join(problems...)
	}
	for name, e := range fresh {
		r.commands[name] = e
	}
	r.edits++
	return nil
}

// Remove removes a command; it ignores an unknown name.
func (r *Registry) Remove(name string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.commands, name)
	r.edits++
}

// Lookup returns the command called name.
func (r *Registry) Lookup(name string) (Command, bool) {
	if e := r.find(name); e != nil {
		return e.Command, true
	}
	return Command{}, false
}

// Follow adds what source offers at each moment. Commands that were added take precedence.
// It is called once, before the registry is used.
func (r *Registry) Follow(source Source) { r.source, r.compiled = source, map[string]*entry{} }

// find returns the entry of a name, nil if there is none.
func (r *Registry) find(name string) *entry {
	r.mu.RLock()
	e := r.commands[name]
	r.mu.RUnlock()
	if e == nil && r.source != nil {
		for _, c := range r.source.Commands() {
			if c.Name == name {
				return r.offeredNow(c)
			}
		}
	}
	return e
}

// offeredNow returns the entry of a command of the source, nil if its schema cannot be
// compiled, which the source has checked with [Check].
func (r *Registry) offeredNow(c Command) *entry {
	r.mu.RLock()
	e := r.compiled[c.Name]
	r.mu.RUnlock()
	if e != nil && e.Version == c.Version {
		return e
	}
	e, err := compile(c)
	if err != nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.compiled[c.Name] = e
	return e
}

// Check returns why a command cannot be in a registry. It also compiles the schema of a type, which
// [Registry.Add] leaves for the first call.
func Check(c Command) error {
	e, err := compile(c)
	if err != nil {
		return err
	}
	s, err := c.input.compiled()
	if err != nil {
		return fmt.Errorf("input schema: %w", err)
	}
	if names := propertyNames(s.shape); !slices.Equal(names, e.properties) {
		return fmt.Errorf("input schema: its properties are %v, those of its type %v", names, e.properties)
	}
	return nil
}

// absent returns why a command that is not found is not offered, nil if it is not known.
func (r *Registry) absent(name string) *abi.Error {
	if r.source == nil {
		return nil
	}
	return abi.As(r.source.Absent(name))
}

// Absent returns why a command that [Registry.Lookup] does not find cannot be used, nil if
// it is not known at all.
func (r *Registry) Absent(name string) *abi.Error {
	if r.find(name) != nil {
		return nil
	}
	return r.absent(name)
}

// Version returns a text that is another one whenever [Registry.List] returns other commands: what is made of
// the list is made once for each.
func (r *Registry) Version() string {
	r.mu.RLock()
	version := strconv.Itoa(r.edits)
	r.mu.RUnlock()
	if r.source != nil {
		for _, c := range r.source.Commands() {
			version += fmt.Sprintf("\n%s %s %s", c.Name, c.Effect, c.Version)
		}
	}
	return version
}

// List returns every command, sorted by name.
func (r *Registry) List() []Command {
	r.mu.RLock()
	list := make([]Command, 0, len(r.commands))
	added := make(map[string]bool, len(r.commands))
	for name, e := range r.commands {
		list, added[name] = append(list, e.Command), true
	}
	r.mu.RUnlock()
	if r.source != nil {
		for _, c := range r.source.Commands() {
			if e := r.offeredNow(c); e != nil && !added[c.Name] {
				list = append(list, e.Command)
			}
		}
	}
	slices.SortFunc(list, func(a, b Command) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// Names returns the name of every command, sorted.
func (r *Registry) Names() []string { return namesOf(r.List()) }

func namesOf(list []Command) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Name
	}
	return names
}

// Offer returns the commands that a model with the allow-list tools may call,
// sorted by name. See [Allowed].
func (r *Registry) Offer(tools []string) []Command {
	return slices.DeleteFunc(r.List(), func(c Command) bool { return !Allowed(tools, c) })
}

// compile checks a command, and compiles its schema if that is not of a type.
func compile(c Command) (*entry, error) {
	if !validName.MatchString(c.Name) {
		return nil, errors.New("name is not family/verb")
	}
	if c.run == nil {
		return nil, errors.New("no function: make it with New")
	}
	e := &entry{Command: c, properties: c.parameters}
	if e.properties == nil {
		s, err := c.input.compiled()
		if err != nil {
			return nil, fmt.Errorf("input schema: %w", err)
		}
		e.properties = propertyNames(s.shape)
	}
	marked := [][]string{c.Shell, c.Raw}
	if c.KeyParam != "" {
		marked = append(marked, []string{c.KeyParam})
	}
	for _, list := range marked {
		for _, name := range list {
			if !slices.Contains(e.properties, name) {
				return nil, fmt.Errorf("marked parameter %q: not in the input schema", name)
			}
		}
	}
	for alias, name := range c.Aliases {
		if !slices.Contains(e.properties, name) || slices.Contains(e.properties, alias) || slices.Contains(c.Shell, name) {
			return nil, fmt.Errorf("alias %q of %q: must name a parameter that is no shell line and not be one itself", alias, name)
		}
	}
	return e, nil
}
