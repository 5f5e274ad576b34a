package files

import (
	"io"
	"log/slog"
	"time"
)

// Options configure a [Watcher]. The zero value of every field works but Root.
type Options struct {
	// Root is the absolute folder that is watched. It need not exist yet.
	Root string
	// Confined takes links that lead out of Root for missing. Default false.
	Confined bool
	// Debounce is how long a path must be quiet before it is looked at. A path
	// that is never quiet is looked at after twenty times that. Default 100 ms.
	Debounce time.Duration
	// Rescan is how often all is looked at again, for notifications that were
	// lost unnoticed. A scan that takes long is made less often, so that it
	// costs a hundredth of a processor at most. Default 30 s.
	Rescan time.Duration
	// Poll takes the place of Rescan where there are no notifications. Default
	// 2 s, at most a twentieth of a processor.
	Poll time.Duration
	// HashLimit is the size in bytes up to which content is compared; of larger
	// files size and times are. Default 1 MiB.
	HashLimit int64
	// MaxFiles bounds what one subscription may match. Default 100,000.
	MaxFiles int
	// Source gives notifications. Default: the system's.
	Source func() (Source, error)
	// Logger is told when notifications are not to be had. Default discards.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	duration := func(d *time.Duration, def time.Duration) {
		if *d == 0 {
			*d = def
		}
	}
	duration(&o.Debounce, 100*time.Millisecond)
	duration(&o.Rescan, 30*time.Second)
	duration(&o.Poll, 2*time.Second)
	if o.HashLimit == 0 {
		o.HashLimit = 1 << 20
	}
	if o.MaxFiles == 0 {
		o.MaxFiles = 100_000
	}
	if o.Source == nil {
		o.Source = openNotifier
	}
	if o.Logger == nil {
		o.Logger = slog.New(slog.NewTextHandler(io.Discard, nil))
	}
	return o
}
