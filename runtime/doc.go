// Package runtime is the ENGINE: it carries out sentinels, durably, with every
// step a sandboxed plugin.
//
// [Open] makes a [Runtime] from [Options]; [Runtime.Start] begins a run;
// what the outside world is, commands, models and shells, comes in through the
// small interfaces of Options. The engine knows no step type by name.
//
// [Runtime.Arm] has the triggers of stored definitions fire: [Runtime.Triggers]
// shows what they wait for and what became of it, [Runtime.Receive] hands them
// requests, [Runtime.Disarm] is the first thing to do on the way out.
package runtime
