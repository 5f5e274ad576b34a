package files

import (
	"io"
	"log/slog"
	"time"
)

// Options configure a [Watcher]. Root is required.
type Options struct {
	// Root is the absolute folder that is watched. It need not exist yet.
	Root string
	// Confined treats links that lead out of Root as missing. Default false.
	Confined bool
	// Debounce is how long a path must be quiet before it is checked. A path that
	// is never quiet is checked after 20 times Debounce. Default 100 ms.
	Debounce time.Duration
	// Rescan is the interval of whole scans, which find changes whose
	// notifications were lost. It is extended for slow scans, so that they use at
	// most 1 % of a processor. Default 30 s.
	Rescan time.Duration
	// Poll replaces Rescan where there are no notifications; scans then use at
	// most 5 % of a processor. Default 2 s.
	Poll time.Duration
	// HashLimit is the size in bytes up to which content is compared. Of larger
	// files size and modification time are. Default 1 MiB.
	HashLimit int64
	// MaxFiles limits the files that one subscription matches. Default 100,000.
	MaxFiles int
	// Source opens the source of notifications. Default: the system's.
	Source func() (Source, error)
	// Logger logs the change to polling and folders that cannot be read. Default:
	// discard.
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
