// Package runtime executes sentinels durably. Every step is a sandboxed Wasm
// plugin, and the engine knows no step type by name.
//
// [Open] returns a [Runtime] from [Options]; [Runtime.Start] starts a run. The
// outside world (commands, models, shells) comes in through the small interfaces
// of Options.
//
// [Runtime.Save] and [Runtime.Edit] make revisions of stored definitions,
// [Runtime.Emit] appends to the event log, and [Runtime.Documents] keeps JSON
// documents of commands.
//
// [Runtime.Arm] starts to listen for the triggers of stored definitions.
// [Runtime.Triggers] lists what they wait for and what they fired,
// [Runtime.Receive] passes requests to them, and [Runtime.Disarm] is the first
// step of a shutdown.
//
// The state of a run is the fold of its journal, see runtime/internal/history.
package runtime
